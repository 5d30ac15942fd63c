"""When a schedule is due: wall-clock times resolved on each local day.

A time that a change of the clocks leaves out that day is due at the first instant after the gap; a time
that comes twice is due at its first occurrence. So a daily rule is due once on every date, and what holds
at an instant depends on that instant alone, not on when one asked before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec

from kubetide.units.cron import Spec
from kubetide.units.time import Duration, Instant

_NS = 1_000_000_000
_DAY = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_YEARS = 9
"""A schedule with no day in so many years has none: 29 February may be eight years away."""

_SEARCHED = _YEARS * 366 * _DAY * _NS
"""So far, in nanoseconds, an interval is searched for a date that is not excluded."""

Off = Callable[[date], bool]
"""Returns whether nothing is due on a local date."""


class Calendar(Protocol):
    """Due times of something; instants are whole seconds in nanoseconds."""

    def last(self, now: Instant, off: Off | None = None) -> Instant | None:
        """Return when it was last due, at ``now`` or before; None for never."""
        ...

    def next(self, now: Instant, off: Off | None = None) -> Instant | None:
        """Return when it is due next, after ``now``; None for never."""
        ...

    def day_of(self, due: Instant) -> date:
        """Return the local date that an activation belongs to."""
        ...


@dataclass(frozen=True, slots=True)
class Days:
    """The activations of a cron schedule in a time zone."""

    spec: Spec
    zone: tzinfo
    _around: list[tuple[Instant, Instant]] = field(default_factory=list, compare=False, repr=False)
    """Two neighbours, the last that were found: between them nothing has to be searched."""

    def last(self, now: Instant, off: Off | None = None) -> Instant | None:
        """Return when it was last due, at ``now`` or before; None for never."""
        if off is not None:
            return self._last(now, off)
        known = self._neighbours(now)
        return self._last(now, None) if known is None else known[0]

    def next(self, now: Instant, off: Off | None = None) -> Instant | None:
        """Return when it is due next, after ``now``; None for never."""
        if off is not None:
            return self._next(now, off)
        known = self._neighbours(now)
        return self._next(now, None) if known is None else known[1]

    def _neighbours(self, now: Instant) -> tuple[Instant, Instant] | None:
        """Return the activations around an instant; None where there is none before it or after it."""
        if self._around and self._around[0][0] <= now < self._around[0][1]:
            return self._around[0]
        last, following = self._last(now, None), self._next(now, None)
        if last is None or following is None:
            return None
        self._around[:] = [(last, following)]
        return last, following

    def _last(self, now: Instant, off: Off | None) -> Instant | None:
        at = now // _NS
        first = local_date(at, self.zone) + timedelta(days=1)
        for day in self._days(first, -1):
            if off is None or not off(day):
                found = _last_of(_times(self.spec, self.zone, day), at)
                if found is not None:
                    return Instant(found * _NS)
        return None

    def _next(self, now: Instant, off: Off | None) -> Instant | None:
        at = now // _NS
        first = local_date(at, self.zone) - timedelta(days=1)
        for day in self._days(first, 1):
            if off is None or not off(day):
                found = _first_after(_times(self.spec, self.zone, day), at)
                if found is not None:
                    return Instant(found * _NS)
        return None

    def day_of(self, due: Instant) -> date:
        """Return the local date that an activation belongs to."""
        # Where the clocks skip midnight or a whole day, the activation may stand on the next date.
        at = due // _NS
        day = local_date(at, self.zone)
        for one in (day, day - timedelta(days=1)):
            if self.spec.on(one) and at in _times(self.spec, self.zone, one):
                return one
        return day

    def _days(self, first: date, step: int) -> Iterator[date]:
        """Yield the matching dates from ``first`` on, backwards where ``step`` is -1."""
        day = first
        last_year = first.year + step * _YEARS
        while (day.year - last_year) * step <= 0:
            if not self.spec.months >> day.month & 1:
                day = _other_month(day, step)
                continue
            if self.spec.on(day):
                yield day
            day += timedelta(days=step)


class Every(msgspec.Struct, frozen=True):
    """Activations at a fixed interval, counted from ``start``, which is none itself."""

    start: Instant
    pause: Duration
    zone: tzinfo = UTC

    def last(self, now: Instant, off: Off | None = None) -> Instant | None:
        """Return when it was last due, at ``now`` or before; None for never."""
        begin = self.start - self.start % _NS
        count = (now - begin) // self.pause
        while count > 0:
            due = Instant(begin + count * self.pause)
            day = self.day_of(due)
            if off is None or not off(day):
                return due
            if due < now - _SEARCHED:
                break
            # The rest of an excluded date is passed over at once.
            count = min(count - 1, (resolve(self.zone, day, 0) * _NS - begin - 1) // self.pause)
        return None

    def next(self, now: Instant, off: Off | None = None) -> Instant | None:
        """Return when it is due next, after ``now``; None if all of the next years are excluded."""
        begin = self.start - self.start % _NS
        count = max((now - begin) // self.pause + 1, 1)
        limit = now + _SEARCHED
        while begin + count * self.pause <= limit:
            due = Instant(begin + count * self.pause)
            day = self.day_of(due)
            if off is None or not off(day):
                return due
            midnight = resolve(self.zone, day + timedelta(days=1), 0) * _NS
            count = max(count + 1, -((begin - midnight) // self.pause))
        return None

    def day_of(self, due: Instant) -> date:
        """Return the local date that an activation belongs to."""
        return local_date(due // _NS, self.zone)


class Once(msgspec.Struct, frozen=True):
    """One activation at a wall-clock time of one date."""

    day: date
    clock: int
    zone: tzinfo = UTC

    def last(self, now: Instant, off: Off | None = None) -> Instant | None:
        """Return when it was last due, at ``now`` or before; None for never."""
        due = self._due(off)
        return due if due is not None and due <= now else None

    def next(self, now: Instant, off: Off | None = None) -> Instant | None:
        """Return when it is due next, after ``now``; None for never."""
        due = self._due(off)
        return due if due is not None and due > now else None

    def day_of(self, due: Instant) -> date:  # noqa: ARG002  one shape for all calendars
        """Return the local date that an activation belongs to."""
        return self.day

    def _due(self, off: Off | None) -> Instant | None:
        if off is not None and off(self.day):
            return None
        return Instant(resolve(self.zone, self.day, self.clock) * _NS)


def local_date(at: int, zone: tzinfo) -> date:
    """Return the date in a zone; ``at`` is seconds since 1970."""
    return date.fromordinal((at + _offset(at, zone)) // _DAY + _EPOCH_ORDINAL)


def resolve(zone: tzinfo, day: date, clock: int) -> int:
    """Return the instant of a wall-clock time, in seconds since 1970.

    One that does not exist is the first instant after the gap, one that exists twice its first occurrence.

    Args:
        clock: The time of day in seconds.
    """
    civil = (day.toordinal() - _EPOCH_ORDINAL) * _DAY + clock
    local = datetime(day.year, day.month, day.day, tzinfo=zone) + timedelta(seconds=clock)
    early = civil - _seconds(local.replace(fold=0).utcoffset())
    if early + _offset(early, zone) == civil:
        return early
    # In the gap: read with the offset after it, the time lies before the gap; with that before, after it.
    low, high = civil - _seconds(local.replace(fold=1).utcoffset()), early
    low, high = min(low, high), max(low, high)
    before = _offset(low, zone)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(middle, zone) == before:
            low = middle
        else:
            high = middle
    return high


def _offset(at: int, zone: tzinfo) -> int:
    if zone is UTC:
        return 0
    return _seconds((_EPOCH + timedelta(seconds=at)).astimezone(zone).utcoffset())


def _seconds(offset: timedelta | None) -> int:
    assert offset is not None  # an aware time has one
    return offset.days * _DAY + offset.seconds


@lru_cache(maxsize=1 << 15)
def _clocks(seconds: int, minutes: int, hours: int) -> tuple[int, ...]:
    """Return the times of day in seconds, ascending."""
    return tuple(
        hour * 3600 + minute * 60 + second
        for hour in _set(hours, 24)
        for minute in _set(minutes, 60)
        for second in _set(seconds, 60)
    )


def _set(bits: int, size: int) -> list[int]:
    return [value for value in range(size) if bits >> value & 1]


class _Times(NamedTuple):
    """The activations of one date: times of day, and their shift to instants; None where the clocks change."""

    clocks: tuple[int, ...]
    shift: int | None
    zone: tzinfo
    day: date

    def instant(self, clock: int) -> int:
        """Return the instant of a time of day, in seconds since 1970: never earlier than that of an earlier one."""
        return resolve(self.zone, self.day, clock) if self.shift is None else clock + self.shift

    def after(self, at: int) -> int:
        """Return the place of the first activation after an instant."""
        if self.shift is None:
            # Few are looked at: each second of a day has one, and each of them takes a while to resolve.
            return bisect_right(self.clocks, at, key=self.instant)
        return bisect_right(self.clocks, at - self.shift)

    def __contains__(self, at: object) -> bool:
        return isinstance(at, int) and _last_of(self, at) == at


def _last_of(times: _Times, at: int) -> int | None:
    index = times.after(at)
    return times.instant(times.clocks[index - 1]) if index else None


def _first_after(times: _Times, at: int) -> int | None:
    index = times.after(at)
    return times.instant(times.clocks[index]) if index < len(times.clocks) else None


def _times(spec: Spec, zone: tzinfo, day: date) -> _Times:
    clocks = _clocks(spec.seconds, spec.minutes, spec.hours)
    return _Times(clocks, _plain_shift(zone, day.toordinal()), zone, day)


@lru_cache(maxsize=1 << 14)
def _plain_shift(zone: tzinfo, ordinal: int) -> int | None:
    """Return the instant of a date's midnight where the clocks do not change around it, else None."""
    midnight = (ordinal - _EPOCH_ORDINAL) * _DAY
    early, late = _offset(midnight - 16 * 3600, zone), _offset(midnight + 40 * 3600, zone)
    return midnight - early if early == late == _offset(midnight - early, zone) else None


def _other_month(day: date, step: int) -> date:
    """Return the first day of the next month, or the last one of the month before."""
    if step > 0:
        return date(day.year + day.month // 12, day.month % 12 + 1, 1)
    return day.replace(day=1) - timedelta(days=1)
