"""The Deployment controller: rollouts from one ReplicaSet to the next."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.acting import EventWriter
from kubetide.embedded.controllers.changes import KnownStatuses
from kubetide.embedded.controllers.work_queue import WorkQueue
from kubetide.embedded.controllers.workloads.deployment_templates import DeploymentTemplates
from kubetide.embedded.controllers.workloads.deployment_writes import DeploymentWriter
from kubetide.embedded.controllers.workloads.owned_pods import PodIndex, follow
from kubetide.embedded.controllers.workloads.rollout import (
    Resize,
    desired_replicas,
    is_rolling,
    is_scaling,
    step_rolling_update,
    step_scale,
)
from kubetide.embedded.controllers.workloads.rollout_status import (
    condition_of,
    counts,
    has_deadline,
    is_complete,
    progress_due,
    with_availability,
    with_condition,
    with_progress,
)
from kubetide.embedded.controllers.workloads.templates import Selectors, owner_reference, owners_patch
from kubetide.objects.base import Json
from kubetide.objects.kinds import DEPLOYMENTS, REPLICA_SETS
from kubetide.objects.meta import Key, LabelSelector, controller_of
from kubetide.objects.pod import Pod, is_finished
from kubetide.objects.workload import Deployment, ReplicaSet, WorkloadStatus
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import Conflict
from kubetide.units.time import after, seconds
from kubetide.watching import Informer


class DeploymentController:
    """Makes, sizes and clears away the ReplicaSets of Deployments, and keeps their status.

    Scaled in the midst of a rolling update, the change is shared among the ReplicaSets in
    proportion to their sizes (``rollout.step_scale``). Roll-back by annotation is not done.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
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
        self._events = EventWriter(cluster, clock, "deployment-controller")
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._owned: dict[str, dict[Key, ReplicaSet]] = {}
        self._orphans: dict[Key, ReplicaSet] = {}
        self._templates = DeploymentTemplates(cluster)
        self._writer = DeploymentWriter(cluster, clock, self._events)
        self._statuses = KnownStatuses()
        self._selectors = Selectors()

    async def run(self) -> None:
        """Work until cancelled. The informers are run by whoever made them."""
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
            self._templates.forget_deployment(old.metadata.uid)
            self._statuses.forget(old.metadata.uid)
            self._selectors.forget(old.metadata.uid)
            self._queue.forget(key)
        if new is not None and not self._statuses.is_echo(old, new):
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
                self._templates.forget_replica_set(old.metadata.uid)
            return
        if now is None:
            self._orphans[key] = new
            for deployment_key in self._deployments.objects:
                if deployment_key[0] == key[0]:
                    self._queue.add(deployment_key)
        elif now.kind == DEPLOYMENTS.kind:
            self._owned.setdefault(now.uid, {})[key] = new
            self._queue.add((key[0], now.name))

    def _pod_changed(
        self,
        owner: Key,
        _key: Key,
        pod: Pod | None,
        *,
        active: bool,  # noqa: ARG002  # also a pod on its way out is waited for
    ) -> None:
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
        if deployment.metadata.deletion_timestamp is None:
            await self._claim(deployment)
        template = await self._templates.read(deployment)
        new = await self._templates.find_new(deployment, every, template)
        if deployment.metadata.deletion_timestamp is not None:
            await self._write_status(deployment, new, every)
            return
        old = [rs for rs in every if new is None or rs.metadata.uid != new.metadata.uid]
        if deployment.spec.paused or is_scaling(deployment, every):
            await self._scale(deployment, new, old)
        elif is_rolling(deployment):
            await self._roll(deployment, new, old, template)
        else:
            await self._recreate(deployment, new, old, template)

    async def _claim(self, deployment: Deployment) -> None:
        """Adopt ReplicaSets that nothing controls and the selector picks."""
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
        if await self._writer.resize(deployment, step_scale(deployment, new, old)):
            return  # as in _finish
        if deployment.spec.paused:
            await self._writer.clear_history(deployment, old)
        await self._write_status(deployment, new, _all(new, old), rollout=False)

    async def _roll(
        self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], template: Json
    ) -> None:
        deployment, new = await self._ensure_new(deployment, new, old, template)
        moved = await self._writer.resize(deployment, step_rolling_update(deployment, new, old))
        await self._finish(deployment, new, old, moved=moved)

    async def _recreate(
        self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], template: Json
    ) -> None:
        to_empty = [Resize(rs, 0) for rs in old if desired_replicas(rs) > 0]
        if to_empty:
            moved = await self._writer.resize(deployment, to_empty)
        elif any(
            not is_finished(pod)
            for rs in old
            for pod in self._pod_index.owned_by(rs.metadata.uid).pods.values()
        ):
            moved = False
        else:
            deployment, new = await self._ensure_new(deployment, new, old, template)
            desired = desired_replicas(deployment)
            up = [Resize(new, desired)] if desired_replicas(new) != desired else []
            moved = await self._writer.resize(deployment, up)
        await self._finish(deployment, new, old, moved=moved)

    async def _ensure_new(
        self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], template: Json
    ) -> tuple[Deployment, ReplicaSet]:
        if new is not None:
            return await self._writer.update_new(deployment, new, old)
        hash_ = self._templates.hash_of(deployment, template)
        return await self._writer.create_new(deployment, old, template, hash_)

    async def _finish(
        self, deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet], *, moved: bool
    ) -> None:
        # A ReplicaSet that was resized asks for the next sync when the cache shows it, and that one
        # writes the status with it: one write instead of two.
        if moved:
            return
        status = await self._write_status(deployment, new, _all(new, old))
        if is_complete(deployment, status):
            await self._writer.clear_history(deployment, old)

    # ── status ──

    async def _write_status(
        self,
        deployment: Deployment,
        new: ReplicaSet | None,
        every: Sequence[ReplicaSet],
        *,
        rollout: bool = True,
    ) -> WorkloadStatus:
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
        self._statuses.note(deployment.metadata.uid, status)
        await self._writer.patch_status(deployment, status)
        due = None if is_complete(deployment, status) else progress_due(deployment, status)
        if due is not None:
            # A second later, as the times in the status are whole seconds.
            key = deployment.metadata.namespace, deployment.metadata.name
            self._queue.add_at(key, after(max(due, now), seconds(1)))
        return status


def _all(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    return [*old] if new is None else [*old, new]


def _was_paused(deployment: Deployment) -> bool:
    known = condition_of(deployment.status, "Progressing")
    return known is not None and known.reason == "DeploymentPaused"
