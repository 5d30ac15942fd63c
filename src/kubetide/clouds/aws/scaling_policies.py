"""What of AWS changes the size of an Auto Scaling group by itself: scaling policies and scheduled actions.

Source: Amazon EC2 Auto Scaling, ScalingPolicy and ScheduledUpdateGroupAction of its API, and "Suspend and resume processes".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from kubetide.clouds.aws.groups import Asg
from kubetide.clouds.common.scaling_policies import by_group
from kubetide.objects.base import Json

_BY_ALARM = frozenset({"SimpleScaling", "StepScaling"})


def scaling_policies(
    groups: Mapping[str, Asg], policies: Iterable[Json], actions: Iterable[Json]
) -> dict[str, tuple[str, ...]]:
    """Return what changes the sizes of these groups, by name.

    Args:
        groups: By name.
        policies, actions: As DescribePolicies and DescribeScheduledActions answer; those of other groups are left out.
    """
    return by_group(chain(_policies(groups, policies), _actions(groups, actions)), ())


def _policies(groups: Mapping[str, Asg], policies: Iterable[Json]) -> Iterator[tuple[str, str]]:
    for policy in policies:
        group = groups.get(policy.get("AutoScalingGroupName") or "")
        if group is not None and _acts(policy, group):
            kind = policy.get("PolicyType") or "SimpleScaling"
            yield group.name, f"scaling policy {policy.get('PolicyName') or '?'} ({kind})"


def _actions(groups: Mapping[str, Asg], actions: Iterable[Json]) -> Iterator[tuple[str, str]]:
    for action in actions:
        group = groups.get(action.get("AutoScalingGroupName") or "")
        if group is not None and "ScheduledActions" not in group.suspended:
            when = action.get("Recurrence") or action.get("StartTime")
            at = f" ({when})" if when else ""
            yield group.name, f"scheduled action {action.get('ScheduledActionName') or '?'}{at}"


def _acts(policy: Json, group: Asg) -> bool:
    """Return whether a policy changes the size without anybody executing it."""
    if policy.get("Enabled") is False:
        return False
    kind = policy.get("PolicyType") or "SimpleScaling"
    if kind == "PredictiveScaling":
        mode = (policy.get("PredictiveScalingConfiguration") or {}).get("Mode")
        return mode == "ForecastAndScale"
    if kind in _BY_ALARM and not policy.get("Alarms"):
        return False
    return "AlarmNotification" not in group.suspended
