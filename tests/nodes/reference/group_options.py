"""What a group says about its scale-down, and what the flags say where it says nothing."""

from __future__ import annotations

from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.world import Group, World

from kubetide.units.time import parse_duration

UPCOMING = "cluster-autoscaler.k8s.io/upcoming-node"


def is_atomic(group: Group) -> bool:
    """Return whether the group has either no node or all that it may have."""
    return bool(group.options.get("zeroOrMaxNodeScaling"))


def utilization_threshold(world: World, group: Group, *, accelerated: bool) -> float:
    """Return up to which utilization a node of the group may go; one with GPUs has a threshold of its own."""
    option = "scaleDownGpuUtilizationThreshold" if accelerated else "scaleDownUtilizationThreshold"
    flag = "scale-down-gpu-utilization-threshold" if accelerated else "scale-down-utilization-threshold"
    own = group.options.get(option)
    return world.flags.number(flag) if own is None else float(own)


def ignores_daemons(world: World, group: Group) -> bool:
    own = group.options.get("ignoreDaemonSetsUtilization")
    return world.flags.on("ignore-daemonsets-utilization") if own is None else bool(own)


def removal_time(world: World, group: Group, *, ready: bool) -> int:
    """Return how long a node of the group must have been unneeded; nanoseconds."""
    own = group.options.get("scaleDownUnneededTime" if ready else "scaleDownUnreadyTime")
    if own is not None:
        return parse_duration(own)
    return world.flags.duration("scale-down-unneeded-time" if ready else "scale-down-unready-time")


def count_registered(group: Group, snapshot: Snapshot) -> int:
    """Return how many nodes of the snapshot are machines of the group; upcoming nodes are not."""
    count = 0
    for place in snapshot.places:
        upcoming = (place.node["metadata"].get("annotations") or {}).get(UPCOMING) == "true"
        if not upcoming and place.node["spec"].get("providerID") in group.machines:
            count += 1
    return count
