"""The state machine of a resize in place: may a pod be resized now, does it wait, or is it given up?

A resize that is under way shows as a condition of the pod: ``PodResizePending`` (Deferred: the node is full now;
Infeasible: it can never hold it) or ``PodResizeInProgress`` (with the reason Error where it fails).

Source: vertical-pod-autoscaler 1.8.1, pkg/updater/restriction; KEP-1287.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from kubetide.objects.meta import Condition, key_of
from kubetide.objects.pod import Pod, pod_condition
from kubetide.objects.vpa import IN_PLACE, PodRecommendation
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.time import Instant, between, hours, minutes
from kubetide.vertical.resources.capping import Capped
from kubetide.vertical.updater.memory import Memory, Targets
from kubetide.vertical.updater.rules.groups import Group, uid_of

Decision = Literal["approved", "deferred", "evict", "infeasible", "skipped"]

DEFERRED_PATIENCE: Final = minutes(5)
IN_PROGRESS_PATIENCE: Final = hours(1)

_PENDING, _IN_PROGRESS = "PodResizePending", "PodResizeInProgress"


def resize_condition(pod: Pod) -> Condition | None:
    """Return the condition of a resize under way, None without one; the first of the two kinds decides."""
    for condition in pod.status.conditions or ():
        if condition.type in {_PENDING, _IN_PROGRESS}:
            return condition if condition.status == "True" else None
    return None


def restarts_container(pod: Pod) -> bool:
    """Return whether a resize restarts a container."""
    return any(
        policy.restart_policy == "RestartContainer"
        for container in pod.spec.containers or ()
        for policy in container.resize_policy or ()
    )


def decide_in_place(
    pod: Pod,
    group: Group | None,
    recommended: Targets | None,
    memory: Memory,
    now: Instant,
    *,
    mode: str,
    skip_budget: bool,
) -> tuple[Decision, str]:
    """Return what happens to a pod in an in-place mode, and why.

    Notes in ``memory`` when a resize under way was first seen.

    Args:
        group: None if the pod may not be changed.
        recommended: What the VPA's status recommends, uncapped; None without any.
        skip_budget: Whether a resize that restarts nothing needs no budget.
    """
    if group is None:
        return "deferred", "NoGroup"
    if pod.status.phase == "Pending":
        return "deferred", "Pending"
    if recommended is None:
        return "deferred", "NoRecommendation"
    if mode == IN_PLACE and not is_worth_a_try(pod, recommended, memory):
        return "skipped", "InfeasibleBefore"
    if resize_condition(pod) is not None:
        if mode == IN_PLACE:
            return _under_way(pod)
        return _or_recreate(pod, group, memory, now)
    if skip_budget and not restarts_container(pod):
        return "approved", "Queued"
    if group.has_budget():
        return "approved", "Queued"
    return "deferred", "NoBudget"


def _under_way(pod: Pod) -> tuple[Decision, str]:
    """Mode InPlace waits, whatever happens; only an infeasible resize is remembered."""
    pending, running = pod_condition(pod, _PENDING), pod_condition(pod, _IN_PROGRESS)
    if pending is not None:
        if pending.reason == "Infeasible":
            return "infeasible", "ResizeInfeasible"
        return "deferred", "ResizeDeferred" if pending.reason == "Deferred" else "ResizeUnknown"
    if running is not None and running.reason == "Error":
        return "deferred", "ResizeError"
    known = running is not None and not (running.reason or running.message)
    return "deferred", "ResizeInProgress" if known else "ResizeUnknown"


def _or_recreate(pod: Pod, group: Group, memory: Memory, now: Instant) -> tuple[Decision, str]:
    why = given_up(pod, group, memory, now)
    if why:
        return "evict", why
    return "deferred", "ResizeWaits"


def given_up(pod: Pod, group: Group, memory: Memory, now: Instant) -> str:
    """Return why a resize under way is given up for an eviction, empty while it is waited for."""
    since = memory.attempts.setdefault("/".join(key_of(pod)), now)
    if not group.has_budget():
        return ""
    # A pending resize says more than one in progress, whichever condition comes first.
    pending = pod_condition(pod, _PENDING)
    if pending is not None:
        if pending.reason == "Infeasible":
            return "ResizeInfeasible"
        if pending.reason != "Deferred":
            return "ResizeUnknown"
        return "ResizeDeferred" if between(since, now) > DEFERRED_PATIENCE else ""
    running = pod_condition(pod, _IN_PROGRESS)
    if running is None:
        return ""
    if running.reason == "Error":
        return "ResizeError"
    if running.reason or running.message:
        return "ResizeUnknown"
    return "ResizeInProgress" if between(since, now) > IN_PROGRESS_PATIENCE else ""


def recommended_targets(recommendation: PodRecommendation | None) -> Targets | None:
    """Return the targets of a VPA's status as they are remembered, None without a recommendation."""
    if recommendation is None:
        return None
    return {
        one.container_name: {name: str(amount) for name, amount in (one.target or {}).items()}
        for one in recommendation.container_recommendations or ()
    }


def capped_targets(capped: Mapping[str, Capped]) -> Targets:
    """Return the targets of one pod's containers in the same form."""
    return {
        name: {resource: str(amount) for resource, amount in one.target.items()}
        for name, one in capped.items()
    }


def is_worth_a_try(pod: Pod, targets: Targets, memory: Memory) -> bool:
    """Return whether a target is lower than in the resize that was infeasible, or none was."""
    before = memory.infeasible.get(uid_of(pod))
    if before is None:
        return True
    for name, amounts in targets.items():
        for resource, amount in amounts.items():
            known = before.get(name, {}).get(resource)
            try:
                if known is not None and Quantity.parse(amount) < Quantity.parse(known):
                    return True
            except QuantityError:
                continue
    return False
