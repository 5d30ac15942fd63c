"""Which pods of a DaemonSet a rolling update replaces now: pure.

Source: kube-controller-manager v1.36, daemon/update.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.embedded.controllers.workloads.owned_pods import available_at
from kubetide.embedded.controllers.workloads.stateful_plan import REVISION_LABEL
from kubetide.embedded.controllers.workloads.templates import scaled_value
from kubetide.objects.pod import Pod
from kubetide.objects.workload import DaemonSet
from kubetide.units.time import Instant, seconds


def is_updated(pod: Pod, revision: str) -> bool:
    """Return whether a pod was made from the template of this revision."""
    return (pod.metadata.labels or {}).get(REVISION_LABEL) == revision


def is_available(daemon_set: DaemonSet, pod: Pod, now: Instant) -> bool:
    """Return whether a pod has been ready for ``minReadySeconds``."""
    due = available_at(pod, seconds(daemon_set.spec.min_ready_seconds))
    return due is not None and due <= now


def next_look(daemon_set: DaemonSet, pods: Sequence[Pod], now: Instant) -> Instant | None:
    """Return when the next pod becomes available by mere passing of time."""
    min_ready = seconds(daemon_set.spec.min_ready_seconds)
    dues = (available_at(pod, min_ready) for pod in pods)
    return min((due for due in dues if due is not None and due > now), default=None)


def to_replace(
    daemon_set: DaemonSet,
    by_node: Mapping[str, Sequence[Pod]],
    revision: str,
    now: Instant,
    *,
    desired: int,
    unseen: int,
) -> list[Pod]:
    """Return the old pods to be deleted now, so that no more than ``maxUnavailable`` are unavailable.

    Old pods that are not available are replaced in any case.

    Args:
        daemon_set: What is asked for; nothing is replaced with the strategy OnDelete.
        by_node: Its pods by node, those that end included.
        revision: That of the present template.
        now: The time.
        desired: How many nodes are to have a pod.
        unseen: For how many a pod was made that the cache has not shown yet.
    """
    if daemon_set.spec.update_strategy.type == "OnDelete":
        return []
    replaced: list[Pod] = []
    candidates: list[Pod] = []
    unavailable = unseen
    for _, pods in sorted(by_node.items()):
        alive = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        if len(alive) != 1:
            # Its pod is on its way out, or one of several will be.
            unavailable += 1
            continue
        available = is_available(daemon_set, alive[0], now)
        unavailable += not available
        if not is_updated(alive[0], revision):
            (candidates if available else replaced).append(alive[0])
    return replaced + candidates[: max(_most_unavailable(daemon_set, desired) - unavailable, 0)]


def _most_unavailable(daemon_set: DaemonSet, desired: int) -> int:
    """Return how many nodes may be without an available pod; ``maxSurge`` counts likewise, as no second pod is made."""
    rolling = daemon_set.spec.update_strategy.rolling_update
    if rolling is None:
        return 1
    shares = (rolling.max_unavailable or 0, rolling.max_surge or 0)
    most = (scaled_value(share, desired, round_up=True) for share in shares)
    return next(filter(None, most), 1)
