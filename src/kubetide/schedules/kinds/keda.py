"""KEDA's cron triggers, in a ScaledObject without other triggers.

Source: KEDA 8b4f083c (docs 2.21), scalers/cron: metadata, texts of errors, names and targets of metrics. Done
right: KEDA looks only at the next start and the next end, which makes a window hold for days where starts and
ends do not alternate; here the last of the two holds, on wall-clock times resolved by local day.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from kubetide.objects.base import Json
from kubetide.objects.hpa import ExternalMetricSource, MetricIdentifier, MetricSpec, MetricTarget
from kubetide.objects.kinds import SCALED_OBJECTS
from kubetide.objects.scaled_objects import (
    ACTIVE,
    FORCED,
    INACTIVE,
    PAUSED,
    PAUSED_AT,
    PAUSED_DOWN,
    PAUSED_UP,
    READY,
    RESTS,
    conditions,
    faulty,
    is_annotated,
    replica_problems,
    trigger_problems,
)
from kubetide.objects.timetables import KedaTrigger, ScaledObject
from kubetide.schedules.decision import Change, Notice, Run
from kubetide.schedules.kinds.base import Mode, created_at, instant_of, to_size
from kubetide.schedules.tables import Limits, Mark, Progress, Rule, Table, Target, View
from kubetide.schedules.times.plans import Forms
from kubetide.schedules.times.reading import FIVE_WITH_ZONE
from kubetide.units.cron import CronError, parse_cron
from kubetide.units.time import Duration, Instant, format_rfc3339, seconds

_PARAMETERS = ("start", "end", "timezone", "desiredReplicas")
_INTEGER = re.compile(r"[ \t\r\n]*-?(0|[1-9][0-9]*)[ \t\r\n]*", re.ASCII)
_TARGET_TYPES = ("", "AverageValue")


class TriggerError(ValueError):
    """A rejected trigger; one line per reason, in KEDA's words."""


def read_trigger(metadata: Mapping[str, Any], metric_type: str, index: int) -> Rule:
    """Return a cron trigger as a rule with an end; its name is the metric's. Raises TriggerError."""
    said = {name: str(metadata.get(name) or "").strip() for name in _PARAMETERS}
    problems = [
        f'missing required parameter "{name}" in [triggerMetadata]' for name in _PARAMETERS if not said[name]
    ]
    size = 0
    if said["desiredReplicas"]:
        try:
            size = _integer(said["desiredReplicas"])
        except ValueError as error:
            text = said["desiredReplicas"]
            problems.append(f'unable to set param "desiredReplicas" value {json.dumps(text)}: {error}')
    problems += _schedule_problems(said["start"], said["end"], size)
    if problems:
        raise TriggerError("error parsing cron metadata: " + "\n".join(problems))
    if metric_type == "Utilization":
        raise TriggerError(
            "error getting scaler metric type: 'Utilization' metric type is unsupported for external metrics, "
            "allowed values are 'Value' or 'AverageValue'"
        )
    name = metric_name(index, said["timezone"], said["start"], said["end"])
    return Rule(name, said["start"], end=said["end"], size=size, zone=said["timezone"])


def _schedule_problems(start: str, end: str, size: int) -> list[str]:
    """Return what KEDA says of the schedules: the first error of the grammar, then what does not go together."""
    for side, text in (("start", start), ("end", end)):
        try:
            parse_cron(text, FIVE_WITH_ZONE)
        except CronError as error:
            if text or side == "end" or not end:
                return [f"error parsing {side} schedule: {error}"]
            return []
    if start == end:
        return ["start and end can not have exactly same time input"]
    if size == 0:
        return ["no desiredReplicas specified"]
    if size < 0:
        return [f"desiredReplicas {size} must not be negative"]
    return []


def _integer(text: str) -> int:
    """Raise ValueError."""
    if not _INTEGER.fullmatch(text):
        raise ValueError("unable to unmarshal to field type int64: it must be a whole number without a sign")
    found = int(text)
    if not -(1 << 63) <= found < 1 << 63:
        raise ValueError("unable to unmarshal to field type int64: out of range")
    return found


def metric_name(index: int, zone: str, start: str, end: str) -> str:
    """Return the name of a trigger's external metric, as KEDA builds it."""
    parts = (_plain(zone), _schedule_part(start), _schedule_part(end))
    return f"s{index}-" + "-".join(("cron", *parts)).replace("/", "-").replace(".", "-").replace(
        ":", "-"
    ).replace("%", "-")


def _plain(text: str) -> str:
    return text


def _schedule_part(text: str) -> str:
    for old, new in (("*", "x"), ("/", "Sl"), (",", "Cm"), ("?", "Qm")):
        text = text.replace(old, new)
    return "".join(text.split())


def metric_spec(rule: Rule, metric_type: str) -> MetricSpec:
    """Return the metric that KEDA's HPA would have for a trigger: a target of 1 per pod."""
    target = (
        MetricTarget(type="AverageValue", average_value="1")
        if metric_type in _TARGET_TYPES
        else MetricTarget(type=metric_type, value="1")
    )
    return MetricSpec(
        type="External", external=ExternalMetricSource(metric=MetricIdentifier(name=rule.name), target=target)
    )


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
    paused_at = (found.metadata.annotations or {}).get(PAUSED_AT)
    size = int(paused_at) if paused_at is not None and paused_at.isdecimal() else None
    return Limits(
        minimum=spec.min_replica_count or 0,
        maximum=100 if spec.max_replica_count is None else spec.max_replica_count,
        idle=spec.idle_replica_count,
        cooldown=seconds(300 if spec.cooldown_period is None else spec.cooldown_period),
        paused=paused_at is not None or is_annotated(found, PAUSED),
        paused_at=size,
        created=created_at(found.metadata.creation_timestamp),
        initial_cooldown=seconds(spec.initial_cooldown_period or 0),
        only_up=is_annotated(found, PAUSED_DOWN),
        only_down=is_annotated(found, PAUSED_UP),
    )


def _refusals(found: ScaledObject) -> Iterator[str]:
    """Yield what would change the sizes in a way that is not followed here."""
    paused_at = (found.metadata.annotations or {}).get(PAUSED_AT)
    if paused_at is not None and not paused_at.isdecimal():
        yield f"annotation {PAUSED_AT} {paused_at!r}: write a number of replicas"
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
    """Return whether the object has no trigger of a type that the loop ``scaledobjects`` follows or refuses."""
    return all(one.type not in {"external", "prometheus"} for one in found.spec.triggers or ())


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
    forms=Forms(FIVE_WITH_ZONE),
    read=_read,
    change=_change,
    report=_report,
    status=_status,
    pause=Duration(30_000_000_000),
    windows=True,
    ours=_is_ours,
)
