"""How much of a node its pods request."""

from __future__ import annotations

from dataclasses import dataclass

from tests.nodes.reference import accelerators
from tests.nodes.reference.drain_rules import is_long_terminating
from tests.nodes.reference.group_options import ignores_daemons
from tests.nodes.reference.places import Place
from tests.nodes.reference.pod_kinds import is_daemon, is_mirror
from tests.nodes.reference.snapshot import allocatable, requests
from tests.nodes.reference.world import Group, World


@dataclass(frozen=True)
class Utilization:
    resource: str
    share: float
    cpu: float = 0.0
    memory: float = 0.0
    accelerators: float = 0.0

    def go_text(self) -> str:
        """Return the text of upstream's own record, which has a share of claimed devices as well."""
        shares = self.cpu, self.memory, self.accelerators, 0.0
        return f"{{{' '.join(map(_go_text, shares))} {self.resource} {_go_text(self.share)}}}"


def utilization(world: World, place: Place, group: Group, now: int) -> Utilization | None:
    """Return the larger share of processors and memory, memory if they are equal; None if the node lacks either.

    Of a node with GPUs only their share counts; as long as it does not offer them, that is nothing.
    """
    if accelerators.has_accelerator(place.node):
        share = _share(world, place, group, accelerators.RESOURCE, now) or 0.0
        return Utilization(accelerators.RESOURCE, share, accelerators=share)
    cpu = _share(world, place, group, "cpu", now)
    memory = _share(world, place, group, "memory", now)
    if cpu is None or memory is None:
        return None
    if cpu > memory:
        return Utilization("cpu", cpu, cpu, memory)
    return Utilization("memory", memory, cpu, memory)


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


def _go_text(value: float) -> str:
    """Return the shortest text that gives the number back; Go writes whole ones without a point."""
    text = repr(float(value))
    return {"inf": "+Inf", "nan": "NaN"}.get(text, text.removesuffix(".0"))
