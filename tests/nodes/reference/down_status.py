"""What a loop reports of its scale-down, in the words of a recorded step."""

from __future__ import annotations

from math import floor, isfinite

from tests.nodes.reference.actuation import ScaledDown
from tests.nodes.reference.places import pod_key
from tests.nodes.reference.planner import Planner
from tests.nodes.reference.utilization import Utilization
from tests.nodes.reference.world import Json, World


def scale_down_status(
    world: World, planner: Planner, result: str, nodes: list[ScaledDown], results: dict[str, Json]
) -> Json:
    """Return `scaleDownStatus` without what is empty. `results` are those of `Deletions.take_results`."""
    entry: Json = {
        "scaledDownNodes": [_scaled_down(one) for one in sorted(nodes, key=_name)],
        "unremovableNodes": _unremovable(world, planner),
        "nodeDeleteResults": results,
    }
    return {"result": result, **{name: value for name, value in entry.items() if value}}


def _name(one: ScaledDown) -> str:
    return str(one.node["metadata"]["name"])


def _scaled_down(one: ScaledDown) -> Json:
    return {
        "node": _name(one),
        "group": one.group,
        "kind": "drain" if one.drain else "empty",
        "evictedPods": sorted("/".join(pod_key(pod)) for pod in one.pods),
        **_used(one.utilization),
    }


def _unremovable(world: World, planner: Planner) -> list[Json]:
    entries: list[Json] = []
    for name, one in sorted(planner.unremovable.items()):
        group = world.group_of_node(one.node)
        if group is None:
            continue
        entry: Json = {"node": name, "group": group.id, "reason": one.reason}
        if one.blocking is not None:
            entry["blockingPod"] = "/".join(pod_key(one.blocking[0]))
            entry["blockingPodReason"] = one.blocking[1]
        if name in planner.utilizations:
            entry |= _used(planner.utilizations[name])
        entries.append(entry)
    return entries


def _used(one: Utilization) -> Json:
    """The share as recorded: six decimals, halves up."""
    share = floor(one.share * 1e6 + 0.5) / 1e6 if isfinite(one.share) else one.share
    return {"utilization": share, "utilizationResource": one.resource}
