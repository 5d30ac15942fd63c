"""Taints and cordons that upstream sets on Nodes, and what it reads from a Node's conditions and taints.

Upstream writes a whole Node, built from the copy that it saw at the start of the loop. The recording's API server
takes such a write without asking for a version, so a later write from the same copy undoes an earlier one. The status
stays as it is, though upstream's copy may have another: an API server writes it by a call of its own.
"""

from __future__ import annotations

from tests.nodes.reference import events
from tests.nodes.reference.world import Json, World

from kubetide.units.time import minutes, parse_rfc3339, seconds

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
DELETION_TIME = minutes(5)
"""How long a taint says that a node is being deleted."""


def taints(node: Json) -> list[Json]:
    return list((node.get("spec") or {}).get("taints") or ())


def has_taint(node: Json, key: str) -> bool:
    return any(one["key"] == key for one in taints(node))


def taint_time(node: Json, key: str) -> int | None:
    """Return the time in the value of a taint; None if there is no such taint or its value is no number."""
    value = next((one.get("value", "") for one in taints(node) if one["key"] == key), None)
    try:
        return None if value is None else seconds(int(value))
    except ValueError:
        return None


def is_being_deleted(node: Json, now: int) -> bool:
    since = taint_time(node, TO_BE_DELETED)
    return since is not None and now - since < DELETION_TIME


def is_ready(node: Json) -> bool:
    """Return whether the Ready condition is there and not False or Unknown, and nothing else speaks against it."""
    found = {name: one["status"] for name, one in _conditions(node).items()}
    if found.get("Ready", "False") in ("False", "Unknown"):
        return False
    if "True" in (found.get("DiskPressure"), found.get("NetworkUnavailable")):
        return False
    return not any(
        has_taint(node, f"node.kubernetes.io/{name}")
        for name in ("not-ready", "disk-pressure", "network-unavailable")
    )


def ready_since(node: Json) -> int:
    """Return when one of the conditions that decide whether the node is ready changed last; long ago if none says so."""
    found = _conditions(node)
    return max(
        (
            parse_rfc3339(found[name]["lastTransitionTime"])
            for name in ("Ready", "DiskPressure", "NetworkUnavailable")
            if found.get(name, {}).get("lastTransitionTime")
        ),
        default=-(1 << 62),
    )


def _conditions(node: Json) -> dict[str, Json]:
    return {one["type"]: one for one in (node.get("status") or {}).get("conditions") or ()}


def put_taint(world: World, seen: Json, key: str, effect: str, now: int, *, cordon: bool = False) -> None:
    """Add a taint with the time to the copy that was seen; if that has it already, to the Node as it is now.

    A taint that is there on both is renewed, otherwise than upstream, which would delete the node again in every loop.
    """
    name = seen["metadata"]["name"]
    renewed = {**world.nodes[name], "spec": {**world.nodes[name]["spec"]}}
    renewed["spec"]["taints"] = [one for one in taints(world.nodes[name]) if one["key"] != key]
    for node in (seen, world.nodes[name], renewed):
        if not has_taint(node, key):
            taint = {"key": key, "value": str(now // seconds(1)), "effect": effect}
            spec = {**node["spec"], "taints": [*taints(node), taint]}
            if cordon:
                spec["unschedulable"] = True
            world.nodes[name] = {**node, "spec": spec, "status": world.nodes[name]["status"]}
            return


def clean_taint(world: World, seen: Json, key: str, *, uncordon: bool = False) -> None:
    """Take a taint off the copy that was seen; if that does not have it, off the Node as it is now, if it is there."""
    name = seen["metadata"]["name"]
    if name not in world.nodes:
        return
    for node in (seen, world.nodes[name]):
        if has_taint(node, key):
            spec = {**node["spec"], "taints": [one for one in taints(node) if one["key"] != key]}
            if uncordon:
                spec.pop("unschedulable", None)
            world.nodes[name] = {**node, "spec": spec, "status": world.nodes[name]["status"]}
            return


def clean_at_start(world: World, now: int) -> None:
    """Take off what an earlier process left behind: the first thing that the first loop does."""
    uncordon = world.flags.on("cordon-node-before-terminating")
    for node in _in_order(world):
        if world.group_of_node(node) is not None and has_taint(node, TO_BE_DELETED):
            clean_taint(world, node, TO_BE_DELETED, uncordon=uncordon)
            _note_cleanup(world, node, TO_BE_DELETED)
    if world.flags.whole("max-bulk-soft-taint-count") != 0:
        return
    lifetime = world.flags.duration("node-deletion-candidate-ttl")
    for node in _in_order(world):
        since = taint_time(node, CANDIDATE)
        young = lifetime != 0 and since is not None and now - since < lifetime
        if has_taint(node, CANDIDATE) and not young:
            clean_taint(world, node, CANDIDATE)
            _note_cleanup(world, node, CANDIDATE)


def _note_cleanup(world: World, node: Json, key: str) -> None:
    message = f"removed {key} taint from node {node['metadata']['name']}"
    events.on_node(world, node, "ClusterAutoscalerCleanup", message)


def _in_order(world: World) -> list[Json]:
    return [world.nodes[name] for name in sorted(world.nodes)]


def changes(before: dict[str, Json], after: dict[str, Json]) -> Json:
    """Return what became of the Nodes that are in both, in the words of a recorded step."""
    entry: Json = {"taintsAdded": {}, "taintsRemoved": {}, "cordoned": [], "uncordoned": []}
    for name in sorted(before.keys() & after.keys()):
        old, new = _texts(before[name]), _texts(after[name])
        if new - old:
            entry["taintsAdded"][name] = sorted(new - old)
        if old - new:
            entry["taintsRemoved"][name] = sorted(old - new)
        was, now_is = (bool(one["spec"].get("unschedulable")) for one in (before[name], after[name]))
        if was != now_is:
            entry["cordoned" if now_is else "uncordoned"].append(name)
    return entry


def _texts(node: Json) -> set[str]:
    return {f"{one['key']}={one.get('value', '')}:{one['effect']}" for one in taints(node)}
