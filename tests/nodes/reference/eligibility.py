"""Which candidates are so little used that their removal is simulated."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.accelerators import has_accelerator
from tests.nodes.reference.group_options import utilization_threshold
from tests.nodes.reference.node_marks import is_being_deleted, is_ready
from tests.nodes.reference.places import Place
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.utilization import Utilization, utilization
from tests.nodes.reference.world import Json, World

DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


@dataclass
class Eligible:
    """Names of nodes that remain, in the order of the candidates; reasons of the others."""

    names: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    utilizations: dict[str, Utilization] = field(default_factory=dict)


def eligible(
    world: World, snapshot: Snapshot, candidates: list[Json], recent: set[str], now: int
) -> Eligible:
    """Check each candidate. `recent` are nodes that a simulation refused a short while ago."""
    made = Eligible()
    for node in candidates:
        name = node["metadata"]["name"]
        place = snapshot.get(name)
        if place is None:
            reason, found = "UnexpectedError", None
        elif name in recent:
            reason, found = "RecentlyUnremovable", None
        else:
            reason, found = _check(world, place, now)
        if found is not None:
            made.utilizations[name] = found
        if reason:
            made.reasons[name] = reason
        else:
            made.names.append(name)
    return made


def is_disabled(node: Json) -> bool:
    return (node["metadata"].get("annotations") or {}).get(DISABLED) == "true"


def _check(world: World, place: Place, now: int) -> tuple[str, Utilization | None]:
    """Return the reason against the node, empty if there is none, and its utilization if that was the question."""
    if is_being_deleted(place.node, now):
        return "CurrentlyBeingDeleted", None
    if is_disabled(place.node):
        return "ScaleDownDisabledAnnotation", None
    group = world.group_of_node(place.node)
    if group is None:
        return "NotAutoscaled", None
    found = utilization(world, place, group, now)
    if found is None:
        return "UnexpectedError", None
    if not world.flags.on("scale-down-unready-enabled") and not is_ready(place.node):
        return "ScaleDownUnreadyDisabled", None
    if found.share > utilization_threshold(world, group, accelerated=has_accelerator(place.node)):
        return "NotUnderutilized", found
    return "", found
