"""TKEStack's CronHPA.

Source: tkestack/cron-hpa 16e15c0 (behaviour as recorded): events, ``lastScheduleTime``, no write where the size
is there already, a failed change tried again at each pass, the first listed of rules that are due together.
Done right: one object that cannot be read stops no other, of several missed activations the latest holds, a
schedule that never begins is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubetide.objects.base import Json
from kubetide.objects.kinds import TKESTACK_CRON_HPAS
from kubetide.objects.timetables import CronHpa
from kubetide.schedules.decision import Change, Notice, Run
from kubetide.schedules.kinds.base import Mode, created_at, to_size
from kubetide.schedules.tables import Mark, Progress, Rule, Table, Target, View
from kubetide.schedules.times.plans import Forms
from kubetide.schedules.times.reading import FIVE
from kubetide.units.time import Instant, format_rfc3339, instant_of, seconds


def _read(found: CronHpa) -> Table:
    meta, spec = found.metadata, found.spec
    reference = spec.scale_target_ref
    return Table(
        kind=TKESTACK_CRON_HPAS.kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        target=Target(reference.api_version, reference.kind, meta.namespace, reference.name),
        rules=tuple(Rule("", one.schedule, size=one.target_replicas) for one in spec.crons or ()),
        created=created_at(meta.creation_timestamp),
        last=instant_of(found.status.last_schedule_time),
    )


def _change(table: Table, rule: Rule, view: View) -> Change:
    error = f"{table.target.kind} {table.target.name} has no scale; name its target in scaleTargetRef"
    return to_size(table, rule, view, of_an_hpa=error)


def _report(
    table: Table, rule: Rule, run: Run, error: str, again: bool, now: Instant
) -> tuple[Mark | None, Sequence[Notice]]:
    del again, now
    if error:
        reason = "FailedGetScale" if run.change.error else "FailedRescale"
        return None, [Notice(table.key, "Warning", reason, error)]
    if run.change.replicas is None:
        return None, ()
    return None, [Notice(table.key, "Normal", "SuccessfulRescale", f"New size: {rule.size}")]


def _status(table: Table, progress: Progress) -> Json | None:
    del table
    return None if progress.last is None else {"lastScheduleTime": format_rfc3339(progress.last)}


MODE: Final = Mode(
    kind=TKESTACK_CRON_HPAS,
    forms=Forms(FIVE),
    read=_read,
    change=_change,
    report=_report,
    status=_status,
    pause=seconds(10),
    first_only=True,
)
