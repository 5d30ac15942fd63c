"""What a Deployment's sync writes: ReplicaSets made, sized and removed, events, and the status."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.acting import EventWriter
from kubetide.embedded.controllers.workloads.new_replica_set import copied_annotations, replica_set_body
from kubetide.embedded.controllers.workloads.rollout import (
    REVISION,
    Resize,
    desired_replicas,
    history_to_delete,
    new_replicas,
    revision_of,
    size_annotations,
)
from kubetide.embedded.controllers.workloads.rollout_status import condition_of, has_deadline, with_condition
from kubetide.embedded.controllers.workloads.templates import status_patch
from kubetide.objects.base import Json
from kubetide.objects.kinds import DEPLOYMENTS, REPLICA_SETS
from kubetide.objects.meta import controller_of
from kubetide.objects.workload import Deployment, ReplicaSet, WorkloadStatus
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, ApiError, NotFound


class DeploymentWriter:
    """Carries out what a sync has decided."""

    def __init__(self, cluster: Cluster, clock: Clock, events: EventWriter) -> None:
        self._cluster = cluster
        self._clock = clock
        self._events = events

    async def create_new(
        self, deployment: Deployment, old: Sequence[ReplicaSet], template: Json, hash_: str
    ) -> tuple[Deployment, ReplicaSet]:
        """Make the ReplicaSet of a template; return the Deployment with its revision, and the ReplicaSet."""
        new = await self._create(deployment, old, template, hash_)
        message = f'Created new replica set "{new.metadata.name}"'
        deployment = await self._note_progress(deployment, "NewReplicaSetCreated", message)
        return await self._take_revision(deployment, new), new

    async def update_new(
        self, deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]
    ) -> tuple[Deployment, ReplicaSet]:
        """Bring the annotations of the present ReplicaSet in line, and the revision on both."""
        revision = _next_revision(old)
        desired = copied_annotations(deployment)
        if revision_of(new) < revision:
            desired[REVISION] = str(revision)
        present = new.metadata.annotations or {}
        missing = {name: value for name, value in desired.items() if present.get(name) != value}
        patch: Json = {"metadata": {"annotations": missing}} if missing else {}
        if new.spec.min_ready_seconds != deployment.spec.min_ready_seconds:
            patch["spec"] = {"minReadySeconds": deployment.spec.min_ready_seconds}
        if patch:
            new = await self._patch(new, patch)
        if condition_of(deployment.status, "Progressing") is None:
            message = f'Found new replica set "{new.metadata.name}"'
            deployment = await self._note_progress(deployment, "FoundNewReplicaSet", message)
        return await self._take_revision(deployment, new), new

    async def _take_revision(self, deployment: Deployment, new: ReplicaSet) -> Deployment:
        meta, text = deployment.metadata, str(revision_of(new))
        if (meta.annotations or {}).get(REVISION) == text:
            return deployment
        patch = {"metadata": {"annotations": {REVISION: text}}}
        return await self._cluster.patch(DEPLOYMENTS, meta.name, patch, namespace=meta.namespace)

    async def _create(
        self, deployment: Deployment, old: Sequence[ReplicaSet], template: Json, hash_: str
    ) -> ReplicaSet:
        meta = deployment.metadata
        size = new_replicas(deployment, old, 0)
        body = replica_set_body(deployment, template, hash_)
        body["spec"]["replicas"] = size
        body["metadata"]["annotations"] = {
            **copied_annotations(deployment),
            **size_annotations(deployment),
            REVISION: str(_next_revision(old)),
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
        """Move on to another name when the ReplicaSet of that name is not this Deployment's."""
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

    async def resize(self, deployment: Deployment, steps: Sequence[Resize]) -> bool:
        """Carry out resizes; return whether there were any."""
        for rs, replicas in steps:
            patch: Json = {"metadata": {"annotations": size_annotations(deployment)}}
            before = desired_replicas(rs)
            if before != replicas:
                patch["spec"] = {"replicas": replicas}
            await self._patch(rs, patch)
            if before != replicas:
                await self._scaled_event(deployment, rs, before, replicas)
        return bool(steps)

    async def _scaled_event(self, deployment: Deployment, rs: ReplicaSet, before: int, now: int) -> None:
        way = "up" if now > before else "down"
        message = f"Scaled {way} replica set {rs.metadata.name} from {before} to {now}"
        await self._events.record(DEPLOYMENTS, deployment.metadata, "Normal", "ScalingReplicaSet", message)

    async def _patch(self, rs: ReplicaSet, patch: Json) -> ReplicaSet:
        """Patch a ReplicaSet only as it was read: sizes are decided on what the cache showed."""
        metadata = {**patch.get("metadata", {}), "resourceVersion": rs.metadata.resource_version}
        return await self._cluster.patch(
            REPLICA_SETS, rs.metadata.name, {**patch, "metadata": metadata}, namespace=rs.metadata.namespace
        )

    async def clear_history(self, deployment: Deployment, old: Sequence[ReplicaSet]) -> None:
        """Remove the ReplicaSets past the history limit."""
        for rs in history_to_delete(deployment, old):
            await self._cluster.delete(
                REPLICA_SETS, rs.metadata.name, namespace=rs.metadata.namespace, uid=rs.metadata.uid
            )

    async def _note_progress(self, deployment: Deployment, reason: str, message: str) -> Deployment:
        if not has_deadline(deployment):
            return deployment
        now = self._clock.now()
        status = with_condition(deployment.status, "Progressing", "True", reason, message, now=now)
        return await self.patch_status(deployment, status)

    async def patch_status(self, deployment: Deployment, status: WorkloadStatus) -> Deployment:
        """Write what has changed in the status; return the Deployment as it is then."""
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


def _next_revision(old: Sequence[ReplicaSet]) -> int:
    return max((revision_of(rs) for rs in old), default=0) + 1
