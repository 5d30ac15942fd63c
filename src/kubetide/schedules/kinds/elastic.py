"""The schedule section of our ElasticWorkload: floors, ceilings and exact sizes of its target.

Where the object has a horizontal section too, the bounds stand in its status, from which the horizontal loop takes
them. Without one this loop keeps the size within them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubetide.objects.base import Json
from kubetide.objects.elastic import ElasticRule, ElasticWorkload, ScheduleSection, is_accepted
from kubetide.objects.kinds import ELASTIC_WORKLOADS
from kubetide.schedules.decision import Change, Notice, Run
from kubetide.schedules.kinds.base import Mode, created_at
from kubetide.schedules.tables import Bounds, Limits, Mark, Progress, Rule, Table, Target, View
from kubetide.schedules.times.bounds import floor_of, size_within
from kubetide.schedules.times.plans import Forms, plan_of
from kubetide.schedules.times.reading import DAYS, FIVE, SIX_STRICT
from kubetide.units.time import Instant, format_rfc3339, seconds


def _read(found: ElasticWorkload) -> Table:
    meta, spec = found.metadata, found.spec
    schedule = spec.schedule if is_accepted(found) else None
    reference, horizontal = spec.target_ref, spec.horizontal
    refused = () if schedule is None else tuple(_refusals(schedule))
    base = None
    if horizontal is not None:
        least = 1 if horizontal.min_replicas is None else horizontal.min_replicas
        base = Limits(minimum=least, maximum=horizontal.max_replicas)
    return Table(
        kind=ELASTIC_WORKLOADS.kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        target=Target(reference.api_version, reference.kind, meta.namespace, reference.name),
        rules=() if schedule is None or refused else tuple(_rules(schedule)),
        created=created_at(meta.creation_timestamp),
        limits=base,
        refused=refused,
    )


def schedule_problems(schedule: ScheduleSection) -> list[str]:
    """Return what of a schedule is not followed: refused fields, names that stand twice, and texts that cannot be read."""
    refused = _refusals(schedule)
    if refused:
        return refused
    rules = tuple(_rules(schedule))
    names = [rule.name for rule in rules]
    twice = sorted({name for name in names if names.count(name) > 1})
    target = Target("", "", "", "")
    table = Table(ELASTIC_WORKLOADS.kind, "", "", "", target=target, rules=rules, created=Instant(0))
    return [
        *(f"spec.schedule.rules: the name {name!r} stands {names.count(name)} times" for name in twice),
        *(f"spec.schedule.rules: {text}" for text in plan_of(table, MODE.forms, "UTC").warnings),
    ]


def _rules(schedule: ScheduleSection) -> list[Rule]:
    calendars = {one.name: one.dates or () for one in schedule.calendars or ()}
    return [
        Rule(
            one.name,
            one.at or one.start,
            end=one.end,
            size=one.replicas,
            minimum=one.min_replicas,
            maximum=one.max_replicas,
            exclude=(
                *(one.exclude_dates or ()),
                *(f"{DAYS}{text}" for name in one.exclude_calendars or () for text in calendars[name]),
            ),
            zone=one.time_zone or schedule.time_zone,
        )
        for one in schedule.rules or ()
    ]


def _refusals(schedule: ScheduleSection) -> list[str]:
    """Return why a schedule cannot be followed as a whole."""
    known = {one.name for one in schedule.calendars or ()}
    found = []
    for place, one in enumerate(schedule.rules or ()):
        at = f"spec.schedule.rules[{place}]"
        found += [f"{at}.{text}" for text in _rule_refusals(one)]
        found += [
            f"{at}.excludeCalendars: there is no calendar {name!r} in spec.schedule.calendars"
            for name in one.exclude_calendars or ()
            if name not in known
        ]
    return found


def _rule_refusals(one: ElasticRule) -> list[str]:
    """Return what of a rule does not go together, each with the field before it."""
    found = []
    if not one.name:
        found.append("name: is missing")
    if bool(one.at) == bool(one.start or one.end):
        found.append("at: write either at, or start and end")
    elif bool(one.start) != bool(one.end):
        found.append("end: a window has both a start and an end")
    if one.replicas is not None and not (one.min_replicas is one.max_replicas is None):
        found.append("replicas: is floor and ceiling; leave minReplicas and maxReplicas out")
    if one.replicas is one.min_replicas is one.max_replicas is None:
        found.append("replicas: write replicas, minReplicas or maxReplicas")
    if one.min_replicas is not None and one.max_replicas is not None and one.min_replicas > one.max_replicas:
        found.append(f"maxReplicas: {one.max_replicas} is below minReplicas {one.min_replicas}")
    found += [
        f"{name}: {value} is negative"
        for name, value in (
            ("replicas", one.replicas),
            ("minReplicas", one.min_replicas),
            ("maxReplicas", one.max_replicas),
        )
        if value is not None and value < 0
    ]
    return found


def _change(table: Table, rule: Rule, view: View) -> Change:
    """Return the change that brings the size within the rule's bounds."""
    if view.error:
        return Change(table.target, error=view.error, stage=view.stage)
    desired = size_within(Bounds(floor_of(rule), rule.maximum), table.limits, view.replicas)
    return Change(table.target, replicas=desired, current=view.replicas, scale_version=view.resource_version)


def _report(
    table: Table, rule: Rule, run: Run, error: str, again: bool, now: Instant
) -> tuple[Mark | None, Sequence[Notice]]:
    del again, now
    if error:
        return None, [Notice(table.key, "Warning", "FailedRescale", f"{rule.name}: {error}")]
    if run.change.replicas is None:
        return None, ()
    said = f"New size: {run.change.replicas}; reason: schedule, {rule.name}"
    return None, [Notice(table.key, "Normal", "SuccessfulRescale", said)]


def _status(table: Table, progress: Progress) -> Json | None:
    if not table.rules and not table.refused:
        return None if progress.bounds is None else {"schedule": None}
    held = progress.bounds or Bounds()
    return {
        "schedule": {
            "minReplicas": held.minimum,
            "maxReplicas": held.maximum,
            "rules": list(held.rules) or None,
            "nextChange": None if held.next is None else format_rfc3339(held.next),
            "problems": list(progress.warned) or None,
        }
    }


MODE: Final = Mode(
    kind=ELASTIC_WORKLOADS,
    forms=Forms(FIVE, dates=True, six=SIX_STRICT),
    read=_read,
    change=_change,
    report=_report,
    status=_status,
    pause=seconds(30),
    bounds=True,
)
