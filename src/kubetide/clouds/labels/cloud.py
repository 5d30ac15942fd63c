"""A cloud that is only looked at: the nodes that there are, in groups by one of their labels.

Nothing is known of machines that have no node, so the size of a group is the number of its nodes, and a live node is
the template of new ones. What a provider would have to do is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from kubetide.clouds.common.template import INSTANCE_TYPE, ZONE
from kubetide.clouds.labels.config import GroupsConfig
from kubetide.objects.kinds import NODES
from kubetide.objects.node import Node
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud, Instance, NodeGroup, Offering, instance_id
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import CloudError
from kubetide.units.lists import listed
from kubetide.watching import Informer

NAME = "labels"
_MOST = 5
"""Groups that are named where one has no node: its name may be written wrongly."""


class LabelsCloud(Cloud):
    """See the module. Groups that a configuration names with a minimum are there without nodes, too."""

    name = NAME
    gpu_label = ""

    def __init__(self, cluster: Cluster, clock: Clock, config: GroupsConfig) -> None:
        self._config = config
        self._nodes: Informer[Node] = Informer(cluster, NODES, clock, keep=_slim)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Cloud]:
        """Watch the nodes as long as it is open."""
        async with self._nodes.running():
            yield self

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return the groups of the nodes that there are, by id. Raises: CloudError before the first list."""
        if not self._nodes.has_synced:
            problem = f": {self._nodes.last_error}" if self._nodes.last_error else ""
            raise CloudError(f"the nodes have not been listed yet{problem}")
        members: dict[str, list[Node]] = {name: [] for name in self._config.groups if name != "*"}
        for _, node in sorted(self._nodes.objects.items()):
            group = self.group_of(node)
            if group:
                members.setdefault(group, []).append(node)
        there = [name for name in sorted(members) if members[name]]
        return [self._group(name, members[name], there) for name in sorted(members)]

    def group_of(self, node: Node) -> str:
        """Return the group that a node's labels name; empty for none."""
        labels = node.metadata.labels or {}
        return next((labels[key] for key in self._config.labels if labels.get(key)), "")

    def _group(self, name: str, nodes: list[Node], there: Sequence[str]) -> NodeGroup:
        bounds = self._config.bounds_of(name)
        instances = [Instance(provider_id=instance_id(node)) for node in nodes]
        return NodeGroup(
            id=name,
            min_size=bounds.min,
            max_size=bounds.max,
            target_size=len(instances),
            instances=tuple(instances),
            template_error="the provider `labels` knows new nodes by live ones only, and the group has none"
            + ("" if nodes else f"; there are nodes of {listed(there, _MOST, 'groups') or 'no group'}"),
            price_per_hour=bounds.price,
            offerings=_way_of(nodes, bounds.price),
            debug=f"{name} ({bounds.min}:{bounds.max}), by label",
        )

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Refuse. Raises: CloudError."""
        raise CloudError(f"{group_id}: {delta} more nodes: {_READ_ONLY}")

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Refuse. Raises: CloudError."""
        raise CloudError(f"{group_id}: {delta} fewer nodes: {_READ_ONLY}")

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """Refuse. Raises: CloudError."""
        del force
        raise CloudError(f"{group_id}: deletion of {len(provider_ids)} nodes: {_READ_ONLY}")


def _way_of(nodes: Sequence[Node], price: float | None) -> tuple[Offering, ...] | None:
    """Return the one type that all nodes are of, in their zone where they have one; None for several types."""
    types, zones = (
        {(node.metadata.labels or {}).get(key, "") for node in nodes} for key in (INSTANCE_TYPE, ZONE)
    )
    if len(types) != 1 or types == {""}:
        return None
    zone = zones.pop() if len(zones) == 1 else ""
    return (Offering(instance_type=types.pop(), zone=zone, price_per_hour=price),)


_READ_ONLY = "the provider `labels` is read only; name the provider of your cloud to act"


def _slim(node: Node) -> Node:
    meta = node.metadata
    slim = type(meta)(name=meta.name, labels=meta.labels, resource_version=meta.resource_version)
    return Node(metadata=slim, spec=type(node.spec)(provider_id=node.spec.provider_id))
