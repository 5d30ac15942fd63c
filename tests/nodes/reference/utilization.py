"""How much of a node its pods request."""

from __future__ import annotations

from dataclasses import dataclass

from tests.nodes.reference.drain_rules import is_long_terminating
from tests.nodes.reference.group_options import ignores_daemons
from tests.nodes.reference.pod_kinds import is_daemon, is_mirror
from tests.nodes.reference.snapshot import Place, allocatable, requests
from tests.nodes.reference.world import Group, World


@dataclass(frozen=True)
class Utilization:
    resource: str
    share: float


def utilization(world: World, place: Place, group: Group, now: int) -> Utilization | None:
    """Return the larger share of processors and memory, memory if they are equal; None if the node lacks either."""
    cpu = _share(world, place, group, "cpu", now)
    memory = _share(world, place, group, "memory", now)
    if cpu is None or memory is None:
        return None
    return Utilization("cpu", cpu) if cpu > memory else Utilization("memory", memory)


def _share(world: World, place: Place, group: Group, resource: str, now: int) -> float | None:
    has = allocatable(place.node).get(resource, 0)
    if has == 0:
        return None
    used = 0
    no_daemons = ignores_daemons(world, group)
    no_mirrors = world.flags.on("ignore-mirror-pods-utilization")
    for pod in place.pods:
        wanted = requests(pod).get(resource, 0)
        if (no_daemons and is_daemon(pod)) or (no_mirrors and is_mirror(pod)):
            has -= wanted
        elif not is_long_terminating(pod, now):
            used += wanted
    if has == 0:
        return float("inf") if used else float("nan")
    return used / has
