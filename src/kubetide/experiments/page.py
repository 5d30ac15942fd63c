"""The page of a comparison: both runs under one cursor, their figures, and where they part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from kubetide.experiments.divergence import Divergence, Side
from kubetide.experiments.figures import comparison_table, figures
from kubetide.simulate.decisions import ARROWS
from kubetide.simulate.report import (
    MOST_MARKS,
    Json,
    bucket_size,
    epoch_seconds,
    lasts,
    lost_minutes,
    mark_data,
    peaks,
    render_page,
    times_of,
)
from kubetide.simulate.run import RunResult
from kubetide.simulate.table import summary_cells
from kubetide.simulate.timeline import ServiceSeries, Timeline

SIDES = ("as it is", "with changes")


def write_comparison(
    path: Path, before: RunResult, after: RunResult, divergence: Divergence | None, changes: Sequence[str]
) -> None:
    """Write the page of two runs to one HTML file. Raises OSError."""
    data = comparison_data(before, after, divergence, changes)
    path.write_text(render_page(f"what if · {data['name']}", data, page="what-if"), encoding="utf-8")


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
            {**mark_data(mark), "loop": f"{side}: {mark.loop}"}
            for side, timeline in zip(SIDES, (a, b), strict=True)
            for mark in timeline.marks
        ),
        key=lambda mark: mark["at"],
    )
    return {
        "name": cells.name,
        "period": cells.period,
        "sides": SIDES,
        "changes": list(changes),
        "figures": msgspec.to_builtins(comparison_table(figures(before.summary, after.summary))),
        "stepSeconds": a.step_s,
        "time": times_of(longer, steps, size),
        "pairs": list(_pairs(a, b, size)),
        "parting": None if divergence is None else _parting(divergence),
        "arrows": {str(sign): arrow for sign, arrow in ARROWS.items()},
        "marks": marks[:MOST_MARKS],
        "marksLeftOut": max(0, len(marks) - MOST_MARKS),
        "notes": [f"{len(marks) - MOST_MARKS} later decisions are not in this page."]
        if len(marks) > MOST_MARKS
        else [],
    }


def _parting(divergence: Divergence) -> Json:
    return {
        "at": epoch_seconds(divergence.at),
        "before": _side(divergence.before),
        "after": _side(divergence.after),
    }


def _side(side: Side) -> Json:
    return {"decided": [mark_data(mark) for mark in side.decided], "instead": list(side.instead)}


def _pairs(a: Timeline, b: Timeline, size: int) -> Iterator[Json]:
    def pair(
        heading: str, title: str, unit: str, ours: Sequence[Any], theirs: Sequence[Any], **more: Any
    ) -> Json:
        return {
            "heading": heading,
            "title": title,
            "unit": unit,
            "before": ours,
            "after": theirs,
            "whole": False,
            "loops": ["nodes"],
            "subject": "",
            **more,
        }

    yield pair("Cluster", "Cost", f"{a.currency} since the start", lasts(a.cost, size), lasts(b.cost, size))
    yield pair("Cluster", "Nodes", "ready", lasts(_nodes(a), size), lasts(_nodes(b), size), whole=True)
    yield pair(
        "Cluster",
        "Pending pods",
        "without a node",
        peaks(a.pending, size),
        peaks(b.pending, size),
        whole=True,
    )
    yield pair(
        "Cluster",
        "SLO minutes lost",
        "since the start",
        lasts(_lost(a), size),
        lasts(_lost(b), size),
        whole=True,
        loops=[],
    )
    for name in dict.fromkeys((*a.services, *b.services)):
        ours, theirs = (timeline.services.get(name, ServiceSeries(name)) for timeline in (a, b))
        pods = {"loops": ["horizontal", "schedules", "updater"], "subject": name, "whole": True}
        yield pair(
            "Services", name, "replicas", lasts(ours.existing, size), lasts(theirs.existing, size), **pods
        )
        yield pair(
            "Services",
            name,
            "requests/s of capacity",
            lasts(ours.capacity, size),
            lasts(theirs.capacity, size),
            **pods,
        )


def _nodes(timeline: Timeline) -> list[int]:
    return [sum(counts) for counts in zip_longest(*timeline.nodes.values(), fillvalue=0)]


def _lost(timeline: Timeline) -> list[int]:
    found = [lost_minutes(series.violated, timeline.step_s) for series in timeline.services.values()]
    return [sum(minutes) for minutes in zip(*found, strict=True)] if found else [0] * len(timeline.pending)
