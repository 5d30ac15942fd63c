"""Parses the moment of a question, as people copy it from a log with whole seconds."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from kubetide.runtime.recording.indexed_records import first_time
from kubetide.runtime.recording.records import recorded_loops
from kubetide.units.time import (
    Duration,
    Instant,
    after,
    hours,
    minutes,
    parse_duration,
    parse_rfc3339,
    seconds,
)

_DAY = hours(24)
_SECOND = seconds(1)
_MINUTE = minutes(1)
_INSTANT = Duration(1)
_SHORT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d)(?::(\d\d))?Z?")


class Moment(msgspec.Struct, frozen=True):
    """A moment of a run, with the precision of its text.

    Attributes:
        at: Its beginning.
        length: How long it lasts: what was decided in the second that was named counts; 1 ns for a
            time with a fraction.
        first_tick: Whether it ends after the first tick of the loop that is in it: for a time
            without seconds.
        next_day: Whether a time of day was taken for that of the day after the start, as on the day
            of the start it is before it.
    """

    at: Instant
    length: Duration = _INSTANT
    first_tick: bool = False
    next_day: bool = False

    @property
    def end(self) -> Instant:
        """The first instant after it."""
        return after(self.at, self.length)


def start_of_records(folder: Path) -> Instant:
    """Return when a run began, in whole seconds: the first tick of any loop. Raises RecordError if there are none."""
    first = [time for loop in recorded_loops(folder) if (time := first_time(folder, loop)) is not None]
    start = min(first, default=Instant(0))
    return Instant(start - start % _SECOND)


def read_moment(text: str, start: Instant) -> Moment:
    """Return the moment of a time, a time of day (the first that is not over at ``start``) or a duration from ``start``.

    All are UTC; a time may leave out its seconds and its zone, as in ``2026-03-02T05:50``.

    Raises: ValueError for a text that is none of these, with a sentence for its author.
    """
    try:
        return _moment(text, start)
    except ValueError as error:
        raise ValueError(
            f"{text!r} is neither a time (2026-03-02T13:00:00Z), nor a time of day (13:00), "
            "nor a duration from the start (90m)"
        ) from error


def _moment(text: str, start: Instant) -> Moment:
    if short := _SHORT.fullmatch(text):
        at = parse_rfc3339(f"{short[1]}:{short[2] or '00'}Z")
        return Moment(at, _SECOND) if short[2] else Moment(at, _MINUTE, first_tick=True)
    if "T" in text:
        return _as_said(parse_rfc3339(text), text)
    if not re.fullmatch(r"\d{1,2}(:\d\d){1,2}", text):
        return _as_said(after(start, parse_duration(text)), text)
    from kubetide.simulate.scenarios.spec import parse_time_of_day  # noqa: PLC0415  an answer about the end needs no scenarios

    with_seconds = text.count(":") == 2
    length = _SECOND if with_seconds else _MINUTE
    at = after(Instant(start - start % _DAY), parse_time_of_day(text))
    over = after(at, length) <= start
    return Moment(after(at, _DAY) if over else at, length, first_tick=not with_seconds, next_day=over)


def _as_said(at: Instant, text: str) -> Moment:
    return Moment(at) if "." in text or at % _SECOND else Moment(at, _SECOND)
