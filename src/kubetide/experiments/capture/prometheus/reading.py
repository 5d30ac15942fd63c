"""Asking Prometheus: facts by their labels and numbers on a grid of times, an hour or so at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kubetide.experiments.capture.errors import CaptureError
from kubetide.experiments.capture.prometheus.questions import CPU, Fact, promql
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import SeriesQuery, SeriesSource, TimeSeries
from kubetide.units.time import Duration, Instant, format_rfc3339, hours, minutes, seconds

_MOST_STEPS = 1000
"""Of one answer; Prometheus gives 11,000 at most."""
_LONGEST = hours(6)
_TRIES = 2
_LOOK_BACK = minutes(2)
_FAR = 1e9 * 9
"""Seconds; later times do not fit into nanoseconds."""

Row = tuple[str, ...]
T = TypeVar("T")
Floats = NDArray[np.float64]


class Grid(NamedTuple):
    """The times at which numbers are asked for: ``size`` of them, ``step`` apart, from ``start`` on."""

    start: Instant
    step: Duration
    size: int

    def at(self, index: int) -> Instant:
        """Return one of the times."""
        return Instant(self.start + index * self.step)

    def place(self, second: float) -> int | None:
        """Return which of the times that is, in Unix seconds; None for one that is none of them."""
        if not abs(second) < _FAR:
            return None
        found, rest = divmod(round(second * 1000) * 1_000_000 - self.start, self.step)
        return found if rest < 1_000_000 and 0 <= found < self.size else None

    def parts(self) -> Iterator[tuple[int, int]]:
        """Yield the grid in parts that are asked for at once: the first time of each, and the one after its last."""
        at_once = max(min(_MOST_STEPS, _LONGEST // self.step), 1)
        for first in range(0, self.size, at_once):
            yield first, min(first + at_once, self.size)


class Seen(NamedTuple):
    """A fact's first and last value, and when it was first known."""

    first: float
    last: float
    at: Instant


Facts = dict[Row, Seen]
"""By the values of the question's labels."""


class Asking:
    """Puts questions, each twice where the first answer fails; counts what is no number.

    Args:
        url: What messages call the server.
    """

    def __init__(self, source: SeriesSource, url: str) -> None:
        self._source = source
        self._url = url
        self.odd = 0
        """Values that were neither a number nor a missing one."""

    async def facts(self, fact: Fact, at: Instant, within: Duration | None, found: Facts) -> None:
        """Add what is known at a time, or within a length before it. Raises: CaptureError."""
        query = fact.at_once() if within is None else fact.within(within)

        def read(series: TimeSeries) -> tuple[Row, float | None]:
            row = tuple(series.metric.get(label, "") for label in fact.labels)
            return row, next((value for _, value in self._numbers(series)), None)

        for row, value in await self._ask(SeriesQuery(query, at), read):
            if value is not None:
                there = found.get(row)
                found[row] = Seen(value, value, at) if there is None else there._replace(last=value)

    async def numbers(
        self, query: str, labels: Sequence[str], grid: Grid, part: tuple[int, int]
    ) -> list[tuple[Row, Floats]]:
        """Return each series of a part of the grid: the values of its labels, and its numbers, NaN for gaps.

        Raises: CaptureError.
        """
        first, end = part

        def read(series: TimeSeries) -> tuple[Row, Floats]:
            values = np.full(end - first, math.nan)
            for second, value in self._numbers(series):
                place = grid.place(second)
                if place is not None and first <= place < end:
                    values[place - first] = value
            return tuple(series.metric.get(label, "") for label in labels), values

        return await self._ask(SeriesQuery(query, grid.at(end - 1), grid.at(first), grid.step), read)

    async def interval(self, at: Instant) -> Duration | None:
        """Return how far apart the samples of CPU usage are at that time, the median; None where there are none."""

        def read(series: TimeSeries) -> list[float]:
            times = [second for second, _ in series.values]
            return [later - time for time, later in pairwise(times) if later > time]

        found = await self._ask(SeriesQuery(f"{CPU}[{promql(_LOOK_BACK)}]", at), read)
        gaps = [gap for one in found for gap in one]
        return seconds(float(np.median(gaps))) if gaps else None

    def _numbers(self, series: TimeSeries) -> Iterator[tuple[float, float]]:
        for second, text in series.values:
            try:
                value = float(text)
            except ValueError:
                value = math.inf
            if math.isfinite(value):
                yield second, value
            elif not math.isnan(value):
                self.odd += 1

    async def _ask(self, question: SeriesQuery, read: Callable[[TimeSeries], T]) -> list[T]:
        for turn in range(_TRIES):
            found: list[T] = []

            def take(series: TimeSeries, found: list[T] = found) -> None:
                found.append(read(series))

            try:
                # What came before an answer broke off must not count.
                await self._source.each_series(question, take)
            except MetricsError as error:
                if turn + 1 < _TRIES:
                    continue
                raise CaptureError(
                    f"Prometheus at {self._url} does not answer for {_times(question)}: {error}; the question was "
                    f"`{question.query}`. Nothing is captured: ask for a shorter time (--since, --until) or a longer "
                    "--step, or try again"
                ) from error
            return found
        raise AssertionError("a try returns or raises")


def _times(question: SeriesQuery) -> str:
    if question.start is None:
        return format_rfc3339(question.end)
    return f"{format_rfc3339(question.start)} to {format_rfc3339(question.end)}"
