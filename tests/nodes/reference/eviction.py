"""Upstream's evictor: pods of a node that goes are evicted, again and again for a while if the API server refuses."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from tests.conformance.nodes_world import EVICTION_REFUSED
from tests.nodes.reference import events
from tests.nodes.reference.places import pod_key
from tests.nodes.reference.pod_kinds import is_daemon, is_mirror, note
from tests.nodes.reference.world import Json, World

from kubetide.units.time import Duration, seconds

EVICT_DAEMON = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"
RETRY = seconds(10)


@dataclass
class Turn:
    """Pods that are evicted together: those of this priority and above, up to the priority of the next turn."""

    priority: int
    grace: int
    """The longest that a pod may take, in seconds; 0 is no limit."""
    must_go: list[Json] = field(default_factory=list)
    may_stay: list[Json] = field(default_factory=list)


def evict(
    world: World, node: str, pods: list[Json], evicted: list[Json], *, drain: bool
) -> Generator[Duration, None, str]:
    """Evict pods turn by turn; note what was accepted. Return why the node cannot go, or nothing.

    Of an empty node only pods of DaemonSets are evicted, and none has to go.
    """
    for turn in _turns(world, pods, drain=drain):
        refused = yield from _evict_together(world, turn, evicted)
        errors = []
        for one in (each for each in turn.must_go if each in refused):
            events.on_pod(world, one, "ScaleDownFailed", "failed to delete pod for ScaleDown", warning=True)
            name = "/".join(pod_key(one))
            errors.append(
                f"failed to evict pod {name} within allowed timeout (last error: {EVICTION_REFUSED})"
            )
        if errors:
            return f"Failed to drain node /{node}, due to following errors: [{' '.join(errors)}]"
    return ""


def _turns(world: World, pods: list[Json], *, drain: bool) -> list[Turn]:
    by_default = world.flags.on(f"daemonset-eviction-for-{'occupied' if drain else 'empty'}-nodes")
    config = world.flags.text("drain-priority-config")
    if config:
        pairs = sorted(tuple(map(int, one.split(":"))) for one in config.split(","))
        turns = [Turn(priority, grace) for priority, grace in pairs]
    else:
        turns = [Turn(2**31 - 1, world.flags.whole("max-graceful-termination-sec"))]
    for pod in sorted(pods, key=is_daemon):  # upstream appends those of DaemonSets
        if is_mirror(pod) or (not drain and not is_daemon(pod)):
            continue
        turn = _turn_of(turns, pod["spec"].get("priority") or 0)
        if not is_daemon(pod):
            turn.must_go.append(pod)
            continue
        own = note(pod, EVICT_DAEMON)
        if by_default if own is None else own == "true":
            (turn.must_go if config and drain else turn.may_stay).append(pod)
    return turns


def _turn_of(turns: list[Turn], priority: int) -> Turn:
    """Return the last turn that does not begin above the priority; the first one if all do."""
    return next((one for one in reversed(turns) if one.priority <= priority), turns[0])


def _evict_together(world: World, turn: Turn, evicted: list[Json]) -> Generator[Duration, None, list[Json]]:
    """Try all at once, and every ten seconds those that were refused; return what is still refused at the end."""
    for one in (*turn.must_go, *turn.may_stay):
        events.on_pod(world, one, "ScaleDown", "deleting pod for node scale down")
    until = world.now + world.flags.duration("max-pod-eviction-time")
    refused = [one for one in (*turn.must_go, *turn.may_stay) if not _is_evicted(world, one, turn, evicted)]
    while refused:
        yield RETRY
        if world.now >= until:
            break
        refused = [one for one in refused if not _is_evicted(world, one, turn, evicted)]
    return refused


def _is_evicted(world: World, pod: Json, turn: Turn, evicted: list[Json]) -> bool:
    """Ask the API server, which takes an evicted pod away at once; a pod that is gone already counts as evicted."""
    key = pod_key(pod)
    if key not in world.pods:
        return True
    if not world.may_evict(key):
        return False
    grace = pod["spec"].get("terminationGracePeriodSeconds")
    grace = 30 if grace is None else grace
    if 0 < turn.grace < grace:
        grace = turn.grace
    del world.pods[key]
    evicted.append({"pod": "/".join(key), "node": pod["spec"]["nodeName"], "gracePeriodSeconds": grace})
    return True
