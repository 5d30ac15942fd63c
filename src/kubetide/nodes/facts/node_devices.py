"""Node-local devices, and the claims that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubetide.objects.pod import Pod
from kubetide.objects.resource import ResourceSlice
from kubetide.scheduling import Snapshot
from kubetide.scheduling.devices.ledger import Ledger
from kubetide.scheduling.devices.offers import DeviceId
from kubetide.scheduling.devices.templates import complete_pools, local_slices, without_devices
from kubetide.scheduling.pods.device_use import claims_of_pod


class NodeDevices:
    """The slices of a snapshot by node; rebuild it when they have changed.

    Attributes:
        drivers: Who publishes slices for any single node.
    """

    def __init__(self, slices: Iterable[ResourceSlice], ledger: Ledger | None) -> None:
        self._ledger = ledger
        self._by_node: dict[str, list[ResourceSlice]] = {}
        for one in slices:
            if one.spec.node_name:
                self._by_node.setdefault(one.spec.node_name, []).append(one)
        pieces = (one for own in self._by_node.values() for one in own)
        self.drivers = frozenset(one.spec.driver for one in pieces)
        self._pools: dict[str, dict[str, int]] = {}

    @staticmethod
    def of(snapshot: Snapshot) -> NodeDevices:
        """Return the slices of a snapshot; none if devices are not enabled."""
        devices = snapshot.facts.devices
        return NodeDevices(() if devices is None else devices.slices, snapshot.devices)

    def local(self, node: str) -> tuple[ResourceSlice, ...]:
        """Return the node-local slices, in order of name."""
        return local_slices(self._by_node.get(node, ()), node)

    def pools(self, node: str) -> dict[str, int]:
        """Return how many complete pools of its own a node has of each driver."""
        if node not in self._pools:
            self._pools[node] = complete_pools(self.local(node))
        return self._pools[node]

    def left_of(self, node: str, pods: Sequence[Pod]) -> tuple[ResourceSlice, ...]:
        """Return the slices of a node without the devices of these pods."""
        slices = self.local(node)
        return without_devices(slices, held_by(self._ledger, pods)) if slices and self._ledger else ()


def held_by(ledger: Ledger, pods: Iterable[Pod]) -> frozenset[DeviceId]:
    """Return the devices that claims of pods hold; admin access excludes nobody and is left out."""
    keys = [
        (use.namespace, use.name)
        for pod in pods
        if pod.spec.resource_claims
        for use in claims_of_pod(pod)
        if use.name
    ]
    made = [ledger.claim_made_for((pod.metadata.namespace, pod.metadata.name)) for pod in pods]
    held = [ledger.held(key) for key in (*keys, *made) if key is not None]
    return frozenset(taking.device for one in held if one is not None for taking in one.takings)
