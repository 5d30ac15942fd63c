"""ScaledObjects with KEDA's cron triggers alone: how one is read, changed and reported. Source: KEDA 2.21."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from kubetide.objects.base import Json
from kubetide.objects.kinds import SCALED_OBJECTS
from kubetide.objects.scaled_objects import (
    ACTIVE,
    FORCED,
    INACTIVE,
    PAUSED,
    PAUSED_DOWN,
    PAUSED_UP,
    READY,
    RESTS,
    conditions,
    faulty,
    has_pause_at,
    is_annotated,
    needs_hpa,
    pause_problems,
    paused_size,
    replica_problems,
    trigger_problems,
)
from kubetide.objects.timetables import KedaTrigger, ScaledObject
from kubetide.schedules.decision import Change, Notice, Run
from kubetide.schedules.kinds.base import Mode, created_at, to_size
from kubetide.schedules.kinds.keda_cron import FORMS, TriggerError, read_trigger
from kubetide.schedules.tables import Limits, Mark, Progress, Rule, Table, Target, View
from kubetide.units.time import Duration, Instant, format_rfc3339, instant_of, seconds


def _read(found: ScaledObject) -> Table:
    meta, spec = found.metadata, found.spec
    reference = spec.scale_target_ref
    rules: list[Rule] = []
    refused: list[str] = []
    triggers = spec.triggers or ()
    others = sorted({one.type for one in triggers if one.type != "cron"})
    if others or not triggers:
        refused.append(f"triggers of type {', '.join(others) or 'none'}: only cron triggers are followed")
    for index, one in enumerate(triggers if not others else ()):
        _take(one, index, rules, refused)
    refused += [*replica_problems(spec), *trigger_problems(spec), *_refusals(found)]
    return Table(
        kind=SCALED_OBJECTS.kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        target=Target(
            reference.api_version or "apps/v1", reference.kind or "Deployment", meta.namespace, reference.name
        ),
        rules=() if refused else tuple(rules),
        created=created_at(meta.creation_timestamp),
        limits=_limits(found),
        refused=tuple(refused),
        notes=tuple(_notes(found)),
        last=instant_of(found.status.last_active_time),
    )


def _limits(found: ScaledObject) -> Limits:
    spec = found.spec
    return Limits(
        minimum=spec.min_replica_count or 0,
        maximum=100 if spec.max_replica_count is None else spec.max_replica_count,
        idle=spec.idle_replica_count,
        cooldown=seconds(300 if spec.cooldown_period is None else spec.cooldown_period),
        paused=has_pause_at(found) or is_annotated(found, PAUSED),
        paused_at=paused_size(found),
        created=created_at(found.metadata.creation_timestamp),
        initial_cooldown=seconds(spec.initial_cooldown_period or 0),
        only_up=is_annotated(found, PAUSED_DOWN),
        only_down=is_annotated(found, PAUSED_UP),
    )


def _refusals(found: ScaledObject) -> Iterator[str]:
    """Yield what would change the sizes in a way that is not followed here."""
    yield from pause_problems(found)
    if is_annotated(found, FORCED):
        yield f"annotation {FORCED}: is not read; leave it out"
    if (found.spec.advanced or {}).get("scalingModifiers"):
        yield "advanced.scalingModifiers: is not read; leave it out"


def _notes(found: ScaledObject) -> Iterator[str]:
    """Yield the fields that play no part where sizes are written without an HPA."""
    advanced = found.spec.advanced or {}
    for name, value in (
        ("advanced.horizontalPodAutoscalerConfig", advanced.get("horizontalPodAutoscalerConfig")),
        ("advanced.restoreToOriginalReplicaCount", advanced.get("restoreToOriginalReplicaCount")),
        ("fallback", found.spec.fallback),
    ):
        if value:
            yield f"{name}: is not read; the size of a window is written at once, without an HPA"


def _is_ours(found: ScaledObject) -> bool:
    """Return whether the object is not of the loop ``scaledobjects``."""
    return not needs_hpa(found)


def _take(one: KedaTrigger, index: int, rules: list[Rule], refused: list[str]) -> None:
    try:
        rules.append(read_trigger(one.metadata or {}, one.metric_type, index))
    except TriggerError as error:
        refused.append(f"triggers[{index}]: {error}")


def _change(table: Table, rule: Rule, view: View) -> Change:
    limits = table.limits
    if limits is not None and not limits.paused and rule.size is not None:
        held = (limits.only_up and rule.size < view.replicas) or (
            limits.only_down and rule.size > view.replicas
        )
        rule = replace(rule, size=view.replicas) if held else rule
    return to_size(table, rule, view, of_an_hpa="scaleTargetRef names an HPA; name its target")


def _report(
    table: Table, rule: Rule, run: Run, error: str, again: bool, now: Instant
) -> tuple[Mark | None, Sequence[Notice]]:
    del again, now
    change = run.change
    named = f"{table.target.api_version}.{table.target.kind} {table.namespace}/{table.target.name}"
    if error:
        reason = "KEDAScaleTargetDeactivationFailed" if rule.size == 0 else "KEDAScaleTargetActivationFailed"
        return None, [Notice(table.key, "Warning", reason, f"Failed to scale {named}: {error}")]
    if change.replicas is None or (change.current and change.replicas):
        return None, ()
    if change.replicas:
        said = f"Scaled {named} from {change.current} to {change.replicas}, triggered by cronScaler"
        return None, [Notice(table.key, "Normal", "KEDAScaleTargetActivated", said)]
    said = f"Deactivated {named} from {change.current} to 0"
    return None, [Notice(table.key, "Normal", "KEDAScaleTargetDeactivated", said)]


def _status(table: Table, progress: Progress) -> Json:
    limits = table.limits or Limits()
    ready = READY if progress.window_state else faulty("; ".join(progress.warned))
    active = {"open": ACTIVE, "rests": RESTS}.get(progress.window_state, INACTIVE)
    status: Json = {
        "externalMetricNames": [rule.name for rule in table.rules],
        "conditions": conditions(
            ready,
            INACTIVE if limits.paused else active,
            paused=limits.paused or limits.only_up or limits.only_down,
        ),
    }
    if progress.last is not None:
        status["lastActiveTime"] = format_rfc3339(progress.last)
    return status


MODE: Final = Mode(
    kind=SCALED_OBJECTS,
    forms=FORMS,
    read=_read,
    change=_change,
    report=_report,
    status=_status,
    pause=Duration(30_000_000_000),
    windows=True,
    ours=_is_ours,
)
