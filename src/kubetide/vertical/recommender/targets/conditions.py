"""Conditions of a VPA's status.

Source: VPA 1.8: RecommendationProvided, NoPodsMatched, ConfigUnsupported; ConfigDeprecated is only taken off.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubetide.objects.meta import Condition
from kubetide.units.time import Instant, format_rfc3339

PROVIDED = "RecommendationProvided"
NO_PODS = "NoPodsMatched"
UNSUPPORTED = "ConfigUnsupported"
DEPRECATED = "ConfigDeprecated"
LEFT_TO_HPA = "ResourcesLeftToHPA"
"""Not of upstream: resources that an HPA scales on by utilization."""
FETCHING_HISTORY = "FetchingHistory"
NO_PODS_MESSAGE = "No pods match this VPA object"
NO_SAMPLES = "NoSamples"
"""Not of upstream, which recommends the pod's minimum without samples."""
NO_SAMPLES_MESSAGE = "No usage of the pods has been measured yet"


def is_true(conditions: Iterable[Condition], kind: str) -> bool:
    """Return whether the condition exists and is True."""
    return any(one.type == kind and one.status == "True" for one in conditions)


def conditions_of(
    old: Iterable[Condition],
    *,
    problem: str,
    pods: bool,
    provided: bool,
    now: Instant,
    left: str = "",
    waits: bool = False,
) -> tuple[Condition, ...]:
    """Return the conditions, ordered by type; those set by others stay.

    Args:
        problem: Why the target cannot be used; empty if it can.
        pods: Whether any pod matches.
        provided: Whether there is a recommendation for any container.
        left: Which resources are left to which HPA; empty for none.
        waits: Whether there is none because nothing of them has been measured yet.
    """
    found = {one.type: one for one in old}
    found.pop(DEPRECATED, None)
    if problem:
        _set(found, UNSUPPORTED, True, "", problem, now)
    else:
        found.pop(UNSUPPORTED, None)
    if left:
        _set(found, LEFT_TO_HPA, True, "HPAScalesOnUtilization", left, now)
    else:
        found.pop(LEFT_TO_HPA, None)
    reason, message = ("", "") if pods else (NO_PODS, NO_PODS_MESSAGE)
    if pods:
        found.pop(NO_PODS, None)
    else:
        _set(found, NO_PODS, True, reason, message, now)
    if pods and waits:
        reason, message = NO_SAMPLES, NO_SAMPLES_MESSAGE
    if provided:
        _set(found, PROVIDED, True, "", "", now)
    else:
        _set(found, PROVIDED, False, reason, message, now)
    return tuple(found[name] for name in sorted(found))


def _set(
    found: dict[str, Condition], kind: str, value: bool, reason: str, message: str, now: Instant
) -> None:
    status, old = str(value), found.get(kind)
    if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
        return
    since = old.last_transition_time if old is not None and old.status == status else format_rfc3339(now)
    found[kind] = Condition(
        type=kind, status=status, reason=reason, message=message, last_transition_time=since
    )
