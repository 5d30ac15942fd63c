"""Reading a recorded load series from a file, with errors that name file, line, problem and fix."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from math import isfinite
from pathlib import Path

from kubetide.embedded.load.traces import SeriesTrace, TraceError, moved, window_of
from kubetide.units.time import Duration, Instant, format_duration, format_rfc3339, parse_rfc3339, to_seconds

UNITS: tuple[str, ...] = ("requests/s", "requests/step")
GAPS: tuple[str, ...] = ("error", "hold")

_MOST = 1e12
"""A greater value is a slip, and sums of such values overflow."""
_LONGEST_HELD = 1_000_000
"""Missing steps that ``hold`` fills at one place; more means that a time is wrong."""


def read_trace(
    path: Path,
    *,
    unit: str = "requests/s",
    step: Duration | None = None,
    window: tuple[Instant, Instant] | None = None,
    start: Instant | None = None,
    column: str | None = None,
    gaps: str = "error",
    multiplier: float = 1.0,
) -> SeriesTrace:
    """Read ``time,value`` lines or bare values, one a line, plain or gzipped (``.gz``).

    A first line that is not data is taken as header. Times are RFC 3339, ``YYYY-MM-DD HH:MM:SS``
    (read as UTC) or seconds since 1970. Bare values count from 1970-01-01T00:00:00Z on.

    Args:
        path: The file.
        unit: ``requests/s``, or ``requests/step`` for counts, which are divided by the step.
        step: Time between values; needed for bare values, else the first two times say it.
        window: The part [from, to) that is played, in the file's own time; None plays all.
        start: When the first value of the window is played; None keeps the file's time.
        column: Header name of the value column; None takes the one after the time.
        gaps: ``error``, or ``hold`` to let the last value hold through missing steps.
        multiplier: Factor on every value.
    Raises: TraceError naming file, line, what is wrong and the fix.
    """
    if unit not in UNITS:
        raise TraceError(f"{path}: unknown unit {unit!r}; write one of {', '.join(UNITS)}")
    if gaps not in GAPS:
        raise TraceError(f"{path}: unknown treatment of gaps {gaps!r}; write one of {', '.join(GAPS)}")
    if step is not None and step <= 0:
        raise TraceError(
            f"{path}: step {format_duration(step)} is not positive; state the time between two values"
        )
    if not (isfinite(multiplier) and multiplier > 0):
        raise TraceError(f"{path}: multiplier {multiplier} must be a finite number greater than 0")
    reader = _Reader(path=path, step=step, column=column, hold=gaps == "hold")
    trace = reader.read(_lines(path), None if window is None else window[1])
    if window is not None:
        trace = window_of(trace, *window)
    per_second = to_seconds(trace.step) if unit == "requests/step" else 1.0
    scaled = SeriesTrace(
        trace.values / per_second * multiplier, step=trace.step, start=trace.start, name=trace.name
    )
    return scaled if start is None else moved(scaled, start)


def _lines(path: Path) -> Sequence[str]:
    try:
        raw = path.read_bytes()
        data = gzip.decompress(raw) if path.suffix == ".gz" else raw
        return data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise TraceError(f"{path}: not UTF-8 text (byte {error.start}); save it as CSV text") from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise TraceError(f"{path}: not a complete gzip file: {error}; compress it again") from error
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}; check the path") from error


@dataclass
class _Reader:
    path: Path
    step: Duration | None
    column: str | None
    hold: bool

    def read(self, lines: Sequence[str], until: Instant | None) -> SeriesTrace:
        """Read all lines, or where they have times those before ``until``."""
        rows = ((number, line.strip()) for number, line in enumerate(lines, 1))
        filled = [(number, line) for number, line in rows if line]
        if not filled:
            raise TraceError(f"{self.path}: empty; a trace has one value a line")
        number, line = filled[-1]
        for separator, name in ((";", "semicolons"), ("\t", "tabs")):
            if separator in line and "," not in line:
                raise TraceError(
                    f"{self.path}:{number}: columns parted by {name}; write `time,value`, with commas"
                )
        first = filled[0][1].split(",")
        header = first if _is_header(first) else None
        data = filled[1:] if header is not None else filled
        if not data:
            raise TraceError(
                f"{self.path}:{filled[0][0]}: a header and no value after it; a trace has one value a line"
            )
        timed = len(data[0][1].split(",")) > 1
        column = self._column(header, timed=timed)
        if timed:
            return self._timed(data, column, until)
        return self._bare(data)

    def _column(self, header: list[str] | None, *, timed: bool) -> int:
        if self.column is None:
            return 1 if timed else 0
        names = [] if header is None else [name.strip() for name in header]
        if self.column not in names:
            raise TraceError(
                f"{self.path}:1: no column {self.column!r}; the header names {', '.join(names) or 'nothing'}"
            )
        return names.index(self.column)

    def _bare(self, data: Sequence[tuple[int, str]]) -> SeriesTrace:
        if self.step is None:
            raise TraceError(
                f"{self.path}: bare values without times; state `step`, the time between two of them"
            )
        values = [self._value(number, text) for number, text in data]
        return SeriesTrace(values, step=self.step, start=Instant(0), name=str(self.path))

    def _timed(self, data: Sequence[tuple[int, str]], column: int, until: Instant | None) -> SeriesTrace:
        rows = self._rows(data, column)
        head = list(islice(rows, 2))
        step = self.step
        if step is None:
            if len(head) < 2:
                raise TraceError(f"{self.path}: a single value; state `step`, how long it holds")
            step = Duration(head[1][1] - head[0][1])
            if step <= 0:
                raise self._unsorted(*head)
        values: list[float] = [head[0][2]]
        last = head[0]
        for row in chain(head[1:], rows):
            if until is not None and last[1] >= until:
                break
            self._extend(values, last, row, step)
            last = row
        return SeriesTrace(values, step=step, start=head[0][1], name=str(self.path))

    def _rows(self, data: Sequence[tuple[int, str]], column: int) -> Iterator[tuple[int, Instant, float]]:
        for number, line in data:
            cells = line.split(",")
            if len(cells) <= column:
                raise TraceError(
                    f"{self.path}:{number}: {line!r} has {len(cells)} columns, not {column + 1}; write `time,value`"
                )
            yield number, self._time(number, cells[0].strip()), self._value(number, cells[column].strip())

    def _extend(
        self,
        values: list[float],
        last: tuple[int, Instant, float],
        row: tuple[int, Instant, float],
        step: Duration,
    ) -> None:
        number, at, value = row
        distance = at - last[1]
        if distance == step:
            values.append(value)
            return
        if distance <= 0:
            raise self._unsorted(last, row)
        missing, rest = divmod(distance, step)
        if rest:
            raise TraceError(
                f"{self.path}:{number}: time {format_rfc3339(at)} does not fall on a step of {format_duration(step)} "
                f"after {format_rfc3339(last[1])}; correct the time or state the right `step`"
            )
        if not self.hold:
            raise TraceError(
                f"{self.path}:{number}: {missing - 1} missing between {format_rfc3339(last[1])} and "
                f"{format_rfc3339(at)} (step {format_duration(step)}); add the lines, or state `gaps: hold` to let "
                "the last value hold"
            )
        if missing > _LONGEST_HELD:
            raise TraceError(
                f"{self.path}:{number}: {missing - 1} steps are missing before {format_rfc3339(at)}, too many to hold; "
                "correct the time"
            )
        values.extend([last[2]] * (missing - 1))
        values.append(value)

    def _unsorted(self, last: tuple[int, Instant, float], row: tuple[int, Instant, float]) -> TraceError:
        return TraceError(
            f"{self.path}:{row[0]}: time {format_rfc3339(row[1])} does not come after {format_rfc3339(last[1])} of the "
            "line before; sort the lines by time and leave no time twice"
        )

    def _time(self, number: int, text: str) -> Instant:
        if _is_number(text):
            return Instant(round(float(text) * 1_000_000_000))
        try:
            normal = text.replace(" ", "T", 1)
            return parse_rfc3339(normal if _has_zone(normal) else normal + "Z")
        except ValueError as error:
            raise TraceError(
                f"{self.path}:{number}: {text!r} is not a time; write RFC 3339, YYYY-MM-DD HH:MM:SS or seconds"
            ) from error

    def _value(self, number: int, text: str) -> float:
        try:
            value = float(text)
        except ValueError as error:
            raise TraceError(
                f"{self.path}:{number}: {text!r} is not a number; write requests as a number"
            ) from error
        if not isfinite(value):
            raise TraceError(
                f"{self.path}:{number}: {text} is not a finite number; write a number or leave the line out"
            )
        if value > _MOST:
            raise TraceError(f"{self.path}:{number}: {text} is more than {_MOST:g}; correct the value")
        if value < 0:
            raise TraceError(f"{self.path}:{number}: {text} is negative; requests are 0 or more")
        return value


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


def _has_zone(text: str) -> bool:
    return text.endswith(("Z", "z")) or "+" in text[10:] or "-" in text[10:]


def _is_header(cells: list[str]) -> bool:
    """Return whether no cell looks like data: neither a number nor a time, nor NaN or the like."""
    return all(cell.strip()[:1].isalpha() or cell.strip()[:1] in {"_", "#", '"'} for cell in cells) and (
        cells[-1].strip().lower() not in {"nan", "inf", "infinity"}
    )
