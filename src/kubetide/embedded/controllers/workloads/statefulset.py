"""The StatefulSet controller: pods with names that stay, made, updated and removed in order.

Names are fixed, so that a cache that is late leads to a refused creation and never to a second pod.
Claims of ``volumeClaimTemplates`` are made before their pod and stay when it goes, unless
``persistentVolumeClaimRetentionPolicy`` hands them to the set: then they go with it.
Source: kube-controller-manager v1.36.
"""

from __future__ import annotations

from contextlib import suppress

from kubetide.acting import EventWriter
from kubetide.embedded.controllers.work_queue import WorkQueue
from kubetide.embedded.controllers.workloads.owned_pods import PodIndex, follow
from kubetide.embedded.controllers.workloads.stateful_plan import (
    REVISION_LABEL,
    Create,
    Delete,
    Revisions,
    Step,
    next_look,
    ordinal_of,
    status_of,
    steps,
)
from kubetide.embedded.controllers.workloads.templates import (
    Selectors,
    owner_reference,
    owners_patch,
    pod_from_template,
    template_hash,
    to_json,
)
from kubetide.objects.base import Json
from kubetide.objects.kinds import CLAIMS, CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from kubetide.objects.meta import Key, controller_of
from kubetide.objects.pod import Pod
from kubetide.objects.statefulset import ControllerRevision, StatefulSet
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, ApiError, Conflict, NotFound
from kubetide.units.patch import merge_diff
from kubetide.watching import Informer

_POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
_POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"


class StatefulSetController:
    """Brings the pods of StatefulSets in line, keeps their revisions and their status."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        stateful_sets: Informer[StatefulSet],
        revisions: Informer[ControllerRevision],
        pods: Informer[Pod],
        pod_index: PodIndex,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._sets = stateful_sets
        self._revisions = revisions
        self._pods = pods
        self._index = pod_index
        self._events = EventWriter(cluster, clock, "statefulset-controller")
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._selectors = Selectors()
        self._specs: dict[str, tuple[int, Json]] = {}
        """By uid: the generation and the whole spec of it, with the fields that the cache does not hold."""

    async def run(self) -> None:
        """Work until cancelled. The informers are run by whoever made them."""
        for informer in (self._sets, self._revisions, self._pods):
            await informer.synced()
        follow(self._sets, self._set_changed)
        self._revisions.on_change(self._revision_changed)
        follow(self._pods, self._pod_changed)
        await self._queue.serve(self._sync)

    # ── what happened ──

    def _set_changed(self, key: Key, old: StatefulSet | None, new: StatefulSet | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._selectors.forget(old.metadata.uid)
            self._specs.pop(old.metadata.uid, None)
            self._queue.forget(key)
        if new is not None:
            self._queue.add(key)

    def _revision_changed(
        self, key: Key, old: ControllerRevision | None, new: ControllerRevision | None
    ) -> None:
        shown = new or old
        owner = None if shown is None else controller_of(shown.metadata)
        if owner is not None and owner.kind == "StatefulSet":
            self._queue.add((key[0], owner.name))

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        for pod in (old, new):
            owner = None if pod is None else controller_of(pod.metadata)
            if owner is not None and owner.kind == "StatefulSet":
                self._queue.add((key[0], owner.name))
            elif pod is new and pod is not None and owner is None:
                namesake = key[0], key[1].rpartition("-")[0]
                if namesake in self._sets.objects:
                    self._queue.add(namesake)

    # ── bringing in line ──

    async def _sync(self, key: Key) -> None:
        found = self._sets.objects.get(key)
        if found is None:
            return
        if found.metadata.deletion_timestamp is None:
            await self._claim(found)
        spec = await self._spec(found)
        revisions = await self._bring_revisions(found, spec)
        pods = list(self._index.owned_by(found.metadata.uid).pods.values())
        now = self._clock.now()
        try:
            if found.metadata.deletion_timestamp is None:
                for step in steps(found, pods, revisions, now):
                    await self._take(found, spec, step)
        finally:
            await self._write_status(key, found, revisions)
        due = next_look(found, pods, now)
        if due is not None:
            self._queue.add_at(key, due)

    async def _claim(self, found: StatefulSet) -> None:
        """Adopt orphans that bear one of its names and its labels, and releases pods that no longer do."""
        meta = found.metadata
        selector = self._selectors.of(meta.uid, found.spec.selector)

        def belongs(pod: Pod) -> bool:
            named = ordinal_of(pod.metadata.name, meta.name) is not None
            return named and selector.matches(pod.metadata.labels or {})

        reference = owner_reference(STATEFUL_SETS, meta)
        patches = [
            (pod, owners_patch(pod.metadata, add=reference))
            for pod in self._index.orphans(meta.namespace).values()
            if pod.metadata.deletion_timestamp is None and belongs(pod)
        ]
        patches += [
            (pod, owners_patch(pod.metadata, remove_uid=meta.uid))
            for pod in self._index.owned_by(meta.uid).active_pods()
            if not belongs(pod)
        ]
        for pod, patch in patches:
            try:
                await self._cluster.patch(PODS, pod.metadata.name, patch, namespace=meta.namespace)
            except NotFound:
                continue
        if patches:
            raise Conflict(
                f"statefulsets.apps {meta.name!r} has claimed {len(patches)} pod(s): counting again"
            )

    async def _take(self, found: StatefulSet, spec: Json, step: Step) -> None:
        if isinstance(step, Create):
            await self._create(found, spec, step)
        else:
            await self._delete(found, step)

    async def _create(self, found: StatefulSet, spec: Json, step: Create) -> None:
        meta = found.metadata
        name = f"{meta.name}-{step.ordinal}"
        body = self._pod(found, spec, step, name)
        await self._make_claims(found, spec, name)
        try:
            await self._cluster.create(PODS, body, namespace=meta.namespace)
        except AlreadyExists as error:
            raise Conflict(f"pods {name!r} is there already and not in the cache yet, or not ours") from error
        except ApiError as error:
            message = f"Create Pod {name} in StatefulSet {meta.name} failed error: {error}"
            await self._events.record(STATEFUL_SETS, meta, "Warning", "FailedCreate", message)
            raise
        message = f"Create Pod {name} in StatefulSet {meta.name} successful"
        await self._events.record(STATEFUL_SETS, meta, "Normal", "SuccessfulCreate", message)

    def _pod(self, found: StatefulSet, spec: Json, step: Create, name: str) -> Json:
        meta = found.metadata
        body = pod_from_template(
            self._template(found, spec, step.revision), owner_reference(STATEFUL_SETS, meta), name=name
        )
        body["metadata"]["labels"] = {
            **(body["metadata"].get("labels") or {}),
            REVISION_LABEL: step.revision,
            _POD_NAME_LABEL: name,
            _POD_INDEX_LABEL: str(step.ordinal),
        }
        claims = {
            claim.metadata.name: f"{claim.metadata.name}-{name}"
            for claim in found.spec.volume_claim_templates or ()
            if claim.metadata.name
        }
        volumes = [
            *(
                {"name": mount, "persistentVolumeClaim": {"claimName": claim}}
                for mount, claim in claims.items()
            ),
            *(volume for volume in body["spec"].get("volumes") or () if volume.get("name") not in claims),
        ]
        body["spec"] = {**body["spec"], "hostname": name}
        if found.spec.service_name:
            body["spec"]["subdomain"] = found.spec.service_name
        if volumes:
            body["spec"]["volumes"] = volumes
        return body

    async def _make_claims(self, found: StatefulSet, spec: Json, pod: str) -> None:
        """Make the claims of a pod that are not there yet; they bear the labels of the set's selector."""
        meta = found.metadata
        policy = found.spec.persistent_volume_claim_retention_policy
        owned = policy is not None and policy.when_deleted == "Delete"
        for template in spec.get("volumeClaimTemplates") or ():
            given = template.get("metadata") or {}
            claim = f"{given.get('name') or ''}-{pod}"
            selected = found.spec.selector.match_labels if found.spec.selector else None
            labels = {**(given.get("labels") or {}), **(selected or {})}
            made: Json = {"name": claim, "labels": labels}
            if given.get("annotations"):
                made["annotations"] = given["annotations"]
            if owned:
                made["ownerReferences"] = [to_json(owner_reference(STATEFUL_SETS, meta))]
            body = {"metadata": made, "spec": template.get("spec") or {}}
            try:
                await self._cluster.create(CLAIMS, body, namespace=meta.namespace)
            except AlreadyExists:
                continue
            except ApiError as error:
                message = (
                    f"create Claim {claim} for Pod {pod} in StatefulSet {meta.name} failed error: {error}"
                )
                await self._events.record(STATEFUL_SETS, meta, "Warning", "FailedCreate", message)
                raise
            message = f"create Claim {claim} Pod {pod} in StatefulSet {meta.name} success"
            await self._events.record(STATEFUL_SETS, meta, "Normal", "SuccessfulCreate", message)

    async def _delete(self, found: StatefulSet, step: Delete) -> None:
        meta, pod = found.metadata, step.pod.metadata
        try:
            await self._cluster.delete(PODS, pod.name, namespace=meta.namespace, uid=pod.uid)
        except (NotFound, Conflict):
            return
        if step.ended and step.pod.status.phase == "Failed":
            message = f"StatefulSet {meta.namespace}/{meta.name} is recreating failed Pod {pod.name}"
            await self._events.record(STATEFUL_SETS, meta, "Warning", "RecreatingFailedPod", message)
        message = f"Delete Pod {pod.name} in StatefulSet {meta.name} successful"
        await self._events.record(STATEFUL_SETS, meta, "Normal", "SuccessfulDelete", message)

    # ── revisions ──

    async def _spec(self, found: StatefulSet) -> Json:
        """Return the whole spec as users sent it."""
        meta = found.metadata
        known = self._specs.get(meta.uid)
        if known is not None and known[0] == meta.generation:
            return known[1]
        live = await self._cluster.get(STATEFUL_SETS.untyped, meta.name, namespace=meta.namespace)
        if live["metadata"].get("uid") != meta.uid or live["metadata"].get("generation") != meta.generation:
            raise Conflict(f"statefulsets.apps {meta.name!r} has changed: reading it again")
        spec: Json = live["spec"]
        self._specs[meta.uid] = (meta.generation, spec)
        return spec

    def _owned_revisions(self, found: StatefulSet) -> list[ControllerRevision]:
        """Return the revisions of the set, the oldest first."""
        owned = [
            each
            for each in self._revisions.objects.values()
            if (owner := controller_of(each.metadata)) is not None and owner.uid == found.metadata.uid
        ]
        return sorted(owned, key=lambda each: (each.revision, each.metadata.name))

    async def _bring_revisions(self, found: StatefulSet, spec: Json) -> Revisions:
        """Store the template as the newest revision, unless it is; return both names."""
        meta = found.metadata
        template = spec.get("template") or {}
        update = f"{meta.name}-{template_hash(template, found.status.collision_count or 0)}"
        owned = self._owned_revisions(found)
        newest = owned[-1].revision if owned else 0
        known = next((each for each in owned if each.metadata.name == update), None)
        if known is None and meta.deletion_timestamp is None:
            body: Json = {
                "metadata": {
                    "name": update,
                    "labels": (template.get("metadata") or {}).get("labels") or {},
                    "ownerReferences": [to_json(owner_reference(STATEFUL_SETS, meta))],
                },
                "data": {"spec": {"template": {**template, "$patch": "replace"}}},
                "revision": newest + 1,
            }
            # One that is there already is this very revision, which the cache has not shown yet.
            with suppress(AlreadyExists):
                await self._cluster.create(CONTROLLER_REVISIONS, body, namespace=meta.namespace)
        elif known is not None and known.revision < newest:
            patch = {"revision": newest + 1}
            await self._cluster.patch(CONTROLLER_REVISIONS, update, patch, namespace=meta.namespace)
        current = found.status.current_revision or update
        if current != update and all(each.metadata.name != current for each in owned):
            current = update
        await self._truncate(found, owned, {current, update})
        return Revisions(current, update)

    async def _truncate(self, found: StatefulSet, owned: list[ControllerRevision], live: set[str]) -> None:
        """Remove the oldest revisions beyond the limit that no pod carries."""
        pods = self._index.owned_by(found.metadata.uid).pods.values()
        used = live | {(pod.metadata.labels or {}).get(REVISION_LABEL, "") for pod in pods}
        spare = [each.metadata.name for each in owned if each.metadata.name not in used]
        limit = found.spec.revision_history_limit
        for name in spare[: max(len(spare) - (10 if limit is None else limit), 0)]:
            try:
                await self._cluster.delete(CONTROLLER_REVISIONS, name, namespace=found.metadata.namespace)
            except NotFound:
                continue

    def _template(self, found: StatefulSet, spec: Json, revision: str) -> Json:
        """Return the pod template of a revision."""
        stored = self._revisions.objects.get((found.metadata.namespace, revision))
        if stored is None:
            template: Json = spec.get("template") or {}
            return template
        data: Json = ((stored.data or {}).get("spec") or {}).get("template") or {}
        return {name: value for name, value in data.items() if name != "$patch"}

    # ── status ──

    async def _write_status(self, key: Key, found: StatefulSet, revisions: Revisions) -> None:
        pods = list(self._index.owned_by(found.metadata.uid).pods.values())
        status = status_of(found, pods, revisions, self._clock.now())
        difference = merge_diff(to_json(found.status), to_json(status))
        if not difference:
            return
        # These counts are written out at zero, as upstream does; the others are left out.
        difference |= {"replicas": status.replicas, "availableReplicas": status.available_replicas}
        patch: Json = {"status": difference}
        await self._cluster.patch(STATEFUL_SETS, key[1], patch, namespace=key[0], subresource="status")
