"""The Deployment controller: rollouts from one ReplicaSet to the next."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from kubetide.objects.base import Json
from kubetide.objects.kinds import DEPLOYMENTS, REPLICA_SETS
from kubetide.objects.meta import LabelSelector, controller_of
from kubetide.objects.pod import Pod, is_finished
from kubetide.objects.workload import Deployment, ReplicaSet, WorkloadStatus
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, ApiError, Conflict, NotFound
from kubetide.units.time import after, seconds
from kubetide.watching import Informer, Key

from .events import EventSink
from .new_replica_set import copied_annotations, looks_the_same, replica_set_body, without_hash
from .owned_pods import PodIndex, follow
from .rollout import (
    HASH_LABEL,
    REVISION,
    Resize,
    history_to_delete,
    is_rolling,
    is_scaling,
    new_replicas,
    revision_of,
    size_annotations,
    step_rolling_update,
    step_scale,
    wanted_replicas,
)
from .rollout_status import (
    condition_of,
    counts,
    has_deadline,
    is_complete,
    progress_due,
    with_availability,
    with_condition,
    with_progress,
)
from .templates import Selectors, owner_reference, owners_patch, status_patch, template_hash
from .work_queue import WorkQueue


class DeploymentController:
    """Makes, sizes and clears away the ReplicaSets of Deployments, and keeps their status.

    Scaled in the midst of a rolling update, the change is shared among the ReplicaSets in
    proportion to their sizes (``rollout.step_scale``). Roll-back by annotation is not done.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        seed: int,
        *,
        deployments: Informer[Deployment],
        replica_sets: Informer[ReplicaSet],
        pods: Informer[Pod],
        pod_index: PodIndex,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._deployments = deployments
        self._replica_sets = replica_sets
        self._pods = pods
        self._pod_index = pod_index
        self._events = EventSink(cluster, clock, seed, "deployment-controller")
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._owned: dict[str, dict[Key, ReplicaSet]] = {}
        self._orphans: dict[Key, ReplicaSet] = {}
        self._templates: dict[str, tuple[int, Json]] = {}
        self._compared: dict[str, tuple[tuple[int, int], bool]] = {}
        """By uid of a ReplicaSet made by others: whether its template is the Deployment's, at these generations."""
        self._selectors = Selectors()

    async def run(self) -> None:
        """Works until cancelled. The informers are run by whoever made them."""
        follow(self._replica_sets, self._replica_set_changed)
        follow(self._deployments, self._deployment_changed)
        self._pod_index.subscribe("ReplicaSet", self._pod_changed)
        await self._deployments.synced()
        await self._replica_sets.synced()
        await self._pods.synced()
        await self._queue.serve(self._sync)

    # ── what happened ──

    def _deployment_changed(self, key: Key, old: Deployment | None, new: Deployment | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._templates.pop(old.metadata.uid, None)
            self._selectors.forget(old.metadata.uid)
            self._queue.forget(key)
        if new is not None:
            self._queue.add(key)

    def _replica_set_changed(self, key: Key, old: ReplicaSet | None, new: ReplicaSet | None) -> None:
        before = None if old is None else controller_of(old.metadata)
        now = None if new is None else controller_of(new.metadata)
        if before is not None and (now is None or now.uid != before.uid):
            owned = self._owned.get(before.uid, {})
            owned.pop(key, None)
            if not owned:
                self._owned.pop(before.uid, None)
            self._queue.add((key[0], before.name))
        self._orphans.pop(key, None)
        if new is None:
            if old is not None:
                self._compared.pop(old.metadata.uid, None)
            return
        if now is None:
            self._orphans[key] = new
            for deployment_key in self._deployments.objects:
                if deployment_key[0] == key[0]:
                    self._queue.add(deployment_key)
        elif now.kind == DEPLOYMENTS.kind:
            self._owned.setdefault(now.uid, {})[key] = new
            self._queue.add((key[0], now.name))

    def _pod_changed(self, owner: Key, _key: Key, pod: Pod | None) -> None:
        # Only Recreate waits for pods themselves: the old ones must be gone, not just on their way.
        if pod is not None and not is_finished(pod):
            return
        rs = self._replica_sets.objects.get(owner)
        ref = None if rs is None else controller_of(rs.metadata)
        if ref is None or ref.kind != DEPLOYMENTS.kind:
            return
        deployment = self._deployments.objects.get((owner[0], ref.name))
        if deployment is not None and not is_rolling(deployment):
            self._queue.add((owner[0], ref.name))

    # ── bringing in line ──

    async def _sync(self, key: Key) -> None:
        deployment = self._deployments.objects.get(key)
        if deployment is None:
            return
        selector = deployment.spec.selector
        if selector is None or selector == LabelSelector():
            message = "This deployment is selecting all pods. A non-empty selector is required."
            await self._events.record(DEPLOYMENTS, deployment.metadata, "Warning", "SelectingAll", message)
            return
        every = list(self._owned.get(deployment.metadata.uid, {}).values())
        if deployment.metadata.deletion_timestamp is not None:
            template = await self._template(deployment)
            await self._write_status(deployment, await self._find_new(deployment, every, template), every)
            return
        await self._claim(deployment)
        template = await self._template(deployment)
        new = await self._find_new(deployment, every, template)
        old = [rs for rs in every if new is None or rs.metadata.uid != new.metadata.uid]
        if deployment.spec.paused or is_scaling(deployment, every):
            await self._scale(deployment, new, old)
        elif is_rolling(deployment):
            await self._roll(deployment, new, old, template)
        else:
            await self._recreate(deployment, new, old, template)

    async def _claim(self, deployment: Deployment) -> None:
        """Adopts ReplicaSets that nothing controls and the selector picks."""
        if not self._orphans:
            return
        meta = deployment.metadata
        selector = self._selectors.of(meta.uid, deployment.spec.selector)
        adopted = [
            rs
            for key, rs in self._orphans.items()
            if key[0] == meta.namespace
            and rs.metadata.deletion_timestamp is None
            and selector.matches(rs.metadata.labels or {})
        ]
        for rs in adopted:
            patch = owners_patch(rs.metadata, add=owner_reference(DEPLOYMENTS, meta))
            await self._cluster.patch(REPLICA_SETS, rs.metadata.name, patch, namespace=meta.namespace)
        if adopted:
            raise Conflict(
                f"deployments.apps {meta.name!r} has adopted {len(adopted)} ReplicaSet(s): looking again"
            )

    async def _scale(self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> None:
        changed = await self._resize(deployment, step_scale(deployment, new, old))
        if deployment.spec.paused:
            await self._clear_history(deployment, old)
        new, every = _after(changed, new, old)
        await self._write_status(deployment, new, every, rollout=False)

    async def _roll(
        self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], template: Json
    ) -> None:
        deployment, new = await self._ensure_new(deployment, new, old, template)
        changed = await self._resize(deployment, step_rolling_update(deployment, new, old))
        await self._finish(deployment, *_after(changed, new, old), moved=bool(changed))

    async def _recreate(
        self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], template: Json
    ) -> None:
        to_empty = [Resize(rs, 0) for rs in old if wanted_replicas(rs) > 0]
        if to_empty:
            changed = await self._resize(deployment, to_empty)
        elif any(
            not is_finished(pod)
            for rs in old
            for pod in self._pod_index.owned_by(rs.metadata.uid).pods.values()
        ):
            changed = []
        else:
            deployment, new = await self._ensure_new(deployment, new, old, template)
            wanted = wanted_replicas(deployment)
            up = [Resize(new, wanted)] if wanted_replicas(new) != wanted else []
            changed = await self._resize(deployment, up)
        await self._finish(deployment, *_after(changed, new, old), moved=bool(changed))

    async def _finish(
        self, deployment: Deployment, new: ReplicaSet | None, every: Sequence[ReplicaSet], *, moved: bool
    ) -> None:
        if not moved and is_complete(deployment, deployment.status):
            await self._clear_history(deployment, [rs for rs in every if rs is not new])
        await self._write_status(deployment, new, every)

    # ── ReplicaSets ──

    async def _template(self, deployment: Deployment) -> Json:
        """Gives the pod template with all fields a user sent; the cache holds only those in use."""
        meta = deployment.metadata
        known = self._templates.get(meta.uid)
        if known is not None and known[0] == meta.generation != 0:
            return known[1]
        live = await self._cluster.get(DEPLOYMENTS.untyped, meta.name, namespace=meta.namespace)
        if (
            live["metadata"].get("generation", 0) != meta.generation
            or live["metadata"].get("uid") != meta.uid
        ):
            raise Conflict(f"deployments.apps {meta.name!r} is newer than the cache: waiting for it")
        template: Json = live["spec"]["template"]
        self._templates[meta.uid] = (meta.generation, template)
        return template

    async def _find_new(
        self, deployment: Deployment, every: Sequence[ReplicaSet], template: Json
    ) -> ReplicaSet | None:
        """Gives the ReplicaSet of the present template: the oldest with its hash, else (made by others) with an equal template."""
        hash_ = template_hash(template, deployment.status.collision_count)
        ordered = sorted(every, key=lambda rs: (rs.metadata.creation_timestamp or "", rs.metadata.name))
        for rs in ordered:
            if (rs.metadata.labels or {}).get(HASH_LABEL) == hash_:
                return rs
        for rs in ordered:
            if looks_the_same(deployment, rs) and await self._is_the_same(deployment, rs, template):
                return rs
        return None

    async def _is_the_same(self, deployment: Deployment, rs: ReplicaSet, template: Json) -> bool:
        versions = deployment.metadata.generation, rs.metadata.generation
        known = self._compared.get(rs.metadata.uid)
        if known is None or known[0] != versions:
            live = await self._cluster.get(
                REPLICA_SETS.untyped, rs.metadata.name, namespace=rs.metadata.namespace
            )
            known = versions, without_hash(live["spec"]["template"]) == without_hash(template)
            self._compared[rs.metadata.uid] = known
        return known[1]

    async def _ensure_new(
        self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], template: Json
    ) -> tuple[Deployment, ReplicaSet]:
        """Gives the Deployment and its new ReplicaSet, made when missing, with the revision on both."""
        revision = max((revision_of(rs) for rs in old), default=0) + 1
        if new is None:
            new = await self._create(deployment, old, template, revision)
            message = f'Created new replica set "{new.metadata.name}"'
            deployment = await self._note_progress(deployment, "NewReplicaSetCreated", message)
        else:
            wanted = copied_annotations(deployment)
            if revision_of(new) < revision:
                wanted[REVISION] = str(revision)
            present = new.metadata.annotations or {}
            missing = {name: value for name, value in wanted.items() if present.get(name) != value}
            patch: Json = {"metadata": {"annotations": missing}} if missing else {}
            if new.spec.min_ready_seconds != deployment.spec.min_ready_seconds:
                patch["spec"] = {"minReadySeconds": deployment.spec.min_ready_seconds}
            if patch:
                new = await self._patch(new, patch)
            if condition_of(deployment, "Progressing") is None:
                message = f'Found new replica set "{new.metadata.name}"'
                deployment = await self._note_progress(deployment, "FoundNewReplicaSet", message)
        text = str(revision_of(new))
        if (deployment.metadata.annotations or {}).get(REVISION) != text:
            deployment = await self._cluster.patch(
                DEPLOYMENTS,
                deployment.metadata.name,
                {"metadata": {"annotations": {REVISION: text}}},
                namespace=deployment.metadata.namespace,
            )
        return deployment, new

    async def _create(
        self, deployment: Deployment, old: Sequence[ReplicaSet], template: Json, revision: int
    ) -> ReplicaSet:
        meta = deployment.metadata
        hash_ = template_hash(template, deployment.status.collision_count)
        size = new_replicas(deployment, old, 0)
        body = replica_set_body(deployment, template, hash_)
        body["spec"]["replicas"] = size
        body["metadata"]["annotations"] = {
            **copied_annotations(deployment),
            **size_annotations(deployment),
            REVISION: str(revision),
        }
        try:
            new = await self._cluster.create(REPLICA_SETS, body, namespace=meta.namespace)
        except AlreadyExists:
            await self._name_taken(deployment, body["metadata"]["name"])
            raise
        except ApiError as error:
            message = f'Failed to create new replica set "{body["metadata"]["name"]}": {error}'
            await self._events.record(DEPLOYMENTS, meta, "Warning", "ReplicaSetCreateError", message)
            raise
        if size > 0:
            await self._scaled_event(deployment, new, 0, size)
        return new

    async def _name_taken(self, deployment: Deployment, name: str) -> None:
        """Moves on to another name when the ReplicaSet of that name is not this Deployment's."""
        meta = deployment.metadata
        try:
            other = await self._cluster.get(REPLICA_SETS, name, namespace=meta.namespace)
        except NotFound:
            return
        owner = controller_of(other.metadata)
        if owner is None or owner.uid != meta.uid:
            await self._cluster.patch(
                DEPLOYMENTS,
                meta.name,
                {"status": {"collisionCount": deployment.status.collision_count + 1}},
                namespace=meta.namespace,
                subresource="status",
            )

    async def _resize(self, deployment: Deployment, steps: Sequence[Resize]) -> list[ReplicaSet]:
        """Carries out resizes; gives the ReplicaSets as they are then."""
        changed = []
        for rs, replicas in steps:
            patch: Json = {"metadata": {"annotations": size_annotations(deployment)}}
            before = wanted_replicas(rs)
            if before != replicas:
                patch["spec"] = {"replicas": replicas}
            changed.append(await self._patch(rs, patch))
            if before != replicas:
                await self._scaled_event(deployment, rs, before, replicas)
        return changed

    async def _scaled_event(self, deployment: Deployment, rs: ReplicaSet, before: int, now: int) -> None:
        way = "up" if now > before else "down"
        message = f"Scaled {way} replica set {rs.metadata.name} from {before} to {now}"
        await self._events.record(DEPLOYMENTS, deployment.metadata, "Normal", "ScalingReplicaSet", message)

    async def _patch(self, rs: ReplicaSet, patch: Json) -> ReplicaSet:
        """Patches a ReplicaSet only as it was read: sizes are decided on what the cache showed."""
        metadata = {**patch.get("metadata", {}), "resourceVersion": rs.metadata.resource_version}
        return await self._cluster.patch(
            REPLICA_SETS, rs.metadata.name, {**patch, "metadata": metadata}, namespace=rs.metadata.namespace
        )

    async def _clear_history(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> None:
        for rs in history_to_delete(deployment, old):
            await self._cluster.delete(
                REPLICA_SETS, rs.metadata.name, namespace=rs.metadata.namespace, uid=rs.metadata.uid
            )

    # ── status ──

    async def _note_progress(self, deployment: Deployment, reason: str, message: str) -> Deployment:
        if not has_deadline(deployment):
            return deployment
        now = self._clock.now()
        status = with_condition(deployment.status, "Progressing", "True", reason, message, now=now)
        return await self._patch_status(deployment, status)

    async def _write_status(
        self,
        deployment: Deployment,
        new: ReplicaSet | None,
        every: Sequence[ReplicaSet],
        *,
        rollout: bool = True,
    ) -> None:
        now = self._clock.now()
        status = with_availability(deployment, counts(deployment, new, every), now)
        if deployment.spec.paused and has_deadline(deployment):
            status = with_condition(
                status, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now=now
            )
        elif _was_paused(deployment) and has_deadline(deployment):
            status = with_condition(
                status, "Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed", now=now
            )
        elif rollout:
            status = with_progress(deployment, status, new, now)
        await self._patch_status(deployment, status)
        due = progress_due(structs.replace(deployment, status=status))
        if due is not None and not is_complete(deployment, status):
            # A second later, as the times in the status are whole seconds.
            key = deployment.metadata.namespace, deployment.metadata.name
            self._queue.add_at(key, after(max(due, now), seconds(1)))

    async def _patch_status(self, deployment: Deployment, status: WorkloadStatus) -> Deployment:
        patch = status_patch(deployment.status, status)
        if patch is None:
            return deployment
        return await self._cluster.patch(
            DEPLOYMENTS,
            deployment.metadata.name,
            patch,
            namespace=deployment.metadata.namespace,
            subresource="status",
        )


def _after(
    changed: Sequence[ReplicaSet], new: ReplicaSet | None, old: Sequence[ReplicaSet]
) -> tuple[ReplicaSet | None, list[ReplicaSet]]:
    """Gives the new ReplicaSet and all of them, with the changed ones in place of what was read."""
    fresh = {rs.metadata.uid: rs for rs in changed}
    every = [fresh.get(rs.metadata.uid, rs) for rs in old]
    if new is None:
        return None, every
    new = fresh.get(new.metadata.uid, new)
    return new, [*every, new]


def _was_paused(deployment: Deployment) -> bool:
    known = condition_of(deployment, "Progressing")
    return known is not None and known.reason == "DeploymentPaused"
