"""Which of the pending pods a loop tries to help, and in which order."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from tests.nodes.reference.accelerators import asks_for_accelerator
from tests.nodes.reference.hinting import Hinting
from tests.nodes.reference.missing_pods import limited, with_missing
from tests.nodes.reference.pod_kinds import (
    identity,
    is_daemon,
    is_expendable,
    is_mirror,
    is_static,
    is_terminating,
    note,
    priority,
    unbound,
)
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.world import Json, World

from kubetide.scheduling.estimator.unstable_sort import descending_order
from kubetide.units.time import TimeFormatError, parse_duration, parse_rfc3339, seconds

DELAY = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"


@dataclass
class PodLists:
    """Upstream's chain of pod list processors. The hints are those of its filter for schedulable pods."""

    hinting: Hinting = field(default_factory=Hinting)

    def pods_to_help(
        self, world: World, snapshot: Snapshot, unschedulable: list[Json], drained: list[str], now: int
    ) -> list[Json]:
        """Return the pods that neither a node nor an upcoming node has a place for; the others stay in the snapshot.

        `unschedulable` come in order of namespace and name; `drained` are nodes whose pods are being evicted.
        """
        cutoff = world.flags.whole("expendable-pods-priority-cutoff")
        pods = with_missing(world, unschedulable)
        pods = [one for one in pods if not is_expendable(one, cutoff)]
        pods += drained_pods(snapshot, drained)
        order = descending_order([priority(one) for one in pods])  # upstream's sort is not stable
        pods = [pods[at] for at in order]
        placed = {identity(one) for one, _ in self.hinting.try_all(snapshot, pods)}
        self.hinting.drop_old()
        left = [one for one in pods if identity(one) not in placed and not is_daemon(one)]
        return [one for one in limited(world, left) if not is_young(world, one, now)]


def drained_pods(snapshot: Snapshot, drained: list[str]) -> list[Json]:
    """Return the pods that come back elsewhere once their nodes are gone, without the names of these nodes."""
    pods = []
    for name in drained:
        place = snapshot.get(name)
        for pod in place.pods if place is not None else ():
            if is_terminating(pod) or is_static(pod) or is_mirror(pod) or is_daemon(pod):
                continue
            pods.append(unbound(pod))
    return pods


def is_young(world: World, pod: Json, now: int) -> bool:
    """Return whether the pod is not yet older than its delay; its own counts unless it is shorter than the flag's."""
    delay = world.flags.duration("new-pod-scale-up-delay")
    own = note(pod, DELAY)
    if own is not None:
        with suppress(TimeFormatError):
            delay = max(delay, parse_duration(own))
    return now - parse_rfc3339(pod["metadata"]["creationTimestamp"]) <= delay


def all_are_new(world: World, pods: list[Json], now: int) -> bool:
    """Return whether even the oldest pod is less than two seconds old: upstream then waits for more.

    So it does for half a minute if there are pods that ask for GPUs. It does not wait if it goes ahead of a scheduler.
    """
    if world.flags.names("bypassed-scheduler-names"):
        return False
    accelerated = [one for one in pods if asks_for_accelerator(one)]
    return _oldest(pods, now) + seconds(2) > now or (
        bool(accelerated) and _oldest(accelerated, now) + seconds(30) > now
    )


def _oldest(pods: list[Json], now: int) -> int:
    return min([now, *(parse_rfc3339(one["metadata"]["creationTimestamp"]) for one in pods)])
