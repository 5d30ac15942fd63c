"""Which pods a ReplicaSet removes first when it has too many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cmp_to_key
from math import log2

from kubetide.objects.pod import Pod, deletion_cost, pod_condition
from kubetide.units.time import Instant, parse_rfc3339

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}

_Head = tuple[bool, int, bool, int, int]


def removal_order(
    pods: Sequence[Pod], siblings_on_node: Mapping[str, int], now: Instant, count: int | None = None
) -> list[Pod]:
    """Return the pods, the first to be removed first; only the first ``count`` where that is given.

    Args:
        pods: Active pods of one ReplicaSet.
        siblings_on_node: Node name to the number of active pods there of all ReplicaSets that have
            the same owner: a node that holds more of them is thinned out first.
        now: Ages are compared on a logarithmic scale, so that replicas of about the same age are
            taken in the (random) order of their uids and not always from the newest zone.
        count: How many to return; None for all.

    Source: kube-controller-manager 1.36, ActivePodsWithRanks with LogarithmicScaleDown on (default).
    """
    limit = len(pods) if count is None else count
    # Times are read only where the cheap part of the comparison leaves pods equal.
    by_head: dict[_Head, list[Pod]] = {}
    for pod in pods:
        by_head.setdefault(_head(pod, siblings_on_node), []).append(pod)
    order: list[Pod] = []
    for head in sorted(by_head):
        if len(order) >= limit:
            break
        equals = by_head[head]
        order += equals if len(equals) == 1 else _by_times(equals, now, limit - len(order))
    return order[:limit]


def _head(pod: Pod, siblings_on_node: Mapping[str, int]) -> _Head:
    """Return what counts before any time does. Smaller goes first: unassigned, earlier phase, not ready, cheap, on a crowded node."""
    node = pod.spec.node_name
    ready = pod_condition(pod, "Ready")
    return (
        bool(node),
        _PHASES.get(pod.status.phase, 0),
        ready is not None and ready.status == "True",
        deletion_cost(pod.metadata.annotations) or 0,
        -siblings_on_node.get(node, 0) if node else 0,
    )


class _Row:
    """What decides among pods of equal head; restarts and creation are read where the rest leaves them equal."""

    __slots__ = ("now", "pod", "ready_age", "ready_since", "uid")

    def __init__(self, pod: Pod, now: Instant) -> None:
        self.pod = pod
        self.now = now
        self.uid = pod.metadata.uid
        self.ready_since = _ready_since(pod)
        self.ready_age = _magnitude(self.ready_since, now)

    @property
    def restarts(self) -> int:
        return max((status.restart_count for status in self.pod.status.container_statuses or ()), default=0)

    @property
    def created(self) -> Instant | None:
        created = self.pod.metadata.creation_timestamp
        return parse_rfc3339(created) if created else None


def _by_times(pods: Sequence[Pod], now: Instant, count: int) -> list[Pod]:
    """Return at least ``count`` of the pods, in order: by how long they have been ready, on a logarithmic scale, then ``_compare``."""
    by_age: dict[int, list[_Row]] = {}
    for pod in pods:
        row = _Row(pod, now)
        by_age.setdefault(row.ready_age, []).append(row)
    order: list[Pod] = []
    for age in sorted(by_age):
        if len(order) >= count:
            break
        # Not a plain key: pods that became ready at different times of one magnitude are ordered by
        # uid, pods that became ready at the same time by restarts and creation first.
        order += [row.pod for row in sorted(by_age[age], key=cmp_to_key(_compare))]
    return order


def _compare(left: _Row, right: _Row) -> int:
    if left.ready_since != right.ready_since:
        return _by_uid(left, right)
    fewer = right.restarts - left.restarts
    if fewer:
        return fewer
    created = left.created, right.created
    if created[0] != created[1]:
        ages = [_magnitude(since, left.now) for since in created]
        return (ages[0] - ages[1]) or _by_uid(left, right)
    return _by_uid(left, right)


def _magnitude(since: Instant | None, now: Instant) -> int:
    # A time that is not known counts as the newest.
    if since is None:
        return -2
    return int(log2(now - since)) if now > since else -1


def _by_uid(left: _Row, right: _Row) -> int:
    return (left.uid > right.uid) - (left.uid < right.uid)


def _ready_since(pod: Pod) -> Instant | None:
    condition = pod_condition(pod, "Ready")
    if condition is None or condition.status != "True" or condition.last_transition_time is None:
        return None
    return parse_rfc3339(condition.last_transition_time)
