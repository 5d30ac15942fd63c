"""One screen of a running run, for ``kubetide top``: the most important rows first, from its records."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import NamedTuple

from kubetide.loop import Cell, Table
from kubetide.runtime.figures.blocks import SeriesKey
from kubetide.runtime.figures.reading import FigureHistory
from kubetide.runtime.recording.folder import is_running
from kubetide.simulate.answers.moments import Moments
from kubetide.simulate.answers.status import status_of
from kubetide.units.time import Instant, before, format_rfc3339, hours, parse_rfc3339

_POINTS = 12
"""Of a trend: an hour, five minutes each."""

_HOUR = hours(1)


class Fact(NamedTuple):
    """A number with its name, and its values in equal parts of the last hour; None where unknown."""

    label: str
    value: str
    trend: tuple[float | None, ...] = ()


class Said(NamedTuple):
    """A decision or event, and its reason."""

    at: str
    text: str
    why: tuple[str, ...] = ()


class Screen(NamedTuple):
    """The content of the screen.

    Attributes:
        name: Of the run or the cluster; ``state`` how it is.
        at: The time of what is shown (RFC 3339).
        tables: What needs attention comes first in each.
        said: Newest first.
        notes: What a person must know: why nothing is taken away, what could not be read.
    """

    name: str
    state: str
    at: str
    facts: tuple[Fact, ...]
    tables: tuple[Table, ...]
    said: tuple[Said, ...]
    notes: tuple[str, ...] = ()


class RecordsTop:
    """Builds the screen of a records folder; rebuilds only parts with new records."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._moments = Moments(folder)
        self._figures = FigureHistory(folder)
        self._sizes: tuple[tuple[str, int], ...] = ()
        self._screen: Screen | None = None

    def screen(self) -> Screen:
        """Return the screen. Raises RecordError if there are no records yet."""
        sizes = tuple(
            (path.name, path.stat().st_size) for path in sorted((self._folder / "records").glob("*.jsonl"))
        )
        if self._screen is None or sizes != self._sizes:
            self._screen, self._sizes = self._made(), sizes
        return self._screen._replace(state="live" if is_running(self._folder) else "ended")

    def _made(self) -> Screen:
        status, tables = status_of(self._moments)
        return Screen(
            name=str(self._folder),
            state="",
            at=status.at,
            facts=self._facts(parse_rfc3339(status.at)),
            tables=tuple(by_need(table) for table in tables),
            said=tuple(Said(one.at, one.text, one.why) for one in reversed(status.decisions)),
            notes=status.answer,
        )

    def _facts(self, now: Instant) -> tuple[Fact, ...]:
        self._figures.follow()
        named = (("pods", "pods"), ("pending", "waiting"), ("cost", "cost/h"))
        facts = [_fact(label, self._trend(SeriesKey("cluster", "", key), now)) for key, label in named]
        ready = [key for key in self._figures.series() if (key.kind, key.figure) == ("nodegroup", "ready")]
        trends = [self._trend(key, now) for key in ready]
        sums = tuple(_sum(values) for values in zip(*trends, strict=True))
        return tuple(one for one in (_fact("nodes ready", sums), *facts) if one.trend)

    def _trend(self, key: SeriesKey, now: Instant) -> tuple[float | None, ...]:
        steps = range(_POINTS - 1, -1, -1)
        times = [before(now, _HOUR // _POINTS * step) for step in steps]  # type: ignore[arg-type]
        try:
            found = [self._figures.at(key, time) for time in times]
        except KeyError:
            return ()
        return tuple(None if isnan(value) else value for value in found)


def _fact(label: str, trend: tuple[float | None, ...]) -> Fact:
    last = trend[-1] if trend else None
    return Fact(label, "-" if last is None else f"{last:.4g}", trend)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def by_need(table: Table) -> Table:
    """Return a table with the rows first that need attention: HPAs that are scaling or held, groups that wait or fail."""
    places = {name: place for place, name in enumerate(table.columns)}

    def need(row: tuple[Cell, ...]) -> tuple[bool, bool]:
        cell = {name: row[place] for name, place in places.items()}
        moves = "desired" in cell and cell["desired"] != cell.get("current")
        waits = bool(cell.get("upcoming")) or (
            "ready" in cell and "size" in cell and cell["ready"] != cell["size"]
        )
        return not (moves or waits), not (cell.get("limited by") or cell.get("state"))

    return table._replace(rows=tuple(sorted(table.rows, key=need)))


def now_text(now: Instant) -> str:
    """Return a time in whole seconds."""
    return format_rfc3339(Instant(now - now % 10**9))
