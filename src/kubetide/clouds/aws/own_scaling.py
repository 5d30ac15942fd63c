"""What of AWS changes the size of an Auto Scaling group by itself: scaling policies and scheduled actions.

Source: Amazon EC2 Auto Scaling, ScalingPolicy and ScheduledUpdateGroupAction of its API, and "Suspend and resume processes".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubetide.clouds.aws.groups import Asg
from kubetide.objects.base import Json

_BY_ALARM = frozenset({"SimpleScaling", "StepScaling"})


def own_scaling(
    groups: Mapping[str, Asg], policies: Iterable[Json], actions: Iterable[Json]
) -> dict[str, Sequence[str]]:
    """Return what changes the sizes of these groups, by name; each is named, ordered.

    Args:
        groups: By name.
        policies, actions: As DescribePolicies and DescribeScheduledActions answer; those of other groups are left out.
    """
    found: dict[str, list[str]] = {}
    for policy in policies:
        name = str(policy.get("AutoScalingGroupName") or "")
        if name in groups and _acts(policy, groups[name]):
            kind = policy.get("PolicyType") or "SimpleScaling"
            found.setdefault(name, []).append(f"scaling policy {policy.get('PolicyName') or '?'} ({kind})")
    for action in actions:
        name = str(action.get("AutoScalingGroupName") or "")
        if name in groups and "ScheduledActions" not in groups[name].suspended:
            when = action.get("Recurrence") or action.get("StartTime")
            told = f" ({when})" if when else ""
            found.setdefault(name, []).append(
                f"scheduled action {action.get('ScheduledActionName') or '?'}{told}"
            )
    return {name: sorted(texts) for name, texts in sorted(found.items())}


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
