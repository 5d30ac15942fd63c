"""The expander `price`: what the nodes cost beside what their pods are worth, and how well the node's size suits the cluster."""

from __future__ import annotations

from math import tanh

from tests.nodes.reference.accelerators import has_accelerator
from tests.nodes.reference.snapshot import amount, requests
from tests.nodes.reference.world import Json, World

INSTANCE_TYPE = "node.kubernetes.io/instance-type"
SUITABLE_CPU = ((2, 1000), (6, 2000), (20, 4000), (60, 8000), (200, 16000))
"""Up to how many nodes a cluster best has nodes of which size, in thousandths of cores."""
SUITABLE_CPU_BEYOND = 32000
STEADY = {"cpu": 500, "memory": 500 << 20}
"""Requests whose price is added to both sides, so that pods without requests divide nothing by zero."""
ACCELERATED = 1000.0
"""How little nodes with GPUs suit any cluster: they are for pods that fit nowhere else."""
NOT_THERE_YET = 2.0
"""How much worse a group is that would have to be created."""


def score(world: World, node: Json, count: int, pods: list[Json], *, exists: bool) -> float | None:
    """Return how dear so many of the nodes are for the pods, the less the better; None if the node has no price."""
    price = node_price(world, node)
    if price is None:
        return None
    worth = 0.0
    for pod in pods:
        worth += requests_price(world, requests(pod))
    steady = requests_price(world, STEADY)
    odd = ACCELERATED
    if not has_accelerator(node):
        odd = _suppressed(unfitness(len(world.nodes), node), count)
    value = odd * ((price * count + steady) / (worth + steady))
    return value if exists else value * NOT_THERE_YET


def node_price(world: World, node: Json) -> float | None:
    """Return what the cloud asks for a node for an hour; it goes by the instance type."""
    kind = (node["metadata"].get("labels") or {}).get(INSTANCE_TYPE, "")
    found: dict[str, float] = world.pricing["nodePricePerHourByInstanceType"]
    return found.get(kind)


def requests_price(world: World, wanted: dict[str, int]) -> float:
    """Return what the cloud says that requests are worth for an hour."""
    cores = wanted.get("cpu", 0) / 1000
    gibibytes = wanted.get("memory", 0) / (1 << 30)
    return float(
        cores * world.pricing["podPricePerCpuHour"] + gibibytes * world.pricing["podPricePerGiBHour"]
    )


def unfitness(nodes: int, node: Json) -> float:
    """Return by which factor the node has more or fewer cores than suit a cluster of so many nodes."""
    suitable = next((cpu for most, cpu in SUITABLE_CPU if nodes <= most), SUITABLE_CPU_BEYOND)
    has = amount("cpu", node["status"]["capacity"]["cpu"])
    return max(suitable / has, has / suitable)


def _suppressed(value: float, count: int) -> float:
    """The more nodes there are to be, the less it matters that their size is odd."""
    return (value - 1.0) * (1.0 - tanh((count - 1) / 15.0)) + 1.0
