"""Marks in words: what a person reads of one decision, in a line or in a few."""

from __future__ import annotations

from kubetide.simulate.outcome.table import printable
from kubetide.simulate.outcome.timeline import Mark
from kubetide.units.time import Instant, format_rfc3339

ARROWS = {1: "▲", 0: "◆", -1: "▼"}
"""More, neither, less."""


def direction(mark: Mark) -> int:
    """Return 1 where the decision adds pods or nodes, -1 where it takes some away, else 0."""
    return (mark.change > 0) - (mark.change < 0)


def why_lines(mark: Mark) -> tuple[str, ...]:
    """Return the reasons, a line each."""
    return tuple(printable(line) for line in mark.why)


def time_of_day(at: Instant) -> str:
    """Write the time of day, UTC: ``12:01:15``."""
    return format_rfc3339(at)[11:19]


def decision_line(mark: Mark) -> str:
    """Return the decision as one line: time, loop, what was done, and why."""
    why = "; ".join(why_lines(mark))
    done = f"{time_of_day(mark.at)} {mark.loop:<10} {printable(mark.title)}"
    return f"{done} because {why}" if why else done
