"""The node side of the kubelets: heartbeats, leases, and health as the control plane sees it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Literal

from kubetide.embedded.kubelet.disruption_modes import evicting
from kubetide.embedded.kubelet.statuses import (
    node_heartbeat,
    node_ready_conditions,
    node_taints,
    with_eviction,
)
from kubetide.objects.base import Json
from kubetide.objects.kinds import LEASES, NAMESPACES, NODES
from kubetide.objects.node import Node, internal_ip
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, ApiError, Conflict, NotFound
from kubetide.scheduling.pods.resources import node_allocatable
from kubetide.units.time import Instant, format_rfc3339_micro
from kubetide.watching import Informer

Health = Literal["True", "False", "Unknown"]

_LEASE_NAMESPACE = "kube-node-lease"
_LEASE_SECONDS = 40


class NodeKeeper:
    """Which nodes are animated, which of them fail, and what is written to them."""

    def __init__(
        self, cluster: Cluster, clock: Clock, nodes: Informer[Node], animates: Callable[[Node], bool]
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._nodes = nodes
        self._animates = animates
        self._failing: dict[str, Health] = {}
        self._silent: set[str] = set()

    def has(self, name: str) -> bool:
        """Return whether the node exists."""
        return ("", name) in self._nodes.objects

    def animates(self, name: str) -> bool:
        """Return whether the node exists and these are its kubelets."""
        node = self._nodes.objects.get(("", name))
        return node is not None and self._animates(node)

    def address(self, name: str) -> str:
        """The node's own address, empty where it has none."""
        node = self._nodes.objects.get(("", name))
        return "" if node is None else internal_ip(node)

    def allocatable(self, name: str) -> dict[str, int]:
        """Return what the node offers to pods, milli-CPU and bytes; nothing where it is gone."""
        node = self._nodes.objects.get(("", name))
        return {} if node is None else node_allocatable(node)

    def is_failing(self, name: str) -> bool:
        """Return whether the node was made unhealthy, or has fallen silent."""
        return name in self._failing or name in self._silent

    def has_lost_nodes(self) -> bool:
        """Return whether there are nodes that were made unhealthy."""
        return bool(self._failing)

    def forget(self, name: str) -> None:
        """Forget a node that is gone."""
        self._failing.pop(name, None)
        self._silent.discard(name)

    def silence(self, name: str) -> None:
        """Write nothing about the node from now on, and let no pod of it end."""
        self._silent.add(name)

    async def set_health(self, name: str, health: Health) -> None:
        """Write the node's Ready condition and its taint. Raises NotFound, and other errors of the port."""
        if health == "True":
            self._failing.pop(name, None)
        else:
            self._failing[name] = health
        await self._change_taints(name, lambda taints, now: node_taints(taints, health, now))
        node = await self._cluster.get(NODES, name)
        conditions = node_ready_conditions(node.status.conditions or (), health, self._clock.now())
        await self._cluster.patch(NODES, name, {"status": {"conditions": conditions}}, subresource="status")

    async def settle_evictions(self) -> bool:
        """Give the nodes that were made unhealthy the taint that evicts their pods, or take it off while too many are.

        Return whether all could be written.
        """
        for name, evicts in evicting(self._nodes.objects.values(), self._failing).items():
            health = self._failing.get(name)
            if evicts is None or health is None:
                continue
            try:
                await self._change_taints(name, partial(with_eviction, health, evicts))
            except NotFound:
                continue
            except ApiError:
                return False
        return True

    async def _change_taints(self, name: str, change: Callable[[list[Json], Instant], list[Json]]) -> None:
        """Change the taints of a node as it is now. Raises NotFound, and other errors of the port."""
        while True:
            raw = await self._cluster.get(NODES.untyped, name)
            before: list[Json] = raw.get("spec", {}).get("taints") or []
            taints = change([*before], self._clock.now())
            if taints == before:
                return
            version = {"resourceVersion": raw["metadata"]["resourceVersion"]}
            patch = {"metadata": version, "spec": {"taints": taints or None}}
            try:
                await self._cluster.patch(NODES, name, patch)
            except Conflict:
                continue
            return

    async def confirm_statuses(self) -> None:
        """Confirm the status of each healthy node; one that others have just written is left to the next time."""
        now = self._clock.now()
        for node in self._healthy():
            patch = {
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "status": {"conditions": node_heartbeat(node.status.conditions or (), now)},
            }
            with suppress(ApiError):
                await self._cluster.patch(NODES, node.metadata.name, patch, subresource="status")

    async def renew_leases(self) -> None:
        """Renew the lease of each healthy node, and make those that are missing."""
        at = format_rfc3339_micro(self._clock.now())
        for node in self._healthy():
            name = node.metadata.name
            with suppress(ApiError):
                try:
                    await self._cluster.patch(
                        LEASES, name, {"spec": {"renewTime": at}}, namespace=_LEASE_NAMESPACE
                    )
                except NotFound:
                    await self._create_lease(node, at)

    async def _create_lease(self, node: Node, at: str) -> None:
        name = node.metadata.name
        with suppress(AlreadyExists):
            await self._cluster.create(
                NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _LEASE_NAMESPACE}}
            )
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid}
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": at},
        }
        await self._cluster.create(LEASES, body, namespace=_LEASE_NAMESPACE)

    def _healthy(self) -> list[Node]:
        """Animated nodes that do not fail, by name."""
        return [
            node
            for (_, name), node in sorted(self._nodes.objects.items(), key=lambda item: item[0])
            if not self.is_failing(name) and self._animates(node)
        ]
