"""The nodes that have joined, as the protocol describes them to a provider: a server may know its machines by name or label."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final, Protocol

from kubetide.objects.kinds import NODES
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node, NodeSpec
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Instance, instance_id
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import CloudError
from kubetide.watching import Informer

_FAKE_NODE_REASON: Final = "k8s.io/cluster-autoscaler/fake-node-reason"


class JoinedNodes(Protocol):
    """The nodes of the cluster."""

    @property
    def problem(self) -> str:
        """Why what is known of them may be old; empty while they are watched."""
        ...

    def by_machine(self) -> Mapping[str, Node]:
        """Return all nodes by the provider ids of their instances. Raises CloudError before the first list."""
        ...


class WatchedNodes:
    """The nodes as a watch shows them."""

    def __init__(self, informer: Informer[Node]) -> None:
        self._informer = informer

    @property
    def problem(self) -> str:
        """Why what is known of them may be old; empty while they are watched."""
        return f"the nodes cannot be watched: {self._informer.last_error}" if self._informer.failures else ""

    def by_machine(self) -> Mapping[str, Node]:
        """Return all nodes by the provider ids of their instances. Raises CloudError before the first list."""
        if not self._informer.has_synced:
            raise CloudError(f"the nodes have not been listed yet{self.problem and ': '}{self.problem}")
        return {instance_id(node): node for node in self._informer.objects.values()}


@asynccontextmanager
async def joined_nodes(cluster: Cluster | None, clock: Clock) -> AsyncIterator[JoinedNodes | None]:
    """Yield the nodes, and watch them as long as it is open; None without a cluster."""
    if cluster is None:
        yield None
        return
    informer: Informer[Node] = Informer(cluster, NODES, clock, keep=_described)
    async with informer.running():
        yield WatchedNodes(informer)


def stand_in(instance: Instance) -> Node:
    """Return what upstream describes a machine by that has no node."""
    reason = "create-error" if instance.error else "unregistered"
    return Node(
        metadata=ObjectMeta(name=instance.provider_id, annotations={_FAKE_NODE_REASON: reason}),
        spec=NodeSpec(provider_id=instance.provider_id),
    )


def _described(node: Node) -> Node:
    """Keep what the protocol says of a node."""
    meta = node.metadata
    return Node(
        metadata=ObjectMeta(name=meta.name, labels=meta.labels, annotations=meta.annotations),
        spec=NodeSpec(provider_id=node.spec.provider_id),
    )
