"""The pod templates of Deployments as users sent them, and which ReplicaSet was made from which."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.embedded.controllers.workloads.new_replica_set import looks_the_same, without_hash
from kubetide.embedded.controllers.workloads.rollout import HASH_LABEL, age
from kubetide.embedded.controllers.workloads.templates import template_hash
from kubetide.objects.base import Json
from kubetide.objects.kinds import DEPLOYMENTS, REPLICA_SETS
from kubetide.objects.workload import Deployment, ReplicaSet
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import Conflict


class DeploymentTemplates:
    """Reads templates in full, once a generation; the caches of the controllers hold only the fields in use."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._templates: dict[str, tuple[int, Json]] = {}
        self._hashes: dict[str, tuple[int, int, str]] = {}
        """By uid of a Deployment: generation, collisions, and the hash that they give."""
        self._compared: dict[str, tuple[tuple[int, int], bool]] = {}
        """By uid of a ReplicaSet made by others: whether its template is the Deployment's, at these generations."""

    def forget_deployment(self, uid: str) -> None:
        """Drop a Deployment that is gone."""
        self._templates.pop(uid, None)
        self._hashes.pop(uid, None)

    def forget_replica_set(self, uid: str) -> None:
        """Drop a ReplicaSet that is gone."""
        self._compared.pop(uid, None)

    async def read(self, deployment: Deployment) -> Json:
        """Return the template of the Deployment as the cache has it. Raises Conflict when there is a newer one."""
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

    def hash_of(self, deployment: Deployment, template: Json) -> str:
        """Return the hash by which the ReplicaSet of the template is named."""
        meta, collisions = deployment.metadata, deployment.status.collision_count
        known = self._hashes.get(meta.uid)
        if known is not None and known[0] == meta.generation != 0 and known[1] == collisions:
            return known[2]
        hash_ = template_hash(template, collisions)
        self._hashes[meta.uid] = (meta.generation, collisions, hash_)
        return hash_

    async def find_new(
        self, deployment: Deployment, every: Sequence[ReplicaSet], template: Json
    ) -> ReplicaSet | None:
        """Return the ReplicaSet of the present template: the oldest with its hash, else (made by others) with an equal template."""
        hash_ = self.hash_of(deployment, template)
        ordered = sorted(every, key=age) if len(every) > 1 else every
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
