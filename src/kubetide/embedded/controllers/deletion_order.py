"""Which pods a ReplicaSet removes first when it has too many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cmp_to_key
from math import log2

from kubetide.objects.pod import Pod, pod_condition
from kubetide.units.time import Instant, parse_rfc3339

from .owned_pods import is_ready

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def removal_order(pods: Sequence[Pod], siblings_on_node: Mapping[str, int], now: Instant) -> list[Pod]:
    """Gives the pods, the first to be removed first.

    Args:
        pods: Active pods of one ReplicaSet.
        siblings_on_node: Node name to the number of active pods there of all ReplicaSets that have
            the same owner: a node that holds more of them is thinned out first.
        now: Ages are compared on a logarithmic scale, so that replicas of about the same age are
            taken in the (random) order of their uids and not always from the newest zone.

    Source: kube-controller-manager 1.36, ActivePodsWithRanks with LogarithmicScaleDown on (default).
    """

    def compare(left: _Row, right: _Row) -> int:
        if left.head != right.head:
            return -1 if left.head < right.head else 1
        if left.ready_since != right.ready_since:
            return _by_age(left.ready_since, right.ready_since, left, right, now)
        if left.restarts != right.restarts:
            return right.restarts - left.restarts
        if left.created != right.created:
            return _by_age(left.created, right.created, left, right, now)
        return _by_uid(left, right)

    rows = [_Row(pod, siblings_on_node) for pod in pods]
    return [row.pod for row in sorted(rows, key=cmp_to_key(compare))]


class _Row:
    """What one pod is compared by."""

    __slots__ = ("created", "head", "pod", "ready_since", "restarts", "uid")

    def __init__(self, pod: Pod, siblings_on_node: Mapping[str, int]) -> None:
        ready = is_ready(pod)
        node = pod.spec.node_name
        self.pod = pod
        self.uid = pod.metadata.uid
        # Smaller goes first: unassigned, earlier phase, not ready, cheap, and on a crowded node.
        self.head = (
            bool(node),
            _PHASES.get(pod.status.phase, 0),
            ready,
            _deletion_cost(pod),
            -siblings_on_node.get(node, 0) if node else 0,
        )
        self.ready_since = _ready_since(pod) if ready else None
        self.restarts = max(
            (status.restart_count for status in pod.status.container_statuses or ()), default=0
        )
        created = pod.metadata.creation_timestamp
        self.created = parse_rfc3339(created) if created else None


def _by_age(left_at: Instant | None, right_at: Instant | None, left: _Row, right: _Row, now: Instant) -> int:
    # A time that is not known counts as the newest.
    if left_at is None or right_at is None:
        return -1 if left_at is None else 1
    difference = _magnitude(now - left_at) - _magnitude(now - right_at)
    return difference or _by_uid(left, right)


def _magnitude(age_ns: int) -> int:
    return int(log2(age_ns)) if age_ns > 0 else -1


def _by_uid(left: _Row, right: _Row) -> int:
    return (left.uid > right.uid) - (left.uid < right.uid)


def _deletion_cost(pod: Pod) -> int:
    """Gives the cost a user set, 0 for none or for one that is not a 32-bit integer."""
    text = (pod.metadata.annotations or {}).get(DELETION_COST, "0")
    digits = text.removeprefix("-")
    # Upstream accepts neither a plus sign nor leading zeros.
    if not (digits.isascii() and digits.isdigit()) or (len(digits) > 1 and digits[0] == "0"):
        return 0
    cost = int(text)
    return cost if -(1 << 31) <= cost < 1 << 31 else 0


def _ready_since(pod: Pod) -> Instant | None:
    condition = pod_condition(pod, "Ready")
    if condition is None or condition.last_transition_time is None:
        return None
    return parse_rfc3339(condition.last_transition_time)
