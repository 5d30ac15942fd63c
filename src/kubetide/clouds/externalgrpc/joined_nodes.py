"""The nodes that have joined, as deletions describe them to a provider: a server may know its machines by name or label."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from kubetide.objects.kinds import NODES
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node, NodeSpec
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import instance_id
from kubetide.ports.cluster import Cluster
from kubetide.watching import Informer

NodeOf = Callable[[str], Node | None]
"""Returns the node of an instance, None for one that has not joined."""


@asynccontextmanager
async def joined_nodes(cluster: Cluster | None, clock: Clock) -> AsyncIterator[NodeOf]:
    """Yield what finds nodes by their instances, and watch them as long as it is open; without a cluster there are none."""
    if cluster is None:
        yield lambda _: None
        return
    informer: Informer[Node] = Informer(cluster, NODES, clock, keep=_described)

    def node_of(wanted: str) -> Node | None:
        return next((node for node in informer.objects.values() if instance_id(node) == wanted), None)

    async with informer.running():
        yield node_of


def _described(node: Node) -> Node:
    """Keep what the protocol says of a node."""
    meta = node.metadata
    return Node(
        metadata=ObjectMeta(name=meta.name, labels=meta.labels, annotations=meta.annotations),
        spec=NodeSpec(provider_id=node.spec.provider_id),
    )
