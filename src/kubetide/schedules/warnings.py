"""Warnings about a table: for its events, and where an autoscaler of the same workload takes back what it sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.kinds import HPAS, SCALED_OBJECTS
from kubetide.objects.meta import controller_of
from kubetide.objects.scaled_objects import needs_hpa
from kubetide.objects.timetables import ScaledObject
from kubetide.schedules.kinds.alibaba import is_new
from kubetide.schedules.kinds.registry import MODES
from kubetide.schedules.state import State
from kubetide.schedules.tables import Identity, Progress, Table, Target
from kubetide.schedules.times.calendar import Once
from kubetide.schedules.times.plans import Plan

INVALID: Final = "InvalidTimeTable"
"""The reason of the events."""


class Conflict(NamedTuple):
    """A table that changes what another object changes, too: what is wrong, and what to do."""

    table: Table
    seen: str
    fix: str


def warnings_of(state: State, table: Table, plan: Plan, progress: Progress) -> tuple[str, ...]:
    """Return warnings about a table by itself and together with others of the same target."""
    found = [*rule_warnings(table, plan, progress), *table.notes]
    if shared := shared_target(state, table):
        found.append(f"{shared.seen}; {shared.fix}")
    return tuple(found)


def rule_warnings(table: Table, plan: Plan, progress: Progress) -> list[str]:
    """Return what of the rules of a table cannot be read, or does not hold as written."""
    names = [rule.name for rule in table.rules if rule.name]
    return [
        *plan.warnings,
        *_late_jobs(table, plan, progress),
        *(
            f"{name}: the name stands {names.count(name)} times; the first one alone may be followed"
            for name in sorted({name for name in names if names.count(name) > 1})
        ),
    ]


def shared_target(state: State, table: Table) -> Conflict | None:
    """Return the conflict with other tables that change the same target; None without any."""
    others = sorted(state.sharing.get(table.target.identity, set()) - {table.key})
    if not others:
        return None
    named = ", ".join(f"{kind} {namespace}/{name}" for kind, namespace, name in others)
    return Conflict(
        table,
        f"{table.target.kind} {table.target.name} is changed by {named}, too: the last change holds",
        "put all rules into one object",
    )


def _late_jobs(table: Table, plan: Plan, progress: Progress) -> list[str]:
    """Return a warning for each job whose one date was past when it was edited, but not when the object was created."""
    submitted = {mark.rule.name: mark.at for mark in progress.marks if is_new(mark)}
    return [
        f"{entry.rule.name} ({entry.rule.schedule!r}): was past when the job was submitted; it never begins"
        for entry in plan.entries
        if isinstance(entry.calendar, Once)
        and entry.calendar.last(submitted.get(entry.rule.name, table.created)) is not None
        and entry.calendar.next(table.created) is not None
    ]


def autoscalers(
    hpas: Iterable[HorizontalPodAutoscaler], scaled_objects: Iterable[ScaledObject]
) -> dict[Identity, tuple[str, str]]:
    """Return kind and name, such as ``shop/web``, of the autoscaler of each workload that has one.

    An HPA that KEDA made is of its ScaledObject; one of cron triggers alone is a time table itself.
    """
    found = {}
    for hpa in hpas:
        owner = controller_of(hpa.metadata)
        if owner is None or owner.kind != SCALED_OBJECTS.kind:
            ref, meta = hpa.spec.scale_target_ref, hpa.metadata
            target = Target(ref.api_version or "", ref.kind, meta.namespace, ref.name)
            found[target.identity] = HPAS.kind, f"{meta.namespace}/{meta.name}"
    for one in filter(needs_hpa, scaled_objects):
        target = MODES[SCALED_OBJECTS.kind].read(one).target
        found[target.identity] = SCALED_OBJECTS.kind, f"{one.metadata.namespace}/{one.metadata.name}"
    return found


def size_conflicts(
    tables: Iterable[Table], scalers: Mapping[Identity, tuple[str, str]]
) -> Iterator[Conflict]:
    """Yield each table that sets the size of a workload that an autoscaler sizes, too.

    Args:
        scalers: The autoscalers, as ``autoscalers`` returns them.
    """
    for table in tables:
        scaler = scalers.get(table.target.identity)
        if scaler is None or MODES[table.kind].bounds:
            continue
        kind, name = scaler
        yield Conflict(
            table,
            f"{kind} {name} scales {table.target.kind} {table.target.name}, too, and takes back what this sets",
            "let it change the HPA, or delete one of them"
            if kind == HPAS.kind
            else "write the times as cron triggers of that ScaledObject, or delete one of them",
        )
