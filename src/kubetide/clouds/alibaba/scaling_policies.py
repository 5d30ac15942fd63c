"""What of Alibaba Cloud changes the size of a scaling group by itself: some scaling rules, alarms and scheduled tasks.

Most scaling rules wait until an alarm, a scheduled task or somebody else executes them.
Source: Elastic Scaling Service 2014-08-28, DescribeScalingRules, DescribeAlarms, DescribeScheduledTasks, SuspendProcesses
and DisableScalingGroup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubetide.clouds.alibaba.model import Alarm, ScalingGroup, ScalingRule, ScheduledTask
from kubetide.clouds.common.entries import Entries
from kubetide.clouds.common.scaling_policies import by_group
from kubetide.clouds.common.times import is_past
from kubetide.units.time import Instant

_ALARMS: Final = "AlarmNotification"
_SCHEDULES: Final = "ScheduledAction"
_ALONE: Final = {"TargetTrackingScalingRule": _ALARMS, "PredictiveScalingRule": _SCHEDULES}
"""Types of rules that nobody has to execute, and the process of the group by which they act."""

_Found = tuple[str, str, str]
"""A process, the id of the group that it changes, and what does."""


def scaling_policies(
    groups: Mapping[str, ScalingGroup],
    rules: Entries[ScalingRule],
    alarms: Entries[Alarm],
    tasks: Entries[ScheduledTask],
    now: Instant,
) -> dict[str, tuple[str, ...]]:
    """Return what changes the sizes of these groups by itself, by the provider's ids.

    Args:
        groups: The provider's groups by its ids.
        rules, alarms, tasks: As Alibaba Cloud lists them; those of other groups are left out.
        now: Scheduled tasks that have ended before are left out.

    Raises:
        CloudError: Where nothing is found, and an entry cannot be read.
    """
    names = {one.scaling_group_id: name for name, one in groups.items()}
    by_ari = {one.scaling_rule_ari: one for one in rules.found}
    found = (
        *_of_rules(rules.found),
        *_of_alarms(alarms.found, by_ari),
        *_of_tasks(tasks.found, by_ari, now),
    )
    return by_group(
        (
            (names[group], text)
            for process, group, text in found
            if group in names and groups[names[group]].has_process(process)
        ),
        (*rules.problems.values(), *alarms.problems.values(), *tasks.problems.values()),
    )


def _acts_alone(rule: ScalingRule) -> bool:
    return rule.scaling_rule_type in _ALONE and rule.predictive_scaling_mode != "PredictOnly"


def _of_rules(rules: Iterable[ScalingRule]) -> Iterator[_Found]:
    for rule in rules:
        if _acts_alone(rule):
            text = f"scaling rule {rule.scaling_rule_name} ({rule.scaling_rule_type})"
            yield _ALONE[rule.scaling_rule_type], rule.scaling_group_id, text


def _of_alarms(alarms: Iterable[Alarm], by_ari: Mapping[str, ScalingRule]) -> Iterator[_Found]:
    """Yield the rules that alarms execute, but those with alarms of their own."""
    for alarm in alarms:
        for ari in alarm.actions if alarm.enable else ():
            rule = by_ari.get(ari)
            if rule is None:
                yield _ALARMS, alarm.scaling_group_id, f"alarm {alarm.name}"
            elif not _acts_alone(rule):
                text = f"alarm {alarm.name} (scaling rule {rule.scaling_rule_name})"
                yield _ALARMS, rule.scaling_group_id, text


def _of_tasks(
    tasks: Iterable[ScheduledTask], by_ari: Mapping[str, ScalingRule], now: Instant
) -> Iterator[_Found]:
    for task in tasks:
        recurs = bool(task.recurrence_type)
        is_over = is_past(task.recurrence_end_time if recurs else task.launch_time, now)
        if not task.task_enabled or is_over:
            continue
        rule = by_ari.get(task.scheduled_action)
        group = rule.scaling_group_id if rule else task.scaling_group_id
        when = f"{task.recurrence_type} {task.recurrence_value}" if recurs else task.launch_time
        yield _SCHEDULES, group, f"scheduled task {task.scheduled_task_name} ({when})"
