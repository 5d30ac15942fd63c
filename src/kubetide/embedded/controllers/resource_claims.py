"""The controller of claims for devices: makes them from templates, and takes back what nobody uses.

Left out: reserving claims for pods that were bound by somebody else, and pod groups.
Source: kube-controller-manager v1.36, resourceclaim-controller.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kubetide.acting import EventWriter
from kubetide.embedded.controllers.scheduling.device_binding import DELETE_PROTECTION
from kubetide.embedded.controllers.scheduling.device_cache import DeviceCache
from kubetide.embedded.controllers.work_queue import WorkQueue
from kubetide.embedded.controllers.workloads.owned_pods import follow
from kubetide.embedded.controllers.workloads.templates import owner_reference, to_json
from kubetide.objects.base import Json
from kubetide.objects.kinds import PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Kind
from kubetide.objects.meta import Key, controller_of
from kubetide.objects.pod import Pod, PodResourceClaim, is_finished
from kubetide.objects.resource import ConsumerReference, ResourceClaim
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import Conflict, NotFound
from kubetide.watching import Informer

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim that was made for a pod: which of the pod's claims it is."""

_LONGEST_PREFIX = 58
_Job = tuple[str, Key]
"""The plural name of a kind, and a key."""


class ResourceClaimController:
    """Keeps claims for devices in line with the pods that use them."""

    def __init__(self, cluster: Cluster, clock: Clock, *, devices: DeviceCache, pods: Informer[Pod]) -> None:
        self._cluster = cluster
        self._devices = devices
        self._pods = pods
        self._events = EventWriter(cluster, clock, "resource_claim")
        self._queue: WorkQueue[_Job] = WorkQueue(clock)
        self._claims_of: dict[Key, dict[Key, None]] = {}
        """By pod, the claims that it has reserved or that were made for it."""

    async def run(self) -> None:
        """Work until cancelled, from when devices are in use on. The informers are run by whoever made them."""
        await self._devices.started()
        await self._devices.synced()
        await self._pods.synced()
        self._devices.follow(self._changed)
        follow(self._pods, self._pod_changed)
        await self._queue.serve(self._sync)

    # ── what happened ──

    def _changed(self, kind: Kind[Any], key: Key, old: Any, new: Any) -> None:
        if kind is RESOURCE_CLAIMS:
            for pod in () if old is None else _pods_of(old):
                self._claims_of.get(pod, {}).pop(key, None)
            for pod in () if new is None else _pods_of(new):
                self._claims_of.setdefault(pod, {})[key] = None
            self._queue.add((kind.plural, key))
            if new is None:
                self._look_at_pods(key[0])
        elif kind is RESOURCE_CLAIM_TEMPLATES and new is not None:
            self._look_at_pods(key[0])

    def _look_at_pods(self, namespace: str) -> None:
        for key, pod in self._pods.objects.items():
            if key[0] == namespace and pod.spec.resource_claims:
                self._queue.add((PODS.plural, key))

    def _pod_changed(self, key: Key, _old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.spec.resource_claims:
            self._queue.add((PODS.plural, key))
        if new is None or is_finished(new):
            for claim in self._claims_of.get(key, ()):
                self._queue.add((RESOURCE_CLAIMS.plural, claim))
        if new is None:
            self._claims_of.pop(key, None)

    # ── bringing in line ──

    async def _sync(self, job: _Job) -> None:
        plural, key = job
        if plural == PODS.plural:
            await self._sync_pod(key)
        else:
            await self._sync_claim(key)

    async def _sync_pod(self, key: Key) -> None:
        pod = self._pods.objects.get(key)
        if pod is None or pod.metadata.deletion_timestamp is not None or is_finished(pod):
            return
        known = {one.name for one in pod.status.resource_claim_statuses or ()}
        made: dict[str, str] = {}
        for one in pod.spec.resource_claims or ():
            if one.resource_claim_template_name is not None and one.name not in known:
                name = await self._make(pod, one)
                if name:
                    made[one.name] = name
        if made:
            listed = [to_json(one) for one in pod.status.resource_claim_statuses or ()]
            listed += [{"name": name, "resourceClaimName": claim} for name, claim in made.items()]
            patch: Json = {"metadata": {"uid": pod.metadata.uid}, "status": {"resourceClaimStatuses": listed}}
            with suppress(NotFound):
                await self._cluster.patch(PODS, key[1], patch, namespace=key[0], subresource="status")

    async def _make(self, pod: Pod, asked: PodResourceClaim) -> str:
        """Make a claim, or finds it when it was made already; return its name, empty without its template."""
        meta = pod.metadata
        for (namespace, name), claim in self._devices.of(RESOURCE_CLAIMS).objects.items():
            if namespace == meta.namespace and _is_for(claim, pod, asked.name):
                return name
        where = meta.namespace, asked.resource_claim_template_name or ""
        try:
            template = await self._cluster.get(
                RESOURCE_CLAIM_TEMPLATES.untyped, where[1], namespace=meta.namespace
            )
        except NotFound:
            said = f'PodResourceClaim {asked.name}: resource claim template "{where[1]}": '
            said += f'resourceclaimtemplate.resource.k8s.io "{where[1]}" not found'
            await self._events.record(PODS, meta, "Warning", "FailedResourceClaimCreation", said)
            return ""
        given = (template.get("spec") or {}).get("metadata") or {}
        prefix = f"{meta.name}-{asked.name}-"
        body: Json = {
            "metadata": {
                "generateName": prefix
                if len(prefix) <= _LONGEST_PREFIX
                else f"{prefix[: _LONGEST_PREFIX - 1]}-",
                "annotations": {**(given.get("annotations") or {}), POD_CLAIM_NAME: asked.name},
                "ownerReferences": [to_json(owner_reference(PODS, meta))],
                **({"labels": given["labels"]} if given.get("labels") else {}),
            },
            "spec": (template.get("spec") or {}).get("spec") or {},
        }
        claim = await self._cluster.create(RESOURCE_CLAIMS, body, namespace=meta.namespace)
        return claim.metadata.name

    async def _sync_claim(self, key: Key) -> None:
        claim = self._devices.of(RESOURCE_CLAIMS).objects.get(key)
        if claim is None:
            return
        status, users = claim.status, claim.status.reserved_for or ()
        remaining = [one for one in users if self._is_used(key[0], one)]
        with suppress(NotFound, Conflict):
            if status.allocation is not None and len(remaining) < len(users):
                change: Json = {"reservedFor": [to_json(one) for one in remaining] or None}
                if not remaining:
                    change |= {"allocation": None, "devices": None}
                claim = await self._write(claim, {"status": change}, status=True)
            elif (
                status.allocation is not None and not users and claim.metadata.deletion_timestamp is not None
            ):
                claim = await self._write(
                    claim, {"status": {"allocation": None, "devices": None}}, status=True
                )
            finalizers = claim.metadata.finalizers or ()
            if claim.status.allocation is None and DELETE_PROTECTION in finalizers:
                left = [one for one in finalizers if one != DELETE_PROTECTION]
                claim = await self._write(claim, {"metadata": {"finalizers": left or None}})
            if self._has_ended(key[0], claim) and claim.metadata.deletion_timestamp is None:
                await self._cluster.delete(RESOURCE_CLAIMS, key[1], namespace=key[0], uid=claim.metadata.uid)

    async def _write(self, claim: ResourceClaim, change: Json, *, status: bool = False) -> ResourceClaim:
        meta = claim.metadata
        fixed = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        patch = {**change, "metadata": {**change.get("metadata", {}), **fixed}}
        written = await self._cluster.patch(
            RESOURCE_CLAIMS,
            meta.name,
            patch,
            namespace=meta.namespace,
            subresource="status" if status else "",
        )
        self._devices.note(written)
        return written

    def _is_used(self, namespace: str, user: ConsumerReference) -> bool:
        """Return whether the pod that has reserved a claim is there; consumers that are no pods are left alone."""
        if user.resource != "pods":
            return True
        pod = self._pods.objects.get((namespace, user.name))
        return pod is not None and pod.metadata.uid == user.uid and not is_finished(pod)

    def _has_ended(self, namespace: str, claim: ResourceClaim) -> bool:
        """Return whether the claim was made for a pod that is there and has finished."""
        owner = controller_of(claim.metadata)
        if owner is None or owner.kind != "Pod":
            return False
        pod = self._pods.objects.get((namespace, owner.name))
        return pod is not None and pod.metadata.uid == owner.uid and is_finished(pod)


def _is_for(claim: ResourceClaim, pod: Pod, name: str) -> bool:
    owner = controller_of(claim.metadata)
    notes = claim.metadata.annotations or {}
    return owner is not None and owner.uid == pod.metadata.uid and notes.get(POD_CLAIM_NAME) == name


def _pods_of(claim: ResourceClaim) -> list[Key]:
    namespace = claim.metadata.namespace
    found = [(namespace, one.name) for one in claim.status.reserved_for or () if one.resource == "pods"]
    owner = controller_of(claim.metadata)
    if owner is not None and owner.kind == "Pod":
        found.append((namespace, owner.name))
    return found
