"""Alibaba's CronHorizontalPodAutoscaler.

Source: kubernetes-cronhpa-controller 31c63be (README, behaviour as recorded): states, messages, events,
retries and the arithmetic on HPAs are copied. Done right: the year of ``@date``, dates left out, activations
missed while nobody ran, the days of a change of the clocks, and jobs delayed because another was removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kubetide.objects.base import Json
from kubetide.objects.kinds import CRON_HPAS
from kubetide.objects.timetables import CronHorizontalPodAutoscaler
from kubetide.schedules.decision import Change, Notice, Run
from kubetide.schedules.kinds.base import Mode, created_at, group_of, is_hpa
from kubetide.schedules.tables import Mark, Progress, Rule, Table, Target, View
from kubetide.schedules.times.plans import Forms, Plan
from kubetide.schedules.times.reading import SIX
from kubetide.units.time import Instant, format_rfc3339, instant_of, seconds

SUBMITTED: Final = "Submitted"
SUCCEED: Final = "Succeed"
FAILED: Final = "Failed"

_TRIES = 4


def _read(found: CronHorizontalPodAutoscaler) -> Table:
    meta, spec, status = found.metadata, found.spec, found.status
    exclude = spec.exclude_dates or ()
    reference = spec.scale_target_ref
    said = status.scale_target_ref
    return Table(
        kind=CRON_HPAS.kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        target=Target(_version(reference.api_version), reference.kind, meta.namespace, reference.name),
        rules=tuple(
            Rule(job.name, job.schedule, size=job.target_size, once=job.run_once, exclude=exclude)
            for job in spec.jobs or ()
        ),
        created=created_at(meta.creation_timestamp),
        marks=tuple(
            Mark(
                Rule(one.name, one.schedule, size=one.target_size, once=one.run_once),
                one.state,
                one.message,
                instant_of(one.last_probe_time) or created_at(meta.creation_timestamp),
            )
            for one in status.conditions or ()
        ),
        basis=_basis(said.api_version, said.kind, said.name, status.exclude_dates or ()),
    )


def _version(text: str) -> str:
    """Return group and version of an ``apiVersion``: upstream does not look at what stands after them."""
    return "/".join(text.split("/")[:2])


def _basis(api_version: str, kind: str, name: str, exclude: Sequence[str]) -> str:
    """Return what all jobs are made for; the order of the dates plays no part."""
    return "\n".join((_version(api_version), kind, name, *sorted(set(exclude))))


def _submit(table: Table, plan: Plan, progress: Progress, now: Instant) -> Progress:
    """Return the marks of the jobs that the table has now; a job that changed begins anew."""
    target = table.target
    basis = _basis(
        target.api_version, target.kind, target.name, table.rules[0].exclude if table.rules else ()
    )
    known = {mark.rule.name: mark for mark in progress.marks} if progress.basis == basis else {}
    marks: dict[str, Mark] = {}
    for entry in plan.entries:
        rule = replace(entry.rule, exclude=())
        if rule.name in marks:
            continue
        mark = known.get(rule.name)
        if mark is None or mark.rule != rule:
            problem = _problem(table, entry.rule, entry.problem)
            mark = Mark(rule, FAILED if problem else SUBMITTED, problem, now)
        marks[rule.name] = mark
    return replace(progress, marks=tuple(marks.values()), basis=basis)


def _problem(table: Table, rule: Rule, problem: str) -> str:
    parts = table.target.api_version.split("/")
    named = [*parts, table.target.kind, table.target.name] if len(parts) > 1 else []
    named = named or [table.target.api_version, table.target.kind, table.target.name]
    if not all(named):
        why = "any properties in ref could not be empty"
        return f"Failed to create cron hpa job {rule.name} in {table.name} namespace {table.namespace},because of {why}"
    if problem:
        why = problem[:1].upper() + problem[1:]
        return f"Failed to update cron hpa job {rule.name},because of Failed to add job to cronExecutor,because of {why}"
    return ""


def _change(table: Table, rule: Rule, view: View) -> Change:
    size = rule.size or 0
    if view.error:
        return Change(table.target, error=_unread(view), stage=view.stage)
    if view.hpa is None:
        return Change(table.target, replicas=size, current=view.replicas, scale_version=view.resource_version)
    hpa = view.hpa
    low = 1 if hpa.minimum is None else hpa.minimum
    bounds = bounds_after(size, hpa.current, low, hpa.maximum)
    stays = hpa.current >= size
    skipped = (
        f"Skip scale replicas because HPA {table.target.name} in namespace {table.target.namespace} "
        f"current replicas:{view.replicas} >= desired replicas:{size}."
    )
    return Change(
        hpa.target,
        minimum=None if bounds is None else bounds[0],
        maximum=None if bounds is None else bounds[1],
        replicas=None if stays else size,
        current=view.replicas,
        hpa_version=hpa.resource_version,
        scale_version=view.resource_version,
        note=skipped if stays else "",
    )


def bounds_after(size: int, current: int, low: int, high: int) -> tuple[int, int] | None:
    """Return the bounds that an HPA gets when a job sets ``size``; None if they stay.

    Source: README of the controller; ``current`` is the HPA's status. A bound is never given back, and bounds
    are written also where they stay the same, as upstream does.
    """
    lowers = size < low or (current == low and size < current) or current < size
    if not lowers and size <= high:
        return None
    return (size if lowers else low), max(high, size)


def _unread(view: View) -> str:
    target = view.target
    if view.stage == "kind":
        return f"Failed to create create mapping,because of no matches for {group_of(target)}/, Resource={target.kind}"
    if view.stage == "hpa-version":
        return f"Failed to get TargetGroup of HPA {target.name} in namespace {target.namespace} ,because of {view.error}"
    if view.stage == "hpa-kind":
        return f"Failed to create mapping,because of {view.error}"
    if view.stage == "get" and is_hpa(target):
        return f"Failed to get HorizontalPodAutoscaler Ref,because of {view.error}"
    return f"failed to found source target {target.kind} {target.name} in {target.namespace} namespace, err is {view.error}"


def _report(
    table: Table, rule: Rule, run: Run, error: str, again: bool, now: Instant
) -> tuple[Mark | None, Sequence[Notice]]:
    bare = replace(rule, exclude=())
    target, size = table.target, rule.size or 0
    if not error:
        said = run.change.note or f"current replicas:{run.change.current}, desired replicas:{size}."
        message = f"cron hpa job {rule.name} executed successfully. {said}"
        return Mark(bare, SUCCEED, message, now, run.due), [Notice(table.key, "Normal", SUCCEED, message)]
    if again:
        return None, ()
    failed = f"failed to scale {target.kind} {target.name} in {target.namespace} namespace to {size}"
    why = error if run.change.error else f"{failed}, because of {error}"
    message = f"cron hpa failed to execute, because of {failed} after retrying {_TRIES} times and exit,because of {why}"
    return Mark(bare, FAILED, message, now, run.due), [Notice(table.key, "Warning", FAILED, message)]


def skipped(table: Table, rule: Rule, expression: str, due: Instant, now: Instant) -> tuple[Mark, Notice]:
    """Return the text about an activation on an excluded date; a job that runs once still has its run."""
    message = (
        f"cron hpa job {rule.name} executed successfully. "
        f"skip scaling activity,because of excludeDate ({expression})."
    )
    state = SUBMITTED if rule.once else SUCCEED
    return Mark(replace(rule, exclude=()), state, message, now, due), Notice(
        table.key, "Normal", SUCCEED, message
    )


def is_new(mark: Mark) -> bool:
    """Return whether nothing has come of a job since it was submitted, at ``mark.at``."""
    return mark.state == SUBMITTED and not mark.message


def is_done(mark: Mark) -> bool:
    """Return whether a job that runs once has had its run."""
    return mark.rule.once and mark.state in {SUCCEED, FAILED}


def _status(table: Table, progress: Progress) -> Json:
    target = table.target
    return {
        "scaleTargetRef": {"apiVersion": target.api_version, "kind": target.kind, "name": target.name},
        "excludeDates": list(table.rules[0].exclude) if table.rules else [],
        "conditions": [
            {
                "name": mark.rule.name,
                "jobId": "",
                "schedule": mark.rule.schedule,
                "targetSize": mark.rule.size or 0,
                "runOnce": mark.rule.once,
                "state": mark.state,
                "message": mark.message,
                "lastProbeTime": format_rfc3339(mark.at),
            }
            for mark in progress.marks
        ],
    }


MODE: Final = Mode(
    kind=CRON_HPAS,
    forms=Forms(SIX, dates=True),
    read=_read,
    change=_change,
    report=_report,
    status=_status,
    submit=_submit,
    tries=_TRIES,
    pause=seconds(3),
    by_rule=True,
)
