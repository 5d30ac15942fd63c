"""When the updater may change pods: windows of the week (an option beyond upstream).

Such as ``Mon-Fri 01:00-05:00; Sat,Sun 00:00-24:00 Europe/Berlin``: parts with days and times of day, and at the end the
time zone (UTC without one). A part without days holds every day; one that ends before it begins runs past midnight.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple

from kubetide.units.cron import CronError, zone_of
from kubetide.units.time import Instant

ANNOTATION: Final = "vertical.kubetide.io/update-windows"

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIMES = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})", re.ASCII)
_DAY = 24 * 60


class WindowsError(ValueError):
    """Windows that cannot be read; the text says what was expected."""


class Window(NamedTuple):
    """Days of the week (Monday is 0) and minutes of the day; an ``end`` beyond a day is on the next one."""

    days: frozenset[int]
    begin: int
    end: int

    def holds(self, day: int, minute: int) -> bool:
        """Return whether a minute of a day of the week is in it."""
        before = (day - 1) % 7
        return (day in self.days and self.begin <= minute < self.end) or (
            before in self.days and minute + _DAY < self.end
        )


class Windows(NamedTuple):
    """When something may be done."""

    windows: tuple[Window, ...]
    zone: tzinfo

    def hold(self, now: Instant) -> bool:
        """Return whether a time is in one of them."""
        local = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=now // 1_000_000_000)).astimezone(
            self.zone
        )
        minute = local.hour * 60 + local.minute
        return any(one.holds(local.weekday(), minute) for one in self.windows)


@lru_cache(maxsize=1 << 10)
def read_windows(text: str) -> Windows:
    """Return the windows of a text. Raises: WindowsError."""
    words = text.split()
    where: tzinfo = UTC
    if words and not _TIMES.fullmatch(words[-1].rstrip(";")):
        try:
            where = zone_of(words[-1])
        except CronError as error:
            raise WindowsError(
                f"{text!r} ends neither with times (01:00-05:00) nor with a time zone"
            ) from error
        text = text.rstrip().removesuffix(words[-1])
    parts = [part.strip() for part in text.split(";") if part.strip()]
    if not parts:
        raise WindowsError("there is no window; write some, such as Mon-Fri 01:00-05:00")
    return Windows(tuple(map(_window, parts)), where)


def _window(part: str) -> Window:
    *days, times = part.split()
    match = _TIMES.fullmatch(times)
    if match is None or len(days) > 1:
        raise WindowsError(f"{part!r} is not a window such as Mon-Fri 01:00-05:00")
    hour, minute, to_hour, to_minute = map(int, match.groups())
    begin, end = hour * 60 + minute, to_hour * 60 + to_minute
    if max(minute, to_minute) > 59 or begin >= _DAY or end > _DAY or begin == end:
        raise WindowsError(f"{times!r} is not a stretch of a day, 00:00 to 24:00")
    return Window(_days(days[0]) if days else frozenset(range(7)), begin, end if end > begin else end + _DAY)


def _days(text: str) -> frozenset[int]:
    found: set[int] = set()
    for one in text.split(","):
        first, dash, last = one.lower().partition("-")
        ends = (first, last) if dash else (first, first)
        if not set(ends) <= set(_DAYS):
            raise WindowsError(
                f"{one!r} is no day of the week or range of them; write {', '.join(_DAYS).title()}"
            )
        begin, end = map(_DAYS.index, ends)
        found.update((begin + step) % 7 for step in range((end - begin) % 7 + 1))
    return frozenset(found)
