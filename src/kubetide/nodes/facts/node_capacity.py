"""What one node adds to sums over the cluster: cores, memory, GPUs.

Virtual kubelets add nothing. An amount that no machine has counts for none, or one such node would hold back all
increases for as long as it exists.
"""

from __future__ import annotations

from kubetide.nodes.facts.machine_amounts import MOST_OF_ONE_NODE
from kubetide.nodes.facts.nodes import allocatable_gpus, has_gpu_devices, is_virtual_kubelet
from kubetide.objects.node import Node
from kubetide.units.quantity import quantity_error, whole_or_zero


def gpus_of(node: Node, gpu_label: str) -> dict[str, int]:
    """Return the node's GPUs by type, the value of the provider's label; none without the label, or as devices."""
    kind = (node.metadata.labels or {}).get(gpu_label) if gpu_label else None
    if kind is None or is_virtual_kubelet(node) or has_gpu_devices(node, gpu_label):
        return {}
    return {kind: allocatable_gpus(node)}


def capacity_of(node: Node, gpu_label: str = "") -> dict[str, int]:
    """Return what a node counts for: whole cores, bytes and GPUs of its capacity; nothing for a virtual kubelet."""
    if is_virtual_kubelet(node):
        return {"cpu": 0, "memory": 0}
    capacity = node.status.capacity or {}
    amounts = {name: whole_or_zero(capacity.get(name, 0)) for name in ("cpu", "memory")}
    return {**amounts, **gpus_of(node, gpu_label)}


def absurd_amounts(node: Node) -> dict[str, int]:
    """Return the amounts of a node's capacity that are more than any machine has, as ``capacity_of`` returns them."""
    return {name: amount for name, amount in capacity_of(node).items() if amount > MOST_OF_ONE_NODE[name]}


def unread_capacity(node: Node) -> str:
    """Return what of a node's cores and memory cannot be read, and counts for none; empty for nothing."""
    problems = (
        (name, quantity_error((node.status.capacity or {}).get(name, 0))) for name in MOST_OF_ONE_NODE
    )
    said = "; ".join(
        f"status.capacity[{name}]: {problem}" for name, problem in problems if problem is not None
    )
    return f"{said}; it counts as none until its kubelet reports a quantity such as 4 or 16Gi" if said else ""


def used_by(node: Node, gpu_label: str = "") -> dict[str, int]:
    """Return what a node adds to the cluster's sums: its capacity, without absurd amounts."""
    return {**capacity_of(node, gpu_label), **dict.fromkeys(absurd_amounts(node), 0)}


def amount_of(node: Node, name: str, gpu_label: str) -> int:
    """Return how much of a resource or GPU type a node counts for; 0 for an absurd amount."""
    if name in MOST_OF_ONE_NODE:
        return used_by(node, gpu_label).get(name, 0)
    gpus = gpus_of(node, gpu_label)
    return gpus[name] if name in gpus else whole_or_zero((node.status.capacity or {}).get(name, 0))
