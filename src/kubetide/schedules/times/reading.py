"""Parses schedule texts into calendars, and reports what cannot be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, tzinfo
from functools import lru_cache
from typing import Final

from kubetide.schedules.times.calendar import Calendar, Days, Every, Off, Once
from kubetide.units import cron
from kubetide.units.cron import CronError, Grammar, Spec, parse_cron, zone_of
from kubetide.units.time import Instant

FIVE: Final = Grammar(zones=False, steps_keep_star=True)
"""Five fields or a descriptor. Source: robfig/cron v1.2.0 ParseStandard, as TKEStack uses it."""
SIX: Final = Grammar(seconds=True, weekday_optional=True, zones=False, steps_keep_star=True)
"""Six fields, the last of which may be missing, or a descriptor. Source: ringtail/go-cron, as Alibaba uses it."""
SIX_STRICT: Final = Grammar(
    seconds=True, descriptors=False, zones=False, blank_in_days_only=True, steps_keep_star=True
)
"""Six fields. Source: Tencent's documentation of HorizontalPodCronscaler; of steps it says nothing, so as ``SIX``."""
FIVE_WITH_ZONE: Final = Grammar(descriptors=False)
"""Five fields, a zone before them. Source: KEDA's cron trigger."""

DAYS: Final = "@days "
"""Before the dates of a calendar, where a kind has calendars."""

_YEARLY = re.compile(r"(\d{2})-(\d{2})", re.ASCII)
_DATE = re.compile(r"@date (\d{4})-(\d\d?)-(\d\d?) (\d\d?):(\d\d?):(\d\d?)", re.ASCII)


def read_calendar(
    text: str, grammar: Grammar, zone: tzinfo, start: Instant, *, dates: bool = False
) -> Calendar:
    """Return the calendar of a schedule.

    Args:
        grammar: The forms that are allowed.
        zone: Of the wall clock, where the text names none.
        start: What ``@every`` counts from.
        dates: Whether ``@date YYYY-MM-DD HH:MM:SS`` is allowed: once, at that time.
    Raises: CronError.
    """
    if dates and text.startswith("@date"):
        day, clock = read_date(text)
        return Once(day, clock, zone)
    found = _parse(text, grammar)
    if isinstance(found, cron.Every):
        return Every(start, found.pause, zone)
    return _days(found, found.zone or zone)


@lru_cache(maxsize=1 << 14)
def _days(spec: Spec, zone: tzinfo) -> Days:
    """Return one calendar for all rules of a schedule, which then share what they have found."""
    return Days(spec, zone)


@lru_cache(maxsize=1 << 14)
def _parse(text: str, grammar: Grammar) -> cron.Schedule:
    return parse_cron(text, grammar)


def read_date(text: str) -> tuple[date, int]:
    """Return the date and the time of day, in seconds, of ``@date``. Raises CronError."""
    match = _DATE.fullmatch(text)
    if match is None:
        raise CronError(f"failed to parse date {text}: write @date YYYY-MM-DD HH:MM:SS")
    year, month, day, hour, minute, second = (int(part) for part in match.groups())
    if not 1 <= month <= 12:
        raise CronError(f"failed to parse date {text}: month out of range")
    try:
        found = date(year, month, day)
    except ValueError as error:
        raise CronError(f"failed to parse date {text}: day out of range") from error
    if hour > 23 or minute > 59 or second > 59:
        raise CronError(f"failed to parse date {text}: time of day out of range")
    return found, hour * 3600 + minute * 60 + second


def read_dates(text: str, grammar: Grammar, *, dates: bool = False) -> Off:
    """Return a test for the local dates of an expression: those with an activation at any second. Raises CronError."""
    if dates and text.startswith("@date"):
        day, _ = read_date(text)
        return day.__eq__
    if text.startswith(DAYS):
        return read_days(text.removeprefix(DAYS))
    found = _parse(text, grammar)
    if not isinstance(found, Spec):
        raise CronError(f"names no dates: {text}")
    return found.on


def read_days(text: str) -> Off:
    """Return a test for the dates of ``2026-12-24``, ``12-25``, or ``2026-12-24/2027-01-01``. Raises CronError."""
    yearly = _YEARLY.fullmatch(text)
    try:
        if yearly is not None:
            month, day = int(yearly[1]), int(yearly[2])
            date(2000, month, day)  # a leap year has all dates
            return lambda one: (one.month, one.day) == (month, day)
        first, _, last = text.partition("/")
        low, high = date.fromisoformat(first), date.fromisoformat(last or first)
    except ValueError as error:
        raise CronError(
            f"failed to parse dates {text}: {error}; write 2026-12-24, 12-25 or 2026-12-24/2027-01-01"
        ) from error
    if high < low:
        raise CronError(f"dates {text} end before they start")
    return lambda one: low <= one <= high


def position_of(error: CronError) -> str:
    """Return the wrong field, as ``hour (field 3): ``; empty if the error is not in one field."""
    return f"{error.field}: " if error.field else ""


@lru_cache(maxsize=256)
def read_zone(name: str, local: str = "UTC") -> tzinfo:
    """Return the zone of that name; ``Local`` means ``local``. Raises CronError."""
    zone_name = local if name == "Local" else name
    if zone_name.startswith(("/", "\\")) or ".." in zone_name or "\\" in zone_name:
        raise CronError(f"unknown time zone {name}")
    if zone_name.upper() == "UTC" and zone_name != "UTC":
        raise CronError(f"unknown time zone {name}")
    found = zone_of(zone_name)
    key = getattr(found, "key", zone_name)
    return UTC if key == "UTC" else found


def any_of(expressions: Sequence[tuple[str, Off]]) -> Off | None:
    """Return a test for dates of any of the expressions; None without expressions."""
    if not expressions:
        return None
    return lambda day: any(off(day) for _, off in expressions)
