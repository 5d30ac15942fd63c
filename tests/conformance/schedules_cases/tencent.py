"""Tencent's documented cases: the runs in a span, and what a schedule may look like."""

from __future__ import annotations

from datetime import UTC

import msgspec
from tests.conformance.cases import Case, difference

from kubetide.schedules.decide import absorb, decide, next_due, targets_due
from kubetide.schedules.decision import Outcome
from kubetide.schedules.kinds.base import is_hpa
from kubetide.schedules.kinds.tencent import MODE
from kubetide.schedules.settings import Settings
from kubetide.schedules.state import State
from kubetide.schedules.tables import Delta, HpaView, Target, View
from kubetide.schedules.times.reading import read_calendar
from kubetide.units.cron import CronError
from kubetide.units.time import Instant, format_rfc3339, parse_rfc3339


def first_difference(case: Case) -> str | None:
    """The runs that the documents promise; what they leave open passes."""
    if "manifest" in case:
        return difference("expected_runs", case["expected_runs"], _runs(case))
    schedule = (case.get("input") or {}).get("schedule")
    if schedule is None or "allowed_by_table" not in case["expected"]:
        return None
    try:
        read_calendar(schedule, MODE.forms.grammar, UTC, Instant(0))
        allowed = True
    except CronError:
        allowed = False
    return difference("allowed_by_table", case["expected"]["allowed_by_table"], allowed)


def _runs(case: Case) -> list[object]:
    manifest = case["manifest"]
    begin, end = parse_rfc3339(case["from"]), parse_rfc3339(case["to"])
    created = {"creationTimestamp": format_rfc3339(Instant(begin - 1_000_000_000)), "uid": "1"}
    found = msgspec.convert({**manifest, "metadata": {**manifest["metadata"], **created}}, MODE.kind.model)
    state = State(Settings(schedules_zone=case["node_zone"]))
    state.apply(Delta(tables=(MODE.read(found),)))
    now, runs = begin, []
    while now < end:
        state.apply(Delta(views=tuple(_view(target) for target in targets_due(state, now))))
        commands = decide(state, now)
        for run in sorted(commands.runs, key=lambda run: run.rule.name):
            change = run.change
            write = (
                {"replicas": change.replicas}
                if change.replicas is not None
                else {"minReplicas": change.minimum, "maxReplicas": change.maximum}
            )
            runs.append({"at": format_rfc3339(run.due), "cron": run.rule.name, "write": write})
        absorb(state, commands, [Outcome() for _ in commands.runs], now)
        following = next_due(state)
        if following is None:
            break
        now = following
    return runs


def _view(target: Target) -> View:
    if is_hpa(target):
        workload = Target("apps/v1", "Deployment", target.namespace, "shop")
        return View(target, 1, hpa=HpaView(1, 10, 1, workload))
    return View(target, 1)
