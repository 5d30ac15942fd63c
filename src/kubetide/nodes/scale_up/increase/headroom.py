"""What may still be added to the cluster in a tick."""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.nodes.capacity.quotas import quotas_of
from kubetide.nodes.facts.node_capacity import gpus_of
from kubetide.nodes.scale_up.increase.limits import Headroom
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.objects.node import Node
from kubetide.ports.cloud import GPU_RESOURCES


def headroom_of(state: State, tick: Tick) -> Headroom:
    """Return the headroom over all nodes, upcoming ones included."""
    nodes = [state.snapshot.node(name) for name in state.snapshot.node_names]
    expected = [with_expected_gpus(state, tick, node) for node in nodes]
    return Headroom(state.settings, expected, quotas_of(state))


def with_expected_gpus(state: State, tick: Tick | None, node: Node) -> Node:
    """Return the node with its group's template GPUs if its driver has not reported GPUs yet; as it is without a tick.

    Source: Cluster Autoscaler, the custom resources of a node for its resource limits.
    """
    settings = state.settings
    if tick is None or not (settings.gpu_total or settings.capacity_quotas_enabled):
        return node
    kinds = gpus_of(node, settings.gpu_label)
    if not kinds or any(kinds.values()):
        return node
    group = state.group_of(node.metadata.name) if node.metadata.name in state.nodes else None
    template = tick.templates.get(group) if group is not None else None
    if template is None:
        return node
    offered = template.node.status.allocatable or {}
    allocatable = dict(node.status.allocatable or {})
    allocatable.update({name: offered[name] for name in GPU_RESOURCES if name in offered})
    return replace(node, status=replace(node.status, allocatable=allocatable))
