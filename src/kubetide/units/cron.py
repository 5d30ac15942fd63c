"""Cron schedules, read and followed as robfig/cron v3 does: the parser behind CronJobs.

Five fields (minute, hour, day of month, month, day of week) or a descriptor (``@daily``,
``@every 90m``), either with ``TZ=Zone`` before it. Source: github.com/robfig/cron/v3 v3.0.1,
ParseStandard and Schedule.Next, with the messages of its parser. A ``Grammar`` says which other
forms are allowed: six fields with the seconds first, no descriptors, no zones.

What it does around a change of the clocks follows from how it searches: by whole hours of elapsed
time, so that a schedule at an hour that does not exist that day is left out, and one at an hour
that comes twice is followed twice.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from kubetide.units.time import Duration, Instant, TimeFormatError, parse_duration

__all__ = ["STANDARD", "CronError", "Every", "Grammar", "Schedule", "Spec", "parse_cron", "zone_of"]

_NS = 1_000_000_000
_DAY = 86_400
_HOUR = 3_600
_MINUTE = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MAX_INT64 = (1 << 63) - 1
# A schedule with no day in this many years, such as 30 February, has none.
_YEARS_AHEAD = 5
_STAR = 1 << 63
_ALL_SECONDS = (1 << 60) - 1


class CronError(ValueError):
    """A text that is no schedule or no zone, in the words of upstream's parser.

    Attributes:
        field: The field that is wrong, such as ``hour (field 2)``; empty where it is not one field.
    """

    field = ""


class Grammar(NamedTuple):
    """Which forms of a schedule are allowed.

    Attributes:
        seconds: Whether six fields are expected, the seconds first.
        weekday_optional: Whether the last field may be missing, which then means every day.
        descriptors: Whether ``@daily`` and ``@every`` are allowed.
        zones: Whether ``TZ=Zone`` before the fields is allowed.
        blank_in_days_only: Whether ``?`` stands in the two day fields only.
        steps_keep_star: Whether ``*/2`` in one day field still lets both day fields decide together, as ``*``
            does: so up to robfig/cron v1. In v3 either of the two is enough.
    """

    seconds: bool = False
    weekday_optional: bool = False
    descriptors: bool = True
    zones: bool = True
    blank_in_days_only: bool = False
    steps_keep_star: bool = False


STANDARD = Grammar()
"""As CronJobs are read."""


class _Bounds(NamedTuple):
    low: int
    high: int
    names: dict[str, int]


_MINUTES = _Bounds(0, 59, {})
_HOURS = _Bounds(0, 23, {})
_DAYS = _Bounds(1, 31, {})
_MONTHS = _Bounds(
    1,
    12,
    {
        name: at + 1
        for at, name in enumerate(
            ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        )
    },
)
_WEEKDAYS = _Bounds(
    0, 6, {name: at for at, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
)
_SECONDS = _MINUTES
_FIELDS = (_SECONDS, _MINUTES, _HOURS, _DAYS, _MONTHS, _WEEKDAYS)
_FIELD_NAMES = ("second", "minute", "hour", "day of month", "month", "day of week")
_DAY_FIELDS = ("day of month", "day of week")

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


@lru_cache(maxsize=256)
def zone_of(name: str) -> tzinfo:
    """Return the IANA time zone of that name. Raises CronError."""
    if name in {"", "UTC"}:
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise CronError(f"unknown time zone {name}") from error


class Every(msgspec.Struct, frozen=True):
    """A fixed pause between two activations, in whole seconds."""

    pause: Duration

    def next(self, after: Instant, zone: tzinfo = UTC) -> Instant:  # noqa: ARG002  one shape for all schedules
        """Return the first activation later than ``after``."""
        return Instant(after + self.pause - after % _NS)


class Spec(msgspec.Struct, frozen=True):
    """Fields as bit sets; a field that was ``*`` or ``?`` carries the star bit, too.

    ``zone`` is what the schedule itself names; None leaves it to who asks. ``seconds`` is second 0 alone
    where the schedule has five fields.
    """

    minutes: int
    hours: int
    days: int
    months: int
    weekdays: int
    zone: tzinfo | None = None
    seconds: int = 1

    def next(self, after: Instant, zone: tzinfo = UTC) -> Instant | None:
        """Return the first activation later than ``after``, None where five years have none."""
        civil = _Search(self, self.zone or zone)
        seconds = civil.first_after(after // _NS)
        return None if seconds is None else Instant(seconds * _NS)

    def on(self, day: date) -> bool:
        """Return whether the schedule has activations on that date."""
        if not self.months >> day.month & 1:
            return False
        by_day = bool(self.days >> day.day & 1)
        by_weekday = bool(self.weekdays >> day.isoweekday() % 7 & 1)
        if (self.days | self.weekdays) & _STAR:
            return by_day and by_weekday
        return by_day or by_weekday


Schedule = Every | Spec


def parse_cron(text: str, grammar: Grammar = STANDARD) -> Schedule:
    """Read a schedule. Raises CronError."""
    if not text:
        raise CronError("empty spec string")
    zone = None
    if grammar.zones and text.startswith(("TZ=", "CRON_TZ=")):
        named, blank, rest = text.partition(" ")
        name = named.partition("=")[2]
        if not blank:
            raise CronError(f"expected a schedule after the time zone {name}")
        try:
            # "Local" is the zone of the time that is asked about, as without a prefix.
            zone = None if name == "Local" else zone_of(name)
        except CronError as error:
            raise CronError(f"provided bad location {name}: {error}") from error
        text = rest.strip()
    if text.startswith("@"):
        if not grammar.descriptors:
            raise CronError(f"parser does not accept descriptors: {text}")
        return _descriptor(text, zone)
    return _spec(_fields(text, grammar), zone, grammar)


def _fields(text: str, grammar: Grammar) -> list[str]:
    """Return the six fields, those that may be missing filled in."""
    fields = text.split()
    most = len(_FIELDS) if grammar.seconds else len(_FIELDS) - 1
    least = most - grammar.weekday_optional
    if not least <= len(fields) <= most:
        expected = f"exactly {most}" if least == most else f"{least} to {most}"
        found = text if grammar.weekday_optional else f"[{' '.join(fields)}]"
        raise CronError(f"expected {expected} fields, found {len(fields)}: {found}")
    return [*([] if grammar.seconds else ["0"]), *fields, *["*"] * (most - len(fields))]


def _descriptor(text: str, zone: tzinfo | None) -> Schedule:
    if text in _DESCRIPTORS:
        return _spec(["0", *_DESCRIPTORS[text].split()], zone, STANDARD)
    if text.startswith("@every "):
        try:
            pause = parse_duration(text.removeprefix("@every "))
        except TimeFormatError as error:
            raise CronError(f"failed to parse duration {text}: {error}") from error
        return Every(Duration(max(pause - pause % _NS, _NS)))
    raise CronError(f"unrecognized descriptor: {text}")


def _spec(fields: list[str], zone: tzinfo | None, grammar: Grammar) -> Spec:
    bits: list[int] = []
    for position, (text, bounds, name) in enumerate(zip(fields, _FIELDS, _FIELD_NAMES, strict=True)):
        try:
            only_days = grammar.blank_in_days_only and name not in _DAY_FIELDS
            allowed = _without_blank(text) if only_days else text
            bits.append(_field(allowed, bounds, steps_keep_star=grammar.steps_keep_star))
        except CronError as error:
            error.field = f"{name} (field {position + grammar.seconds})"
            raise
    seconds, minutes, hours, days, months, weekdays = bits
    return Spec(minutes, hours, days, months, weekdays, zone, seconds)


def _without_blank(text: str) -> str:
    if "?" in text:
        raise CronError(f"? is allowed for days only: {text}")
    return text


def _field(text: str, bounds: _Bounds, *, steps_keep_star: bool) -> int:
    bits = 0
    for part in text.split(","):
        if part:
            bits |= _range(part, bounds, steps_keep_star=steps_keep_star)
    return bits


def _range(text: str, bounds: _Bounds, *, steps_keep_star: bool) -> int:
    span, *steps = text.split("/")
    first, *lasts = span.split("-")
    star = 0
    if first in {"*", "?"}:
        low, high, star = bounds.low, bounds.high, _STAR
    else:
        low = high = _number(first, bounds)
        if len(lasts) > 1:
            raise CronError(f"too many hyphens: {text}")
        if lasts:
            high = _number(lasts[0], bounds)
    step = 1
    if steps:
        if len(steps) > 1:
            raise CronError(f"too many slashes: {text}")
        step = _whole(steps[0])
        if not lasts:
            high = bounds.high  # "N/step" means "N-max/step"
        if step > 1 and not steps_keep_star:
            star = 0
    if low < bounds.low:
        raise CronError(f"beginning of range ({low}) below minimum ({bounds.low}): {text}")
    if high > bounds.high:
        raise CronError(f"end of range ({high}) above maximum ({bounds.high}): {text}")
    if low > high:
        raise CronError(f"beginning of range ({low}) beyond end of range ({high}): {text}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {text}")
    return sum(1 << value for value in range(low, high + 1, step)) | star


def _number(text: str, bounds: _Bounds) -> int:
    named = bounds.names.get(text.lower())
    return _whole(text) if named is None else named


def _whole(text: str) -> int:
    digits = text[1:] if text[:1] in {"+", "-"} else text
    why = "" if digits.isascii() and digits.isdigit() else "invalid syntax"
    if not why and (len(digits.lstrip("0")) > 19 or int(digits) > _MAX_INT64):
        why = "value out of range"
    if why:
        quoted = json.dumps(text, ensure_ascii=False)
        raise CronError(f"failed to parse int from {text}: strconv.Atoi: parsing {quoted}: {why}")
    value = int(text)
    if value < 0:
        raise CronError(f"negative number ({value}) not allowed: {text}")
    return value


class _Search:
    """The search for the next activation, in seconds since 1970, step by step as upstream takes them."""

    def __init__(self, spec: Spec, zone: tzinfo) -> None:
        self._spec = spec
        self._zone = zone

    def first_after(self, at: int) -> int | None:
        now = at + 1
        last_year = self._date(now).year + _YEARS_AHEAD
        truncated = False
        while self._date(now).year <= last_year:
            for advance in (self._month, self._day, self._hour, self._minute):
                now, moved, wrapped = advance(now, truncated=truncated)
                truncated |= moved
                if wrapped:
                    break
            else:
                second = self._clock(now) % _MINUTE
                later = (self._spec.seconds & _ALL_SECONDS) >> second
                if later:
                    return now + (later & -later).bit_length() - 1
                now += _MINUTE - second
                truncated = True
        return None

    # Each of these gives (where the search is now, whether it moved, whether a larger unit began anew).

    def _month(self, now: int, *, truncated: bool) -> tuple[int, bool, bool]:
        moved = False
        while not self._spec.months >> self._date(now).month & 1:
            day = self._date(now)
            if not (truncated or moved):
                now = self._at(day.replace(day=1).toordinal(), 0)
                day = self._date(now)
            moved = True
            # The first of a month may have no midnight, and the search then stands on the last day of the month
            # before: a day that the next month lacks counts on into the month after it, as Go's AddDate does.
            following = date(day.year + day.month // 12, day.month % 12 + 1, 1)
            now = self._at(following.toordinal() + day.day - 1, self._clock(now))
            if self._date(now).month == 1:
                return now, True, True
        return now, moved, False

    def _day(self, now: int, *, truncated: bool) -> tuple[int, bool, bool]:
        moved = False
        while not self._spec.on(self._date(now)):
            if not (truncated or moved):
                now = self._at(self._date(now).toordinal(), 0)
            moved = True
            now = self._at(self._date(now).toordinal() + 1, self._clock(now))
            hour = self._clock(now) // _HOUR
            if hour:
                # Midnight does not exist that day.
                now += ((24 - hour) if hour > 12 else -hour) * _HOUR
            if self._date(now).day == 1:
                return now, True, True
        return now, moved, False

    def _hour(self, now: int, *, truncated: bool) -> tuple[int, bool, bool]:
        moved = False
        while not self._spec.hours >> self._clock(now) // _HOUR & 1:
            if not (truncated or moved):
                now = self._at(self._date(now).toordinal(), self._clock(now) // _HOUR * _HOUR)
            moved = True
            now += _HOUR
            if self._clock(now) // _HOUR == 0:
                return now, True, True
        return now, moved, False

    def _minute(self, now: int, *, truncated: bool) -> tuple[int, bool, bool]:
        moved = False
        while not self._spec.minutes >> self._clock(now) // _MINUTE % 60 & 1:
            if not (truncated or moved):
                now -= now % _MINUTE
            moved = True
            now += _MINUTE
            if self._clock(now) // _MINUTE % 60 == 0:
                return now, True, True
        return now, moved, False

    # ── civil time ──

    def _offset(self, at: int) -> int:
        offset = (_EPOCH + timedelta(seconds=at)).astimezone(self._zone).utcoffset()
        assert offset is not None  # an aware time has one
        return offset.days * _DAY + offset.seconds

    def _date(self, at: int) -> date:
        return date.fromordinal((at + self._offset(at)) // _DAY + _EPOCH_ORDINAL)

    def _clock(self, at: int) -> int:
        """The time of day in seconds."""
        return (at + self._offset(at)) % _DAY

    def _at(self, ordinal: int, clock: int) -> int:
        """The instant of a civil time; for one that does not exist, or exists twice, what Go's time.Date takes."""
        civil = (ordinal - _EPOCH_ORDINAL) * _DAY + clock
        offset = self._offset(civil)
        return civil - self._offset(civil - offset) if offset else civil
