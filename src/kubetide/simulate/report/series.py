"""The data of the report: columns at most a few thousand points long, and the decisions.

Steps are gathered into buckets of equal length. A bucket keeps the largest load, latency and number
of pending pods, so that no peak is lost, and the last value of everything that is a count or a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import msgspec

from kubetide.simulate.decisions import ARROWS, direction, why_lines
from kubetide.simulate.table import summary_cells
from kubetide.simulate.timeline import Mark, ServiceSeries, Summary, Timeline
from kubetide.units.time import Instant

MOST_POINTS = 5000
"""Points of one series."""

MOST_VALUES = 600_000
"""Points of all series together: a report of hundreds of services stays a file that opens."""

FEWEST_POINTS = 500

MOST_MARKS = 20_000
"""Decisions with their reasons; of more, the latest are left out and the report says so."""

Json = dict[str, Any]
Number = TypeVar("Number", int, float)


class Forecast(NamedTuple):
    """What was foretold of an HPA's load and what came, in pods at full use; None where nothing was."""

    name: str
    came: Sequence[float | None]
    foretold: Sequence[float | None]


Forecasts = Callable[[Sequence[float]], Sequence[Forecast]]
"""Returns the forecasts of a run at these times, in seconds since 1970."""


def no_forecasts(_times: Sequence[float]) -> Sequence[Forecast]:
    """Return none."""
    return ()


def report_data(name: str, timeline: Timeline, summary: Summary, forecasts: Forecasts = no_forecasts) -> Json:
    """Return everything the page shows, as plain JSON values."""
    steps = len(timeline.pending)
    size = bucket_size(steps, series=7 * len(timeline.services) + len(timeline.nodes) + 6)
    step_s = timeline.step_s
    times = times_of(timeline, steps, size)
    marks = timeline.marks[:MOST_MARKS]
    return {
        "name": name,
        "summary": msgspec.to_builtins(summary),
        "cells": msgspec.to_builtins(summary_cells(summary)),
        "stepSeconds": step_s,
        "bucketSteps": size,
        "steps": steps,
        "time": times,
        "forecasts": [one._asdict() for one in forecasts(times)],
        "services": [_service(series, step_s, size) for _, series in sorted(timeline.services.items())],
        "groups": [
            {"name": group, "nodes": lasts(counts, size)} for group, counts in sorted(timeline.nodes.items())
        ],
        "pending": peaks(timeline.pending, size),
        "cpu": {
            "requested": lasts(timeline.cpu_requested, size),
            "used": peaks(timeline.cpu_used, size),
            "allocatable": lasts(timeline.cpu_allocatable, size),
        },
        "cost": lasts(timeline.cost, size),
        "currency": timeline.currency,
        "arrows": {str(sign): arrow for sign, arrow in ARROWS.items()},
        "marks": [mark_data(mark) for mark in marks],
        "marksLeftOut": len(timeline.marks) - len(marks),
    }


def bucket_size(steps: int, *, series: int) -> int:
    """Return how many steps make one point."""
    points = max(FEWEST_POINTS, min(MOST_POINTS, MOST_VALUES // max(series, 1)))
    return max(1, -(-steps // points))


def peaks(values: Sequence[Number], size: int) -> list[Number]:
    """Return the largest value of each bucket; the last bucket may be short."""
    return _buckets(values, size, max)


def lasts(values: Sequence[Number], size: int) -> list[Number]:
    """Return the last value of each bucket; the last bucket may be short."""
    return _buckets(values, size, lambda bucket: bucket[-1])


def _buckets(values: Sequence[Number], size: int, pick: Callable[[Sequence[Number]], Number]) -> list[Number]:
    if size == 1:
        return list(values)
    return [pick(values[start : start + size]) for start in range(0, len(values), size)]


def times_of(timeline: Timeline, steps: int, size: int) -> list[float]:
    """Return when each bucket ends, in seconds since 1970; the columns of one step end one step apart."""
    first = epoch_seconds(timeline.start)
    ends = (min(start + size, steps) - 1 for start in range(0, steps, size))
    return [round(first + end * timeline.step_s, 3) for end in ends]


def lost_minutes(violated: Sequence[bool], step_s: float) -> list[int]:
    """Return the SLO minutes lost up to each step; the last is the summary's number."""
    minutes = [int(index * step_s // 60) if bad else -1 for index, bad in enumerate(violated)]
    latest = accumulate(minutes, max, initial=-1)
    return list(accumulate(int(minute > before) for minute, before in zip(minutes, latest, strict=False)))


def _service(series: ServiceSeries, step_s: float, size: int) -> Json:
    return {
        "name": series.name,
        "offered": peaks(series.offered, size),
        "capacity": lasts(series.capacity, size),
        "wanted": lasts(series.wanted, size),
        "existing": lasts(series.existing, size),
        "ready": lasts(series.ready, size),
        "violated": peaks([int(bad) for bad in series.violated], size),
        "lost": lasts(lost_minutes(series.violated, step_s), size),
        "lostOwnStep": lasts(lost_minutes(series.violated_own_step, step_s), size),
    }


def mark_data(mark: Mark) -> Json:
    """Return a decision as the page takes it."""
    return {
        "at": epoch_seconds(mark.at),
        "loop": mark.loop,
        "subject": mark.subject,
        "title": mark.title,
        "why": list(why_lines(mark)),
        "sign": direction(mark),
    }


def epoch_seconds(at: Instant) -> float:
    """Return a time as pages count it: seconds since 1970, exact to the millisecond."""
    return at // 1_000_000 / 1000
