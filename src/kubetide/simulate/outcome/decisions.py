"""Decisions as text for people, in one line or a few."""

from __future__ import annotations

from kubetide.simulate.outcome.table import printable
from kubetide.simulate.outcome.timeline import Mark
from kubetide.units.time import Instant, format_rfc3339

ARROWS = {1: "▲", 0: "◆", -1: "▼"}
"""More, neither, less."""


def direction(mark: Mark) -> int:
    """Return 1 if the decision adds pods or nodes, -1 if it removes some, else 0."""
    return (mark.change > 0) - (mark.change < 0)


def why_lines(mark: Mark) -> tuple[str, ...]:
    """Return the reasons, one line each."""
    return tuple(printable(line) for line in mark.why)


def time_of_day(at: Instant) -> str:
    """Return the time of day, UTC: ``12:01:15``."""
    return format_rfc3339(at)[11:19]


def decision_line(mark: Mark) -> str:
    """Return the decision as one line: time, loop, action, and reason."""
    why = "; ".join(why_lines(mark))
    done = f"{time_of_day(mark.at)} {mark.loop:<10} {printable(mark.title)}"
    return f"{done} because {why}" if why else done
