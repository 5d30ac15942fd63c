"""Evaluates an expectation on a run: whether it held, and if not when, by how much, and the decisions at that time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from zoneinfo import ZoneInfo

import msgspec

from kubetide.experiments.figures import unserved_share
from kubetide.experiments.policies.expectations import (
    OPERATORS,
    During,
    Expectation,
    NodesLive,
    Total,
    Window,
)
from kubetide.simulate.outcome.decisions import decision_line
from kubetide.simulate.outcome.series import lost_minutes
from kubetide.simulate.outcome.summary import Summary
from kubetide.simulate.outcome.timeline import Mark, ServiceSeries, Timeline
from kubetide.units.time import Instant, after, between, format_duration, format_rfc3339, seconds, to_seconds


class Finding(msgspec.Struct, frozen=True):
    """The result of one expectation.

    Attributes:
        held: Whether it held.
        text: The value that was found; where it did not hold, what was broken and by how much.
        at: When it was first broken, where that can be said.
        decision: The last decision about it before that, with its reason.
    """

    held: bool
    text: str
    at: Instant | None = None
    decision: str = ""


def evaluate(
    expectation: Expectation, timeline: Timeline, summary: Summary, baseline: Summary | None
) -> Finding:
    """Return whether the expectation held in a run.

    Args:
        baseline: The summary of the run without the policy's changes; needed where the expectation names it.
    """
    rule = expectation.rule
    if isinstance(rule, NodesLive):
        return _nodes_live(rule, timeline)
    if isinstance(rule, Total):
        return _total(rule, timeline, summary, baseline)
    return _during(rule, timeline)


def _total(rule: Total, timeline: Timeline, summary: Summary, baseline: Summary | None) -> Finding:
    value = total_of(summary, rule.quantity, rule.subject)
    bound, shown = rule.bound, _number(rule.bound)
    if rule.of_baseline:
        assert baseline is not None, "run where an expectation names it"
        before = total_of(baseline, rule.quantity, rule.subject)
        bound = rule.bound * before
        shown = f"{_number(bound)} (baseline {_number(before)})"
    if OPERATORS[rule.compare](value, bound):
        return Finding(True, _number(value))
    at = _passed(rule, bound, timeline)
    return Finding(
        False,
        f"{rule.quantity}{f'({rule.subject})' if rule.subject else ''} is {_number(value)}, "
        f"which is not {rule.compare} {shown}{_off(value, bound)}",
        at,
        _decision_before(timeline, at, rule.subject),
    )


def _off(value: float, bound: float) -> str:
    return (
        f": {_number(abs(value - bound))} too {'much' if value > bound else 'little'}"
        if value != bound
        else ""
    )


def total_of(summary: Summary, quantity: str, subject: str) -> float:
    """Return a figure of a whole run, or of one service or node group."""
    if quantity in _SERVICE_FIELDS:
        services = [one for one in summary.services if subject in ("", one.name)]
        if quantity == "unserved":
            return unserved_share(services)
        return float(sum(getattr(one, _SERVICE_FIELDS[quantity]) for one in services))
    if quantity == "nodeHours":
        return sum(one.node_hours for one in summary.groups if subject in ("", one.name))
    return float(getattr(summary, _FIELDS[quantity]))


_SERVICE_FIELDS = {
    "sloMinutes": "slo_minutes_lost",
    "unserved": "unserved_share",
    "slack": "slack",
    "rescales": "rescales",
    "podMinutes": "pod_minutes",
}
_FIELDS = {
    "cost": "cost",
    "pendingPodMinutes": "pending_pod_minutes",
    "waitMedian": "wait_p50_s",
    "waitP95": "wait_p95_s",
    "waitLongest": "wait_max_s",
    "podStarts": "pod_starts",
    "evictions": "evictions",
    "preemptions": "preemptions",
    "taintEvictions": "taint_evictions",
    "nodesBought": "nodes_added",
    "nodesRemoved": "nodes_removed",
    "nodesShortLived": "nodes_short_lived",
    "nodesBoughtBack": "nodes_bought_back",
    "decisions": "decisions",
}


def _passed(rule: Total, bound: float, timeline: Timeline) -> Instant | None:
    """Return when a figure that only grows passed its bound; None of others."""
    if rule.compare not in ("<", "<="):
        return None
    growing = _growing(rule.quantity, rule.subject, timeline)
    fits = OPERATORS[rule.compare]
    return next((_at(timeline, step) for step, value in enumerate(growing) if not fits(value, bound)), None)


def _growing(quantity: str, subject: str, timeline: Timeline) -> Iterable[float]:
    services = [one for one in timeline.services.values() if subject in ("", one.name)]
    step_s = timeline.step_s
    if quantity == "cost":
        return timeline.cost
    if quantity == "sloMinutes":
        return [
            sum(lost) for lost in zip(*(lost_minutes(one.violated, step_s) for one in services), strict=True)
        ]
    if quantity == "podMinutes":
        counts = [sum(step) for step in zip(*(one.existing for one in services), strict=True)]
        return accumulate(count * step_s / 60 for count in counts)
    if quantity == "pendingPodMinutes":
        return accumulate(count * step_s / 60 for count in timeline.pending)
    if quantity == "nodeHours":
        groups = [counts for name, counts in timeline.nodes.items() if subject in ("", name)]
        return accumulate(sum(step) * step_s / 3600 for step in zip(*groups, strict=True))
    return ()


def _during(rule: During, timeline: Timeline) -> Finding:
    values = list(_series(rule, timeline))
    holds = OPERATORS[rule.compare]
    inside = _inside(rule.window, timeline, len(values))
    # `always` is broken by a step in which the condition does not hold, `never` by a stretch in which it does.
    bad = [
        within and holds(value, rule.bound) != rule.always
        for value, within in zip(values, inside, strict=True)
    ]
    name = f"{rule.series}{f'({rule.subject})' if rule.subject else ''}"
    needed = max(1, -(-rule.lasting // seconds(timeline.step_s)))
    longest = max((end - start for start, end in _stretches(inside)), default=0)
    if longest < needed:
        return Finding(False, _why_untested(rule, timeline, longest))
    broken = [stretch for stretch in _stretches(bad) if stretch[1] - stretch[0] >= needed]
    if not broken:
        seen = [value for value, within in zip(values, inside, strict=True) if within]
        return Finding(True, f"{name} {_number(min(seen))} to {_number(max(seen))}")
    start, end = broken[0]
    too_much = (rule.compare in (">", ">=")) != rule.always
    worst = (max if too_much else min)(values[start:end])
    length = format_duration(seconds((end - start) * timeline.step_s))
    more = f"; {len(broken)} such stretches in all" if len(broken) > 1 else ""
    at = _at(timeline, start)
    return Finding(
        False,
        f"{name} was {_number(worst)} from {_clock(at)} for {length}, "
        f"{'not ' if rule.always else ''}{rule.compare} {_number(rule.bound)}{more}",
        at,
        _decision_before(timeline, at, rule.subject),
    )


def _why_untested(rule: During, timeline: Timeline, longest: int) -> str:
    """Return why the run cannot break the rule: what cannot fail was not tested."""
    run = f"{_clock(timeline.start)} to {_clock(_at(timeline, len(timeline.pending) - 1))} UTC"
    if not longest:
        return f"no step of the run, {run}, is in the window: move the window or the run"
    there = format_duration(seconds(longest * timeline.step_s))
    return (
        f"the run, {run}, has at most {there} at a stretch to look at, so {format_duration(rule.lasting)} cannot "
        "be seen: shorten the time or lengthen the run"
    )


def _series(rule: During, timeline: Timeline) -> Iterator[float]:
    if rule.series == "pending":
        yield from timeline.pending
    elif rule.series == "nodes":
        counts = [steps for group, steps in timeline.nodes.items() if rule.subject in ("", group)]
        yield from map(sum, zip(*counts, strict=True))
    else:
        yield from _of_service[rule.series](timeline.services[rule.subject])


_of_service: dict[str, Callable[[ServiceSeries], Sequence[float]]] = {
    "replicas": lambda series: series.existing,
    "ready": lambda series: series.ready,
    "desired": lambda series: series.desired,
    "latency": lambda series: series.latency,
    "queue": lambda series: series.queue,
    "offered": lambda series: series.offered,
    "capacity": lambda series: series.capacity,
}


def _stretches(bad: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield where each run of true values begins, and the first step behind it."""
    start: int | None = None
    for step, one in enumerate((*bad, False)):
        if one and start is None:
            start = step
        elif not one and start is not None:
            yield start, step
            start = None


def _inside(window: Window | None, timeline: Timeline, steps: int) -> list[bool]:
    """Return which steps end in the window, by the wall clock of its zone."""
    if window is None:
        return [True] * steps
    zone = ZoneInfo(window.zone)
    start, end = to_seconds(window.start), to_seconds(window.end)
    first = datetime.fromtimestamp(timeline.start / 1e9, tz=UTC)
    found = []
    for step in range(steps):
        local = (first + timedelta(seconds=step * timeline.step_s)).astimezone(zone)
        of_day = local.hour * 3600 + local.minute * 60 + local.second
        found.append(start <= of_day < end if start < end else (of_day >= start or of_day < end))
    return found


def _nodes_live(rule: NodesLive, timeline: Timeline) -> Finding:
    short = [
        life
        for life in timeline.node_lives
        if life.deleted is not None and between(life.created, life.deleted) < rule.least
    ]
    if not short:
        return Finding(True, f"{len(timeline.node_lives)} nodes")
    first = min(short, key=lambda life: life.deleted or life.created)
    assert first.deleted is not None
    lived = format_duration(seconds(round(to_seconds(between(first.created, first.deleted)))))
    more = f"; {len(short)} such nodes in all" if len(short) > 1 else ""
    return Finding(
        False,
        f"node {first.name} of group {first.group} was deleted {lived} after its creation{more}",
        first.deleted,
        _decision_before(timeline, first.deleted, first.name),
    )


def _decision_before(timeline: Timeline, at: Instant | None, subject: str) -> str:
    """Return the last decision until then about the subject, or else the last of the node loop."""
    if at is None:
        return ""
    until = [mark for mark in timeline.marks if mark.at <= at]
    about = [mark for mark in until if subject and _is_about(mark, subject)]
    nodes = [mark for mark in until if mark.loop == "nodes"]
    found = about or ([] if subject else nodes)
    return decision_line(found[-1]) if found else ""


def _is_about(mark: Mark, subject: str) -> bool:
    return mark.subject == subject or mark.subject.endswith(f"/{subject}") or subject in mark.title.split()


def _at(timeline: Timeline, step: int) -> Instant:
    return after(timeline.start, seconds(step * timeline.step_s))


def _clock(at: Instant) -> str:
    return format_rfc3339(at)[:19].replace("T", " ")


def _number(value: float) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".") if value % 1 else f"{value:,.0f}"
