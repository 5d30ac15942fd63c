"""KEDA's cases: what a trigger is refused for, its metric, and whether its window is open."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from tests.conformance.cases import Case, difference
from tests.conformance.schedules_cases.intended import resolved, wall_clocks

from kubetide.schedules.kinds.keda import MODE
from kubetide.schedules.kinds.keda_cron import TriggerError, metric_spec, read_trigger
from kubetide.schedules.tables import Rule, Table, Target
from kubetide.schedules.times.plans import plan_of
from kubetide.schedules.times.windows import opening, refused_windows
from kubetide.units.cron import Grammar, Spec, parse_cron
from kubetide.units.quantity import milli
from kubetide.units.time import Instant, parse_rfc3339

_NS = 1_000_000_000


_SIXTEEN_DAYS = 16 * 86_400
"""So long before or after a change of the clocks KEDA's answer about a weekly window may be wrong."""


def first_difference(case: Case) -> str | None:
    """Refusals, metrics and windows as recorded; where KEDA looks only forward, the last start or end holds."""
    given = case["input"]
    rule, refused = None, ""
    try:
        rule = read_trigger(given["metadata"], given["metricType"], given["triggerIndex"])
    except TriggerError as error:
        refused = str(error)
    if rule is None:
        # A number below 0 is refused on purpose: KEDA would set the size to 0 while the window is open.
        negative = str(given["metadata"].get("desiredReplicas", "")).strip().startswith("-")
        return None if "create_error" in case or negative else f"refused: {refused}"
    if "create_error" in case:
        return f"not refused: {case['create_error']}"
    ours = _bare(json.loads(msgspec.json.encode(metric_spec(rule, given["metricType"]))))
    return difference("metric_spec", case["metric_spec"], ours) or _windows(case, rule)


def _bare(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _bare(value) for key, value in found.items() if value is not None}
    return found


def _windows(case: Case, rule: Rule) -> str | None:
    probes = case["probes"]
    target = Target("apps/v1", "Deployment", "web", "shop")
    table = Table("ScaledObject", "web", "shop", "1", target, (rule,), Instant(0))
    plan = refused_windows(plan_of(table, MODE.forms, case["process_zone"]), parse_rfc3339(probes[0]["at"]))
    if plan.warnings:
        right = all("error" in one for one in probes) or _cannot_be(rule, probes)
        return None if right else f"refused: {plan.warnings}"
    zone = ZoneInfo(case["process_zone"] if rule.zone == "Local" else rule.zone)
    start, end = _Firings(rule.schedule, zone), _Firings(rule.end, zone)
    for probe in probes:
        if "error" in probe:
            return f"{probe['at']}: not refused: {probe['error']}"
        at = parse_rfc3339(probe["at"])
        found = opening(plan.entries[0], at).active
        began, ended = start.last(at // _NS), end.last(at // _NS)
        intended = began is not None and (ended is None or began > ended)
        expected = (
            intended if probe["last_event_differs"] or _near_change(zone, at // _NS) else probe["active"]
        )
        value = (rule.size or 0) if found else 0
        said = float(milli(probe["value"])) / 1000 if found == probe["active"] else float(value)
        wrong = difference(f"active at {probe['at']}", expected, found) or difference(
            "value", said, float(value)
        )
        wrong = wrong or difference("metric_name", probe["metric_name"], rule.name)
        if wrong:
            return wrong
    return None


def _cannot_be(rule: Rule, probes: list[Any]) -> bool:
    """Whether the window never begins, never ends, or begins whenever it ends."""
    never = any(not one["next_start"] or not one["next_end"] for one in probes)
    return never or all(one["next_start"] == one["next_end"] for one in probes)


def _near_change(zone: ZoneInfo, at: int) -> bool:
    """Whether the clocks change around an instant."""
    span = range(at - _SIXTEEN_DAYS, at + _SIXTEEN_DAYS, 43_200)
    return len({datetime.fromtimestamp(one, zone).utcoffset() for one in span}) > 1


class _Firings:
    """The activations of a schedule, listed by local day."""

    def __init__(self, text: str, zone: ZoneInfo) -> None:
        spec = parse_cron(text, Grammar(descriptors=False))
        assert isinstance(spec, Spec)
        self._spec, self._zone = spec, zone
        if spec.zone is not None:
            self._zone = ZoneInfo(str(spec.zone))
        self._days: dict[date, list[int]] = {}

    def last(self, at: int) -> int | None:
        day = datetime.fromtimestamp(at, self._zone).date() + timedelta(days=1)
        for _ in range(9 * 366):
            found = [one for one in self._on(day) if one <= at]
            if found:
                return max(found)
            day -= timedelta(days=1)
        return None

    def _on(self, day: date) -> list[int]:
        if day not in self._days:
            clocks = wall_clocks(self._spec, day) if self._spec.on(day) else []
            self._days[day] = [resolved(local, self._zone) for local in clocks]
        return self._days[day]
