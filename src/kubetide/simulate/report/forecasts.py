"""What was foretold in a run, against what came: from the figures in its records."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path

import numpy as np

from kubetide.ports.metrics import Int64Vector
from kubetide.runtime.figures.blocks import SeriesKey
from kubetide.runtime.figures.reading import Column, FigureHistory
from kubetide.runtime.records import RecordError
from kubetide.simulate.report.series import Forecast

_MOST = 20
"""Workloads with forecasts that are shown."""


def forecasts_of(folder: Path, times: Sequence[float]) -> list[Forecast]:
    """Return load and forecasts of a run's HPAs at these times, in seconds since 1970; none where it recorded none."""
    history = FigureHistory(folder)
    try:
        history.follow()
    except RecordError:
        return []
    names = sorted(
        {key.name for key in history.series() if (key.kind, key.figure) == ("forecast", "foretold")}
    )
    at = (np.array(times) * 1e9).astype(np.int64)
    return [
        Forecast(
            name,
            came=_values(history.column(SeriesKey("forecast", name, "came")), at),
            foretold=_values(history.column(SeriesKey("forecast", name, "foretold")), at),
        )
        for name in names[:_MOST]
    ]


def _values(column: Column, at: Int64Vector) -> list[float | None]:
    if not len(column.times):  # nothing was foretold, or nothing has come
        return [None] * len(at)
    found = column.values[np.maximum(np.searchsorted(column.times, at, side="right") - 1, 0)]
    before = at < column.times[0]
    return [
        None if early or isnan(value) else value
        for early, value in zip(before.tolist(), found.tolist(), strict=True)
    ]
