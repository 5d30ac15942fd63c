"""How a pod waits for its claims once it has a node: what kube-scheduler does before it binds.

Source: kube-scheduler v1.36, VolumeBinding in Reserve and PreBind.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubetide.embedded.controllers.scheduling.scheduling_queue import Waiting
from kubetide.embedded.controllers.scheduling.volume_cache import VolumeCache
from kubetide.embedded.controllers.volume_plan import volume_patch
from kubetide.objects.kinds import CLAIMS, PERSISTENT_VOLUMES
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.ports.cluster import Cluster
from kubetide.scheduling import PodClass
from kubetide.scheduling.filters.binding_rules import match_static, sort_claims
from kubetide.scheduling.snapshot.volumes import SELECTED_NODE, is_bound
from kubetide.units.time import Duration, Instant, after, minutes

NO_VOLUMES = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
"""What kube-scheduler says of a pod whose claims got no volumes in time."""

_PATIENCE: Duration = minutes(10)


@dataclass
class Held:
    """A pod that has a node and waits for its claims."""

    entry: Waiting
    pod: Pod
    node: str
    due: Instant


class ClaimBinder:
    """Chooses the volumes that the claims of a pod get on its node, and knows when all have theirs."""

    def __init__(self, cluster: Cluster, volumes: VolumeCache) -> None:
        self._cluster = cluster
        self._volumes = volumes
        self.held: dict[Key, Held] = {}

    def is_bound(self, pod_class: PodClass) -> bool:
        """Return whether every claim of the class has its volume for good."""
        claims = self._volumes.objects[CLAIMS]
        found = [claims.get((use.namespace, use.name)) for use in pod_class.claims]
        return all(claim is not None and is_bound(claim) for claim in found)

    async def hold(self, entry: Waiting, pod: Pod, node: Node, now: Instant) -> None:
        """Return free volumes to the pod's claims, or says for which node they are to be made. Raises ApiError."""
        volumes = self._volumes.objects.volumes()
        waiting = [
            claim
            for claim in sort_claims(entry.pod_class, volumes).waiting
            if SELECTED_NODE not in (claim.metadata.annotations or {})
        ]
        matches = match_static(waiting, volumes, node.metadata.labels or {})
        self.held[entry.key] = Held(entry, pod, node.metadata.name, after(now, _PATIENCE))
        for claim, volume in matches.found:
            patch = volume_patch(volume, claim)
            if patch is not None:
                patch.setdefault("metadata", {})["resourceVersion"] = volume.metadata.resource_version
                changed = await self._cluster.patch(PERSISTENT_VOLUMES, volume.metadata.name, patch)
                # Taken at once, so that no other pod is promised the volume.
                self._volumes.objects.put(PERSISTENT_VOLUMES, ("", volume.metadata.name), changed)
        for claim in matches.left:
            meta = claim.metadata
            notes = {"metadata": {"uid": meta.uid, "annotations": {SELECTED_NODE: node.metadata.name}}}
            await self._cluster.patch(CLAIMS, meta.name, notes, namespace=meta.namespace)

    def drop(self, key: Key) -> None:
        """Forget a pod that waits no longer."""
        self.held.pop(key, None)

    def ready(self) -> list[Held]:
        """Return the pods whose claims all have their volumes, in the order in which they got their nodes."""
        return [one for one in self.held.values() if self.is_bound(one.entry.pod_class)]

    def overdue(self, now: Instant) -> list[Held]:
        """Return the pods that have waited for too long."""
        return [one for one in self.held.values() if one.due <= now]

    def next_due(self) -> Instant | None:
        """Return when the first of them has waited for too long."""
        return min((one.due for one in self.held.values()), default=None)
