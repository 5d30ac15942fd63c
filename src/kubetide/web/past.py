"""Past figures for the dashboard's charts, thinned to what a chart can show."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from kubetide.objects.base import json_name
from kubetide.runtime.figures.blocks import SeriesKey
from kubetide.runtime.figures.reading import Column, FigureHistory
from kubetide.runtime.figures.thinning import thinned
from kubetide.units.time import Instant, format_rfc3339

MOST_LINES: Final = 64
"""In one answer."""

MOST_POINTS: Final = 5_000
"""Of one line."""

FEWEST_POINTS: Final = 100
"""Of one line, where all are asked for."""

METRICS: Final = "metric"
"""The kind of figure that is named by its HPA and the metric."""


class Line(msgspec.Struct, frozen=True, kw_only=True, rename=json_name):
    """One figure of one object: each value holds from its time to the next.

    Attributes:
        kind: ``cluster``, ``nodegroup``, ``hpa``, ``metric`` of an HPA, or its ``forecast``; of a simulation also ``run``
            and ``service``, of a process on a cluster ``loop`` and ``process``.
        name: Of the object; of a metric ``NAMESPACE/HPA/METRIC``; empty for the cluster and the run.
        figure: Such as ``ready`` or ``cost``.
        times: Seconds since 1970, UTC.
        values: None where the value is not known.
    """

    kind: str
    name: str
    figure: str
    times: tuple[float, ...]
    values: tuple[float | None, ...]


class Past(msgspec.Struct, frozen=True, kw_only=True, rename=json_name):
    """Figures of the time between ``since`` and ``until`` (RFC 3339).

    Attributes:
        kept: Whether the records hold figures; those of older versions do not.
        found: How many lines fit; ``lines`` has those with the greatest values, by kind, name and figure.
    """

    since: str
    until: str
    kept: bool
    found: int
    lines: tuple[Line, ...]


class Figures:
    """The figures of a records folder, also of a running run."""

    def __init__(self, folder: Path) -> None:
        self._history = FigureHistory(folder)

    def past(self, *, kind: str, name: str, figure: str, since: Instant, until: Instant, points: int) -> Past:
        """Return the matching figures; empty words match all. Raises RecordError if there are no records."""
        self._history.follow()
        found = [key for key in self._history.series() if _fits(key, kind, name, figure)]
        return self._past(found, since, until, points, MOST_LINES)

    def whole(self, since: Instant, until: Instant, values: int) -> Past:
        """Return all figures, with at most about so many values together. Raises RecordError as ``past``."""
        self._history.follow()
        found = self._history.series()
        most = values // FEWEST_POINTS
        points = min(MOST_POINTS, values // max(min(len(found), most), 1))
        return self._past(found, since, until, points, most)

    def _past(
        self, found: Sequence[SeriesKey], since: Instant, until: Instant, points: int, lines: int
    ) -> Past:
        columns = [(key, self._history.column(key)) for key in found]
        shown = [(key, thinned(column, since, until, points)) for key, column in columns]
        shown = [(key, column) for key, column in shown if not np.isnan(column.values).all()]
        most = sorted(shown, key=lambda one: _greatest(one[1]), reverse=True)[:lines]
        return Past(
            since=format_rfc3339(since),
            until=format_rfc3339(until),
            kept=self._history.is_there,
            found=len(shown),
            lines=tuple(_line(key, column) for key, column in sorted(most, key=lambda one: one[0])),
        )


def _fits(key: SeriesKey, kind: str, name: str, figure: str) -> bool:
    named = not name or key.name == name or (key.kind == METRICS and key.name.startswith(f"{name}/"))
    return named and kind in {"", key.kind} and figure in {"", key.figure}


def _greatest(column: Column) -> float:
    return float(np.nanmax(column.values)) if len(column.values) else nan


def _line(key: SeriesKey, column: Column) -> Line:
    return Line(
        kind=key.kind,
        name=key.name,
        figure=key.figure,
        times=tuple((column.times / 1e9).tolist()),
        values=tuple(None if isnan(value) else value for value in column.values.tolist()),
    )
