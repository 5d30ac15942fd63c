"""What of Tencent Cloud changes the size of an Auto Scaling group by itself: scaling policies and scheduled actions.

The API has no switch of a single one; in a group that is disabled none of them acts.
Source: Auto Scaling 2018-04-19, ScalingPolicy, ScheduledAction and DisableAutoScalingGroup.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.clouds.common.entries import Entries
from kubetide.clouds.common.scaling_policies import by_group
from kubetide.clouds.common.times import is_past
from kubetide.clouds.tencent.model import Group, ScalingPolicy, ScheduledAction
from kubetide.units.time import Instant


def scaling_policies(
    groups: Mapping[str, Group],
    policies: Entries[ScalingPolicy],
    actions: Entries[ScheduledAction],
    now: Instant,
) -> dict[str, tuple[str, ...]]:
    """Return what changes the sizes of these groups by itself, by the provider's ids.

    Args:
        groups: The provider's groups by its ids.
        policies, actions: As Tencent Cloud lists them; those of other groups are left out.
        now: Scheduled actions that have ended before are left out.

    Raises:
        CloudError: Where nothing is found, and an entry cannot be read.
    """
    names = {one.auto_scaling_group_id: name for name, one in groups.items() if one.is_enabled}
    found = [
        (one.auto_scaling_group_id, f"scaling policy {one.scaling_policy_name} ({one.scaling_policy_type})")
        for one in policies.found
    ]
    found += [
        (
            one.auto_scaling_group_id,
            f"scheduled action {one.scheduled_action_name} ({one.recurrence or one.start_time})",
        )
        for one in actions.found
        if not _is_over(one, now)
    ]
    return by_group(
        ((names[group], text) for group, text in found if group in names),
        (*policies.problems.values(), *actions.problems.values()),
    )


def _is_over(action: ScheduledAction, now: Instant) -> bool:
    """Return whether a scheduled action does nothing any more; one that recurs without an end never is."""
    return is_past(action.end_time if action.recurrence else action.start_time, now)
