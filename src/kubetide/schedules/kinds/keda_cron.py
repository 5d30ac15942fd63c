"""KEDA's cron trigger: the window that it names, and the metric that its HPA would have.

Source: KEDA 2.21, scalers/cron: metadata, texts of errors, names and targets of metrics. Done right: KEDA looks only
at the next start and the next end, which makes a window hold for days where starts and ends do not alternate; here the
last of the two holds, on wall-clock times resolved by local day (``schedules.times.windows``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kubetide.objects.hpa import ExternalMetricSource, MetricIdentifier, MetricSpec, MetricTarget
from kubetide.schedules.tables import Rule
from kubetide.schedules.times.plans import Entry, Forms, entry_of
from kubetide.schedules.times.reading import FIVE_WITH_ZONE
from kubetide.schedules.times.windows import refusal
from kubetide.units.cron import CronError, parse_cron
from kubetide.units.time import Instant

FORMS: Final = Forms(FIVE_WITH_ZONE)
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
    parts = (zone, _schedule_part(start), _schedule_part(end))
    return f"s{index}-" + "-".join(("cron", *parts)).replace("/", "-").replace(".", "-").replace(
        ":", "-"
    ).replace("%", "-")


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


class Window(NamedTuple):
    """A trigger's window, and why it is impossible; no problems where it is possible."""

    entry: Entry
    problems: tuple[str, ...]


@lru_cache(maxsize=1 << 14)
def window_of(rule: Rule, created: Instant, zone: str = "UTC") -> Window:
    """Return the window of a trigger.

    Args:
        created: When its object was created; a window that never begins from then on is impossible.
        zone: IANA name of what ``Local`` stands for.
    """
    problems: list[str] = []
    entry = entry_of(rule, created, FORMS, zone, problems)
    problems += filter(None, [refusal(entry, created)])
    return Window(entry, tuple(problems))
