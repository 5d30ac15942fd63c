"""Instants and durations as whole nanoseconds, and the texts that Kubernetes writes for them.

An ``Instant`` is wall time: nanoseconds since 1970-01-01T00:00:00Z, leap seconds not counted. A
``Duration`` is elapsed time in nanoseconds. Both are plain ints, so arithmetic is exact; the two
types keep them from being mixed. Year 1, Go's zero time, is a negative Instant and works.
"""

from __future__ import annotations

import json
import re
from datetime import date
from functools import lru_cache
from typing import NewType

Instant = NewType("Instant", int)
Duration = NewType("Duration", int)

ZERO = Duration(0)

_NS = 1_000_000_000
_MAX_INT64 = (1 << 63) - 1
_DAY_SECONDS = 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


class TimeFormatError(ValueError):
    """A text that is neither an RFC 3339 time nor a duration, as the call expected."""


def seconds(n: float) -> Duration:
    """Return n seconds; a float is rounded to the nearest nanosecond."""
    return _scaled(n, _NS)


def minutes(n: float) -> Duration:
    """Return n minutes; a float is rounded to the nearest nanosecond."""
    return _scaled(n, 60 * _NS)


def hours(n: float) -> Duration:
    """Return n hours; a float is rounded to the nearest nanosecond."""
    return _scaled(n, 3600 * _NS)


def milliseconds(n: float) -> Duration:
    """Return n milliseconds; a float is rounded to the nearest nanosecond."""
    return _scaled(n, 1_000_000)


def _scaled(n: float, unit: int) -> Duration:
    return Duration(n * unit if isinstance(n, int) else round(n * unit))


def after(t: Instant, d: Duration) -> Instant:
    """Return the instant d after t."""
    return Instant(t + d)


def before(t: Instant, d: Duration) -> Instant:
    """Return the instant d before t."""
    return Instant(t - d)


def between(start: Instant, end: Instant) -> Duration:
    """Return the time from start to end; negative when end is the earlier one."""
    return Duration(end - start)


def whole_seconds(d: Duration) -> Duration:
    """Return the duration without its fraction of a second, for texts that people read; ``d`` is not negative."""
    return Duration(d - d % _NS)


def to_seconds(d: Duration) -> float:
    """Return the duration in seconds, as Go's ``Duration.Seconds`` rounds it."""
    whole, rest = divmod(abs(d), _NS)
    value = float(whole) + rest / 1e9
    return value if d >= 0 else -value


# ── RFC 3339 ────────────────────────────────────────────────────────────────────────────────────

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)


@lru_cache(maxsize=1 << 14)
def parse_rfc3339(text: str) -> Instant:
    """Read an RFC 3339 time, with any offset; digits past the nanosecond are dropped.

    Raises: TimeFormatError that quotes the text.
    """
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise TimeFormatError(f"{_quote(text)} is not an RFC 3339 time such as 2026-01-31T09:30:00Z")
    year, month, day, hour, minute, second, fraction, sign, off_hour, off_minute = match.groups()
    if int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        raise TimeFormatError(f"{_quote(text)} is not an RFC 3339 time: the time of day is out of range")
    if sign and (int(off_hour) > 23 or int(off_minute) > 59):
        raise TimeFormatError(f"{_quote(text)} is not an RFC 3339 time: the zone offset is out of range")
    try:
        ordinal = date(int(year), int(month), int(day)).toordinal()
    except ValueError as exc:
        raise TimeFormatError(f"{_quote(text)} is not an RFC 3339 time: {exc}") from exc
    total = (ordinal - _EPOCH_ORDINAL) * _DAY_SECONDS + int(hour) * 3600 + int(minute) * 60 + int(second)
    if sign:
        offset = int(off_hour) * 3600 + int(off_minute) * 60
        total += offset if sign == "-" else -offset
    return Instant(total * _NS + (int(fraction[:9].ljust(9, "0")) if fraction else 0))


_YEAR_1 = parse_rfc3339("0001-01-01T00:00:00Z")
_YEAR_9000 = parse_rfc3339("9000-01-01T00:00:00Z")


def instant_of(text: str | None) -> Instant | None:
    """Return the time that a field of an object states; None where it states none, or one that is not RFC 3339.

    Nor is one before the year 1 or from 9000 on, in UTC: what is counted from it could not be printed.
    """
    try:
        found = parse_rfc3339(text) if text else None
    except TimeFormatError:
        return None
    return found if found is not None and _YEAR_1 <= found < _YEAR_9000 else None


def format_rfc3339(t: Instant) -> str:
    """Print whole seconds in UTC, the fraction cut off, as ``metav1.Time`` does."""
    return _whole_seconds(t // _NS) + "Z"


def format_rfc3339_micro(t: Instant) -> str:
    """Print six fraction digits in UTC, as ``metav1.MicroTime`` does."""
    whole, rest = divmod(t, _NS)
    return f"{_whole_seconds(whole)}.{rest // 1000:06d}Z"


def format_rfc3339_nano(t: Instant) -> str:
    """Print in UTC with just the fraction digits that are needed, as Go's RFC3339Nano."""
    whole, rest = divmod(t, _NS)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{_whole_seconds(whole)}{fraction}Z"


@lru_cache(maxsize=1 << 12)
def _whole_seconds(total: int) -> str:
    days, rest = divmod(total, _DAY_SECONDS)
    return f"{_day(days)}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"


@lru_cache(maxsize=64)
def _day(days: int) -> str:
    day = date.fromordinal(days + _EPOCH_ORDINAL)
    # Not strftime: it prints year 1 as "1" on some systems.
    return f"{day.year:04d}-{day.month:02d}-{day.day:02d}"


# ── Go durations ────────────────────────────────────────────────────────────────────────────────

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # micro sign
    "\u03bcs": 1_000,  # Greek letter mu
    "ms": 1_000_000,
    "s": _NS,
    "m": 60 * _NS,
    "h": 3600 * _NS,
}
_DURATION_PART = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]*)")


@lru_cache(maxsize=1 << 12)
def parse_duration(text: str) -> Duration:
    """Read Go's duration syntax: ``1h15m0.5s``, ``-2m``, ``0``.

    Raises: TimeFormatError, worded as Go's ``time.ParseDuration`` words it.
    Source: Go 1.25 time.ParseDuration, including its float rounding of fractions.
    """
    rest, negative = text, False
    if rest[:1] in {"+", "-"}:
        negative, rest = rest[0] == "-", rest[1:]
    if rest == "0":
        return ZERO
    invalid = TimeFormatError(f"time: invalid duration {_quote(text)}")
    if not rest:
        raise invalid
    total, position = 0, 0
    while position < len(rest):
        match = _DURATION_PART.match(rest, position)
        assert match is not None  # every part of the pattern may be empty
        digits, _, fraction, unit_text = match.groups()
        if not digits and not fraction:
            raise invalid
        if not unit_text:
            raise TimeFormatError(f"time: missing unit in duration {_quote(text)}")
        if unit_text not in _UNITS:
            raise TimeFormatError(f"time: unknown unit {_quote(unit_text)} in duration {_quote(text)}")
        if len(digits) > 40:
            raise invalid
        unit = _UNITS[unit_text]
        total += int(digits or "0") * unit + _fraction_of(fraction or "", unit)
        if total > _MAX_INT64 + 1:
            raise invalid
        position = match.end()
    if negative:
        return Duration(-total)
    if total > _MAX_INT64:
        raise invalid
    return Duration(total)


def _fraction_of(digits: str, unit: int) -> int:
    """Return that fraction of the unit in nanoseconds, in doubles in Go's order of operations."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > _MAX_INT64 // 10 or value * 10 + int(digit) > _MAX_INT64 + 1:
            break  # digits past int64 do not count
        value = value * 10 + int(digit)
        scale *= 10
    return int(float(value) * (float(unit) / scale))


def format_duration(d: Duration) -> str:
    """Print as Go's ``Duration.String``: ``1h0m0s``, ``1.5s``, ``150ms``, ``0s``."""
    if d == 0:
        return "0s"
    sign, n = ("-", -d) if d < 0 else ("", int(d))
    if n < 1_000:
        return f"{sign}{n}ns"
    if n < 1_000_000:
        return f"{sign}{_decimal(n, 1_000)}\u00b5s"
    if n < _NS:
        return f"{sign}{_decimal(n, 1_000_000)}ms"
    whole, rest = divmod(n, 60 * _NS)
    text = f"{_decimal(rest, _NS)}s"
    if whole:
        text = f"{whole % 60}m{text}"
    if whole >= 60:
        text = f"{whole // 60}h{text}"
    return sign + text


def _decimal(n: int, unit: int) -> str:
    """Print n / unit with the digits that are needed; the unit is a power of ten."""
    whole, rest = divmod(n, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).zfill(len(str(unit)) - 1).rstrip('0')}"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
