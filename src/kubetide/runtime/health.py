"""The health of the loops, decided purely: for the kubelet, and with Cluster Autoscaler's own texts.

Two questions that are not the same. *Would a restart help?* (``/livez``): not while the API server cannot be
read, nor for errors that are its or the cloud's. *Does the loop get its work done?* (``/health-check``):
upstream's question, which an outage answers with no.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from kubetide.units.time import Duration, Instant, between, format_duration, minutes, whole_seconds

_MAX_INACTIVITY, _MAX_FAILING, _MAX_STARTUP = minutes(10), minutes(15), minutes(20)
_FEWEST_PERIODS = 3
"""A loop that is to tick seldom is given so many of its periods at least."""


@dataclass(frozen=True)
class Patience:
    """How long a loop may be silent; names and defaults are those of Cluster Autoscaler's flags.

    Attributes:
        max_inactivity: Between two beginnings of a tick (``--max-inactivity``).
        max_failing_time: Without a tick that ended well (``--max-failing-time``).
        max_startup_time: In place of both before the first such tick (``--max-startup-time``).
    """

    max_inactivity: Duration = _MAX_INACTIVITY
    max_failing_time: Duration = _MAX_FAILING
    max_startup_time: Duration = _MAX_STARTUP


class Activity(NamedTuple):
    """The last observed activity of a loop.

    Attributes:
        began: When its last tick began, or the loop itself, if it has begun none.
        well: When a tick last ended well; None before the first.
        excused: When a tick last ended with an error that is the API server's or the cloud's.
        failure: What the last failed tick failed by, its last line.
    """

    loop: str
    period: Duration
    began: Instant
    well: Instant | None = None
    excused: Instant | None = None
    failure: str = ""


def not_alive(loops: Iterable[Activity], now: Instant, *, since: Instant, patience: Patience) -> str:
    """Return the loop that a restart may help; empty for none.

    Args:
        since: What was before does not count: when the loops' turn came, or the API server was last out of reach.
    """
    for loop in loops:
        least = Duration(_FEWEST_PERIODS * loop.period)
        ended = max(since, loop.well or since, loop.excused or since)
        idle, failing = between(max(ended, loop.began), now), between(ended, now)
        if idle > max(_allowed(loop, patience.max_inactivity, patience), least):
            return f"the {loop.loop} loop has begun and ended no tick for {_said(idle)}"
        if failing > max(_allowed(loop, patience.max_failing_time, patience), least):
            why = f": {loop.failure}" if loop.failure else ""
            return f"the {loop.loop} loop has ended no tick well for {_said(failing)}{why}"
    return ""


def health_check(loops: Iterable[Activity], now: Instant, *, since: Instant, patience: Patience) -> str:
    """Return Cluster Autoscaler's ``/health-check`` text for an unhealthy loop; empty if all are healthy.

    Source: Cluster Autoscaler (metrics/liveness.go, core commit 6e285e0f4b4f).
    """
    for loop in loops:
        success = max(since, loop.well or since)
        activity = max(success, loop.began)
        idle, failing = between(activity, now), between(success, now)
        if idle > _allowed(loop, patience.max_inactivity, patience) or failing > _allowed(
            loop, patience.max_failing_time, patience
        ):
            return (
                f"Error: last activity more {format_duration(idle)} ago, "
                f"last success more than {format_duration(failing)} ago"
            )
    return ""


def _allowed(loop: Activity, usual: Duration, patience: Patience) -> Duration:
    return patience.max_startup_time if loop.well is None else usual


def _said(time: Duration) -> str:
    return format_duration(whole_seconds(time))
