"""The page of a comparison: both runs under one cursor, their figures, and where they part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from kubetide.experiments.divergence import Divergence, Side
from kubetide.experiments.figures import comparison_table, figures
from kubetide.simulate.outcome.series import bucket_size, epoch_seconds, lasts, lost_minutes, peaks, times_of
from kubetide.simulate.outcome.table import summary_cells
from kubetide.simulate.outcome.timeline import ServiceSeries, Timeline
from kubetide.simulate.run import RunResult
from kubetide.units.time import Instant, format_rfc3339
from kubetide.web.front import Json, as_file
from kubetide.web.history import Decisions, Span, histogram, marked
from kubetide.web.report import MOST_DECISIONS

SIDES = ("as it is", "with changes")


def write_comparison(
    path: Path, before: RunResult, after: RunResult, divergence: Divergence | None, changes: Sequence[str]
) -> None:
    """Write the page of two runs to one HTML file. Raises OSError."""
    data = comparison_data(before, after, divergence, changes)
    path.write_text(as_file(f"what if · {data['name']}", data, page="what-if"), encoding="utf-8")


def comparison_data(
    before: RunResult, after: RunResult, divergence: Divergence | None, changes: Sequence[str]
) -> Json:
    """Return everything the page shows, as plain JSON values."""
    a, b = before.timeline, after.timeline
    longer = max(a, b, key=lambda one: len(one.pending))
    steps = len(longer.pending)
    size = bucket_size(steps, series=6 * len(a.services) + 10)
    cells = summary_cells(before.summary)
    marks = sorted(
        (
            msgspec.structs.replace(mark, loop=f"{side}: {mark.loop}")
            for side, timeline in zip(SIDES, (a, b), strict=True)
            for mark in timeline.marks
        ),
        key=lambda mark: mark.at,
    )
    times = times_of(longer, steps, size)
    first, last = before.summary.start, Instant(round(times[-1] * 1e9)) if times else before.summary.start
    return {
        "name": cells.name,
        "period": cells.period,
        "sides": SIDES,
        "changes": list(changes),
        "figures": comparison_table(figures(before.summary, after.summary)),
        "parting": None if divergence is None else _parting(divergence),
        "span": Span(
            start=format_rfc3339(first),
            end=format_rfc3339(last),
            running=False,
            run=1,
            decisions=histogram(sorted({mark.loop for mark in marks}), marks, first, last),
            kinds={},
        ),
        "objects": {},
        "decisions": Decisions(
            found=len(marks), decisions=tuple(map(marked, marks[: -MOST_DECISIONS - 1 : -1]))
        ),
        "leftOut": max(0, len(marks) - MOST_DECISIONS),
        "history": {
            "since": format_rfc3339(first),
            "until": format_rfc3339(last),
            "times": [epoch_seconds(first), *times][:-1],
            "pairs": list(_pairs(a, b, size)),
        },
    }


def _parting(divergence: Divergence) -> Json:
    return {
        "at": format_rfc3339(divergence.at),
        "before": _side(divergence.before),
        "after": _side(divergence.after),
    }


def _side(side: Side) -> Json:
    return {"decided": [marked(mark) for mark in side.decided], "instead": list(side.instead)}


def _pairs(a: Timeline, b: Timeline, size: int) -> Iterator[Json]:
    def pair(heading: str, title: str, ours: Sequence[Any], theirs: Sequence[Any], **more: Any) -> Json:
        return {
            "heading": heading,
            "title": title,
            "before": ours,
            "after": theirs,
            "loops": ["nodes"],
            "subject": "",
            **more,
        }

    yield pair("Cluster", f"Cost: {a.currency} since the start", lasts(a.cost, size), lasts(b.cost, size))
    yield pair("Cluster", "Nodes ready", lasts(_nodes(a), size), lasts(_nodes(b), size))
    yield pair(
        "Cluster",
        "Pods waiting for a node",
        peaks(a.pending, size),
        peaks(b.pending, size),
    )
    if a.services or b.services:
        yield pair(
            "Cluster",
            "SLO minutes lost since the start",
            lasts(_lost(a), size),
            lasts(_lost(b), size),
            loops=[],
        )
    for name in dict.fromkeys((*a.services, *b.services)):
        ours, theirs = (timeline.services.get(name, ServiceSeries(name)) for timeline in (a, b))
        pods = {"loops": ["horizontal", "schedules", "updater"], "subject": name}
        yield pair(
            "Services", f"{name}: replicas", lasts(ours.existing, size), lasts(theirs.existing, size), **pods
        )
        yield pair(
            "Services",
            f"{name}: requests/s of capacity",
            lasts(ours.capacity, size),
            lasts(theirs.capacity, size),
            **pods,
        )


def _nodes(timeline: Timeline) -> list[int]:
    return [sum(counts) for counts in zip_longest(*timeline.nodes.values(), fillvalue=0)]


def _lost(timeline: Timeline) -> list[int]:
    found = [lost_minutes(series.violated, timeline.step_s) for series in timeline.services.values()]
    return [sum(minutes) for minutes in zip(*found, strict=True)] if found else [0] * len(timeline.pending)
