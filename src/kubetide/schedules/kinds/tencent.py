"""Tencent's HorizontalPodCronscaler.

Source: Tencent Cloud, TKE product documentation (457/56753, 457/40956): the fields, six-field schedules and
dates left out by rule; a rule of a workload sets its size, one of an HPA both bounds. The documents say nothing
of the status, of events and of activations missed while nobody ran: these are as for the rest of this loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubetide.objects.base import Json
from kubetide.objects.kinds import HPCS
from kubetide.objects.timetables import HorizontalPodCronscaler, HpcCron
from kubetide.schedules.decision import Change, Notice, Run
from kubetide.schedules.kinds.base import Mode, created_at, is_hpa
from kubetide.schedules.tables import Mark, Progress, Rule, Table, Target, View
from kubetide.schedules.times.plans import Forms
from kubetide.schedules.times.reading import SIX_STRICT
from kubetide.units.time import Instant, format_rfc3339, instant_of, seconds


def _read(found: HorizontalPodCronscaler) -> Table:
    meta, reference = found.metadata, found.spec.scale_target
    home = reference.namespace or meta.namespace
    target = Target(reference.api_version, reference.kind, home, reference.name)
    crons = found.spec.crons or ()
    return Table(
        kind=HPCS.kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        target=target,
        rules=tuple(
            Rule(
                one.name,
                one.schedule,
                size=one.target_size,
                minimum=one.min_size,
                maximum=one.max_size,
                exclude=one.exclude_dates or (),
            )
            for one in crons
        ),
        created=created_at(meta.creation_timestamp),
        refused=tuple(_refusals(meta.namespace, target, crons)),
        last=instant_of(found.status.last_schedule_time),
    )


def _refusals(namespace: str, target: Target, crons: Sequence[HpcCron]) -> list[str]:
    """Return why an object cannot be followed."""
    found = []
    if not (target.kind and target.name):
        found.append("spec.scaleTarget: kind and name must not be empty")
    if target.namespace != namespace:
        found.append(
            f"spec.scaleTarget.namespace {target.namespace!r}: write {namespace!r}, the object's own"
        )
    for one in crons:
        if is_hpa(target) and one.min_size is None and one.max_size is None:
            found.append(f"{one.name}: an HPA needs minSize and maxSize")
        if not is_hpa(target) and one.target_size is None:
            found.append(f"{one.name}: {target.kind} needs targetSize")
        if is_hpa(target) and one.max_size == 0:
            found.append(f"{one.name}: maxSize 0: an HPA allows at least 1")
        if one.min_size is not None and one.max_size is not None and one.min_size > one.max_size:
            found.append(f"{one.name}: minSize {one.min_size} is above maxSize {one.max_size}")
    return found


def _change(table: Table, rule: Rule, view: View) -> Change:
    if view.error:
        return Change(table.target, error=view.error, stage=view.stage)
    if view.hpa is None:
        return Change(
            table.target, replicas=rule.size, current=view.replicas, scale_version=view.resource_version
        )
    hpa = view.hpa
    low = (1 if hpa.minimum is None else hpa.minimum) if rule.minimum is None else rule.minimum
    high = hpa.maximum if rule.maximum is None else rule.maximum
    if low > high:
        return Change(
            table.target, error=f"minReplicas {low} would be above maxReplicas {high}", stage="bounds"
        )
    return Change(
        hpa.target, minimum=low, maximum=high, current=view.replicas, hpa_version=hpa.resource_version
    )


def _report(
    table: Table, rule: Rule, run: Run, error: str, again: bool, now: Instant
) -> tuple[Mark | None, Sequence[Notice]]:
    del again, now
    if error:
        message = f"{rule.name}: {table.target.kind} {table.target.name} cannot be changed: {error}"
        return None, [Notice(table.key, "Warning", "FailedRescale", message)]
    done = run.change
    said = (
        f"size {done.replicas}" if done.replicas is not None else f"bounds {done.minimum} to {done.maximum}"
    )
    return None, [Notice(table.key, "Normal", "SuccessfulRescale", f"{rule.name}: {said}")]


def _status(table: Table, progress: Progress) -> Json | None:
    del table
    return None if progress.last is None else {"lastScheduleTime": format_rfc3339(progress.last)}


MODE: Final = Mode(
    kind=HPCS,
    forms=Forms(SIX_STRICT),
    read=_read,
    change=_change,
    report=_report,
    status=_status,
    pause=seconds(10),
)
