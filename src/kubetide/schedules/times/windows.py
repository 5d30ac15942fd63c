"""Windows: rules with an end; all open windows count together."""

from __future__ import annotations

from typing import NamedTuple

from kubetide.schedules.tables import Limits, WindowState
from kubetide.schedules.times.plans import Entry, Plan
from kubetide.units.time import Instant, after

_PROBES = 400
"""So many ends are compared with starts to see whether they always come together."""


class Opening(NamedTuple):
    """Whether a window is open, since when, and when that changes."""

    active: bool
    since: Instant | None
    until: Instant | None


def opening(entry: Entry, now: Instant) -> Opening:
    """Return whether a window is open: its last start is later than its last end."""
    assert entry.calendar is not None
    assert entry.end is not None
    start, end = entry.calendar.last(now), entry.end.last(now)
    if start is not None and (end is None or start > end):
        return Opening(True, start, entry.end.next(now))
    return Opening(False, end, entry.calendar.next(now))


def refusal(entry: Entry, now: Instant) -> str:
    """Return why a window is impossible: it never begins, never ends, or begins whenever it ends; empty for none."""
    if entry.calendar is None or entry.end is None:
        return ""
    for calendar, side, text in (
        (entry.calendar, "start", entry.rule.schedule),
        (entry.end, "end", entry.rule.end),
    ):
        if calendar.next(now) is None:
            return f"{side} {text!r}: there is no such date"
    at = now
    for _ in range(_PROBES):
        start, end = entry.calendar.next(at), entry.end.next(at)
        if start is None or end is None or start != end:
            return ""
        at = start
    return f"start {entry.rule.schedule!r} and end {entry.rule.end!r} come together each time"


def refused_windows(plan: Plan, start: Instant) -> Plan:
    """Return a plan with a warning for each impossible window."""
    found = tuple(text for entry in plan.entries if (text := refusal(entry, start)))
    return plan._replace(warnings=(*plan.warnings, *found))


class WindowDemand(NamedTuple):
    """The demand of a table's windows.

    Attributes:
        replicas: None where the size stays as it is.
        active: Whether a window is open.
        last_active: When one was open last, as far as is known.
        next: When to look again.
    """

    replicas: int | None
    active: bool
    last_active: Instant | None
    next: Instant | None

    @property
    def window_state(self) -> WindowState:
        """Return the state of the windows."""
        if self.active:
            return "open"
        return "closed" if self.replicas is not None else "rests"


def within(size: int, limits: Limits) -> int:
    """Return what an open window that asks for a size gets: at least one pod."""
    return min(max(size, limits.minimum, 1), limits.maximum)


def demand(plan: Plan, limits: Limits, now: Instant) -> WindowDemand:
    """Return the combined size of the open windows: the largest, within the limits.

    Source: KEDA: the HPA takes the largest metric and keeps at least one pod; with no window open it is
    ``idleReplicaCount`` or ``minReplicaCount``, and none or idle only once the cooldown has passed, which is
    the initial one where no window has been open since the object was created.
    """
    found = [(entry, opening(entry, now)) for entry in plan.entries if entry.calendar and entry.end]
    changes = [one.until for _, one in found if one.until is not None]
    following = min(changes, default=None)
    if limits.paused:
        return WindowDemand(limits.paused_at, False, None, following)
    sizes = [entry.rule.size or 0 for entry, one in found if one.active]
    if sizes:
        size = within(max(sizes), limits)
        opened = max(one.since for _, one in found if one.active and one.since is not None)
        return WindowDemand(size, True, opened, following)
    ended = max((one.since for _, one in found if one.since is not None), default=None)
    size = limits.minimum if limits.idle is None else limits.idle
    if size == 0 or limits.idle is not None:
        if ended is not None and ended > limits.created:
            rest = after(ended, limits.cooldown)
        else:
            rest = after(limits.created, limits.initial_cooldown)
        if now < rest:
            return WindowDemand(None, False, ended, rest if following is None else min(rest, following))
    return WindowDemand(size, False, ended, following)
