"""How a machine becomes a Node of the cluster."""

from __future__ import annotations

from contextlib import suppress

from kubetide.embedded.cloud.device_slices import slices_json
from kubetide.embedded.cloud.groups import NOT_READY_TAINT, node_conditions, node_json
from kubetide.embedded.cloud.machines import Group, Machine
from kubetide.objects.kinds import NODES, RESOURCE_SLICES
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, Conflict
from kubetide.units.time import Instant


async def create_node(cluster: Cluster, group: Group, machine: Machine, *, ready: bool, now: Instant) -> None:
    """Register the machine's Node, and publish its devices. Raises ApiError."""
    assert group.kind is not None  # a group without a type has no machines
    body = node_json(group.spec, group.kind, name=machine.name, zone=machine.zone, ready=ready, now=now)
    # One of this name can only be that of an attempt whose answer was lost.
    with suppress(AlreadyExists):
        await cluster.create(NODES, body)
    if group.spec.devices:
        node = await cluster.get(NODES, machine.name)
        for piece in slices_json(group.spec.devices, node=machine.name, uid=node.metadata.uid):
            with suppress(AlreadyExists):
                await cluster.create(RESOURCE_SLICES, piece)


async def make_ready(cluster: Cluster, name: str, now: Instant) -> None:
    """Make a Node Ready, and take its not-ready taint off. Raises ApiError."""
    conditions = node_conditions(ready=True, now=now)
    await cluster.patch(NODES, name, {"status": {"conditions": conditions}}, subresource="status")
    await _untaint(cluster, name)


async def _untaint(cluster: Cluster, name: str) -> None:
    """Take the not-ready taint off and keep those that others have set meanwhile."""
    while True:
        raw = await cluster.get(NODES.untyped, name)
        taints = [taint for taint in raw["spec"].get("taints") or () if taint.get("key") != NOT_READY_TAINT]
        patch = {
            "metadata": {"resourceVersion": raw["metadata"]["resourceVersion"]},
            "spec": {"taints": taints or None},
        }
        try:
            await cluster.patch(NODES, name, patch)
        except Conflict:
            continue
        return
