"""The controller of volumes: binds claims, makes volumes, takes back those whose claim is gone.

Also makes the claims of ephemeral volumes, and lets claims and volumes that are deleted go once nobody
uses them. Expanding, and claims whose volume is requested by another, are left out.
Source: kube-controller-manager v1.36, its controllers persistentvolume-binder, ephemeral-volume,
pvc-protection and pv-protection.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kubetide.acting import EventWriter
from kubetide.embedded.apiserver.store.volumes import VOLUME_PROTECTION
from kubetide.embedded.controllers.scheduling.volume_cache import VolumeCache
from kubetide.embedded.controllers.volume_plan import (
    Bind,
    Provision,
    Wait,
    claim_patch,
    phase_of,
    plan_claim,
    provisioned,
    volume_patch,
)
from kubetide.embedded.controllers.work_queue import WorkQueue
from kubetide.embedded.controllers.workloads.owned_pods import follow
from kubetide.embedded.controllers.workloads.templates import owner_reference, to_json
from kubetide.objects.base import Json
from kubetide.objects.kinds import CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES, Kind
from kubetide.objects.meta import Key, ObjectMeta
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, is_finished
from kubetide.objects.storage import PersistentVolume, PersistentVolumeClaim
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, NotFound
from kubetide.scheduling.pods.volume_use import claims_of
from kubetide.scheduling.snapshot.volumes import SELECTED_NODE, is_bound
from kubetide.watching import Informer

_Job = tuple[str, Key]
"""What to look at: the plural name of its kind, and its key."""


class VolumeController:
    """Brings claims and volumes together."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        volumes: VolumeCache,
        pods: Informer[Pod],
        nodes: Informer[Node],
    ) -> None:
        self._cluster = cluster
        self._volumes = volumes
        self._pods = pods
        self._nodes = nodes
        self._events = EventWriter(cluster, clock, "persistentvolume-controller")
        self._queue: WorkQueue[_Job] = WorkQueue(clock)
        self._users: dict[Key, dict[Key, None]] = {}
        """By claim, the pods that use it and have not ended."""
        self._told: dict[str, str] = {}
        """By the uid of a claim, the last event about it."""

    async def run(self) -> None:
        """Work until cancelled, from when volumes are in use on. The informers are run by whoever made them."""
        await self._volumes.started()
        await self._volumes.synced()
        await self._pods.synced()
        await self._nodes.synced()
        self._volumes.follow(self._changed)
        follow(self._pods, self._pod_changed)
        await self._queue.serve(self._sync)

    # ── what happened ──

    def _changed(self, kind: Kind[Any], key: Key, old: Any, new: Any) -> None:
        if kind is CLAIMS:
            claim: PersistentVolumeClaim = new or old
            if new is None:
                self._told.pop(claim.metadata.uid, None)
            self._queue.add((kind.plural, key))
            if claim.spec.volume_name:
                self._queue.add((PERSISTENT_VOLUMES.plural, ("", claim.spec.volume_name)))
        elif kind is PERSISTENT_VOLUMES:
            self._queue.add((kind.plural, key))
            volume: PersistentVolume = new or old
            ref = volume.spec.claim_ref
            if ref is not None:
                self._queue.add((CLAIMS.plural, (ref.namespace, ref.name)))
            elif new is not None:
                self._look_at_waiting_claims()
        elif kind is STORAGE_CLASSES and new is not None:
            self._look_at_waiting_claims()

    def _look_at_waiting_claims(self) -> None:
        for key, claim in self._volumes.objects[CLAIMS].items():
            if not is_bound(claim):
                self._queue.add((CLAIMS.plural, key))

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        used = () if new is None or is_finished(new) else claims_of(new)
        before = () if old is None or is_finished(old) else claims_of(old)
        if not used and not before:
            return
        for use in before:
            if use not in used:
                users = self._users.get((use.namespace, use.name), {})
                users.pop(key, None)
                if not users:
                    self._users.pop((use.namespace, use.name), None)
                    self._queue.add((CLAIMS.plural, (use.namespace, use.name)))
        for use in used:
            self._users.setdefault((use.namespace, use.name), {})[key] = None
            if use.owner and (use.namespace, use.name) not in self._volumes.objects[CLAIMS]:
                self._queue.add((PODS.plural, key))

    # ── bringing in line ──

    async def _sync(self, job: _Job) -> None:
        plural, key = job
        if plural == PODS.plural:
            await self._make_claims(key)
        elif plural == CLAIMS.plural:
            await self._sync_claim(key)
        else:
            await self._sync_volume(key)

    async def _sync_claim(self, key: Key) -> None:
        claim = self._volumes.objects[CLAIMS].get(key)
        if claim is None:
            return
        if claim.metadata.deletion_timestamp is not None:
            if key not in self._users:
                await self._let_go(CLAIMS, claim.metadata)
            return
        if is_bound(claim):
            await self._keep_bound(claim)
            return
        step = plan_claim(claim, self._volumes.objects.volumes())
        if isinstance(step, Provision) and self._has_new_volumes():
            return  # one of them may do; the claim is looked at again when they are available
        if isinstance(step, Wait):
            await self._tell(claim, step)
        elif isinstance(step, Bind):
            await self._bind(claim, step.volume)
        else:
            await self._provision(claim, step)

    def _has_new_volumes(self) -> bool:
        volumes = self._volumes.objects[PERSISTENT_VOLUMES].values()
        return any(one.status.phase == "Pending" and one.spec.claim_ref is None for one in volumes)

    async def _keep_bound(self, claim: PersistentVolumeClaim) -> None:
        volume = self._volumes.objects[PERSISTENT_VOLUMES].get(("", claim.spec.volume_name))
        ref = None if volume is None else volume.spec.claim_ref
        if volume is None or ref is None or ref.uid not in {"", claim.metadata.uid}:
            if claim.status.phase != "Lost":
                await self._patch_claim(claim, {"status": {"phase": "Lost"}}, status=True)
                message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
                await self._events.record(CLAIMS, claim.metadata, "Warning", "ClaimLost", message)
        elif claim.status.phase != "Bound":
            await self._bind(claim, volume)

    async def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        name = volume.metadata.name
        patch = volume_patch(volume, claim)
        if patch is not None:
            patch.setdefault("metadata", {})["resourceVersion"] = volume.metadata.resource_version
            await self._cluster.patch(PERSISTENT_VOLUMES, name, patch)
        patch = claim_patch(claim, name)
        if patch is not None:
            await self._patch_claim(claim, patch)
        status: Json = {
            "phase": "Bound",
            "accessModes": list(volume.spec.access_modes or ()),
            "capacity": dict(volume.spec.capacity or {}),
        }
        await self._patch_claim(claim, {"status": status}, status=True)

    async def _provision(self, claim: PersistentVolumeClaim, step: Provision) -> None:
        node = None
        chosen = (claim.metadata.annotations or {}).get(SELECTED_NODE)
        if chosen is not None:
            node = self._nodes.objects.get(("", chosen))
            if node is None:
                # So does a provisioner that finds no node: the scheduler chooses again.
                await self._patch_claim(claim, {"metadata": {"annotations": {SELECTED_NODE: None}}})
                return
        labels = None if node is None else node.metadata.labels or {}
        body = provisioned(claim, step.storage_class, labels)
        with suppress(AlreadyExists):  # made already, and not in the cache yet
            await self._cluster.create(PERSISTENT_VOLUMES, body)
            message = f"Successfully provisioned volume {body['metadata']['name']}"
            await self._events.record(CLAIMS, claim.metadata, "Normal", "ProvisioningSucceeded", message)

    async def _sync_volume(self, key: Key) -> None:
        volume = self._volumes.objects[PERSISTENT_VOLUMES].get(key)
        if volume is None:
            return
        phase = phase_of(volume, self._volumes.objects[CLAIMS])
        if volume.metadata.deletion_timestamp is not None:
            if phase != "Bound":
                await self._let_go(PERSISTENT_VOLUMES, volume.metadata)
            return
        if phase != volume.status.phase:
            patch: Json = {"status": {"phase": phase}}
            await self._cluster.patch(PERSISTENT_VOLUMES, key[1], patch, subresource="status")
        if phase == "Released" and volume.spec.persistent_volume_reclaim_policy == "Delete":
            await self._cluster.delete(PERSISTENT_VOLUMES, key[1], uid=volume.metadata.uid)

    async def _let_go(self, kind: Kind[Any], meta: ObjectMeta) -> None:
        """Remove the finalizer that protected an object while it was in use."""
        left = [name for name in meta.finalizers or () if name != VOLUME_PROTECTION[kind.plural]]
        if len(left) == len(meta.finalizers or ()):
            return
        patch: Json = {"metadata": {"uid": meta.uid, "finalizers": left or None}}
        with suppress(NotFound):
            await self._cluster.patch(kind, meta.name, patch, namespace=meta.namespace)

    async def _make_claims(self, key: Key) -> None:
        """Make the claims of a pod's ephemeral volumes."""
        pod = self._pods.objects.get(key)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        for volume in pod.spec.volumes or ():
            if volume.ephemeral is None:
                continue
            template: Json = volume.ephemeral.get("volumeClaimTemplate") or {}
            given = template.get("metadata") or {}
            meta: Json = {
                "name": f"{pod.metadata.name}-{volume.name}",
                "ownerReferences": [to_json(owner_reference(PODS, pod.metadata))],
                **{part: given[part] for part in ("labels", "annotations") if given.get(part)},
            }
            with suppress(AlreadyExists):
                body = {"metadata": meta, "spec": template.get("spec") or {}}
                await self._cluster.create(CLAIMS, body, namespace=key[0])

    async def _patch_claim(self, claim: PersistentVolumeClaim, patch: Json, *, status: bool = False) -> None:
        meta = claim.metadata
        patch = {**patch, "metadata": {**patch.get("metadata", {}), "uid": meta.uid}}
        await self._cluster.patch(
            CLAIMS, meta.name, patch, namespace=meta.namespace, subresource="status" if status else ""
        )

    async def _tell(self, claim: PersistentVolumeClaim, step: Wait) -> None:
        """Write the event of a claim that waits, once for each reason."""
        uid = claim.metadata.uid
        if step.reason and self._told.get(uid) != step.message:
            self._told[uid] = step.message
            await self._events.record(CLAIMS, claim.metadata, step.level, step.reason, step.message)
