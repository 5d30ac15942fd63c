"""How long the last machines of a group took, and when those that it was asked for are expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubetide.nodes.memory import Memory, TimeTaken
from kubetide.units.time import ZERO, Duration, Instant, after, format_duration, hours

_MOST_TIMES: Final = 10
_LONGEST: Final = hours(7 * 24)
"""How many times of a group count, and how much older than the last one they may be."""


def recent_times(times: Sequence[TimeTaken]) -> tuple[TimeTaken, ...]:
    """Return those of a group's times that still count: the last ten, without those of more than a week before the last.

    So one slow machine counts for a while only, in a group with many starts and in one with a start a week.
    """
    return tuple(one for one in times[-_MOST_TIMES:] if times[-1].at <= after(one.at, _LONGEST))


def slowest_of(times: Sequence[TimeTaken]) -> Duration:
    """Return the longest of the times; zero without any."""
    return max((one.took for one in times), default=ZERO)


def slowest_text(slowest: Duration, count: int) -> str:
    """Return how long the slowest of the last ``count`` machines took, in words."""
    took = "the one before took" if count == 1 else f"the slowest of the last {count} took"
    return f"{took} {format_duration(slowest)}"


def longest_join(memory: Memory, group: str) -> Duration | None:
    """Return the longest of the last times from an increase to its last node's joining; None if none was seen."""
    return max(memory.join_times.get(group, ()), default=None)


def longest_join_text(memory: Memory, group: str) -> str:
    """Return that time in words; of a group of which none was seen that it is not known."""
    longest = longest_join(memory, group)
    if longest is None:
        return "how long its nodes take was not seen yet"
    return slowest_text(longest, len(memory.join_times[group]))


def expected_arrival(memory: Memory, group: str) -> Instant | None:
    """Return when all nodes asked for have joined if it takes as long as the slowest of the last ones.

    None where nothing is asked for, or no joining was ever seen.
    """
    request, longest = memory.scale_up_requests.get(group), longest_join(memory, group)
    return None if request is None or longest is None else after(request.time, longest)
