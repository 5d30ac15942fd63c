"""Pods that run: which of them get their VPA's recommendation now, and how.

One loop over all VPA objects, as upstream's updater 1.8.1 does it:

1. Without a fresh lease of the admission controller nothing is done (``State.lease``).
2. Each VPA that updates pods controls those of its target (``controlled``, ``vertical.matching``).
3. Pods are grouped by the controller that replaces them; a group has a budget (``groups``).
4. Pods outside of the recommended bounds, killed for memory, or old and far from the target are queued, the most
   urgent first (``priority``).
5. They are evicted, or resized in place (``in_place``), one after the other within the rate limits (``memory``).

What comes of a command decides about the next, so a loop is a dialogue: ``deciding`` yields commands and is sent
outcomes. ``decide`` plays it to the end with a function that answers. A record of the outcomes plays it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubetide.units.time import Instant
from kubetide.vertical.updater.decision import Command, Outcome, Pause, Result
from kubetide.vertical.updater.loop import Loop, deciding, unboosting
from kubetide.vertical.updater.state import State

__all__ = ["Loop", "decide", "deciding", "play", "replay", "unboosting"]


def decide(
    state: State, now: Instant, answer: Callable[[Command], Outcome] | None = None
) -> tuple[list[Command], Result]:
    """Return the commands of one loop and what it came to.

    Args:
        answer: What comes of a command; None takes every command, at the time that it is due.
    """
    return play(deciding(state, now), answer or _taken)


def play(loop: Loop, answer: Callable[[Command], Outcome]) -> tuple[list[Command], Result]:
    """Play a loop to its end; return its commands and its result."""
    commands: list[Command] = []
    outcome: Outcome | None = None
    while True:
        try:
            command = next(loop) if outcome is None else loop.send(outcome)
        except StopIteration as end:
            result: Result = end.value
            return commands, result
        if isinstance(command, Pause):
            outcome = Outcome(Instant(0))
            continue
        commands.append(command)
        outcome = answer(command)


def replay(loop: Loop, outcomes: Iterable[Outcome]) -> tuple[list[Command], Result]:
    """Play a loop with recorded outcomes. Raises: StopIteration if they are too few."""
    recorded = iter(outcomes)
    return play(loop, lambda _: next(recorded))


def _taken(command: Command) -> Outcome:
    return Outcome(command.due)
