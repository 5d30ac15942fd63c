"""The stabilization windows of an HPA for people: remembered recommendations, equal neighbours merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kubetide.forecast.long_window import LONG
from kubetide.horizontal.decision import Verdict
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.memory import Recommendation
from kubetide.horizontal.rules.windows import down_window, full_share, holds_longer
from kubetide.horizontal.state import State
from kubetide.units.time import Duration, Instant, format_duration, format_rfc3339

UP: Final = "up"
DOWN: Final = "down"
LONG_DOWN: Final = "long"


class Remembered(msgspec.Struct, frozen=True):
    """Equal recommendations of consecutive ticks: replicas, first and last time."""

    replicas: int
    first: Instant
    last: Instant
    found: bool = False
    """Whether these are the replicas found at the start, which count as a recommendation."""

    def __str__(self) -> str:
        """Return the newest time first."""
        times = format_rfc3339(self.last)
        if self.first != self.last:
            times += f" back to {format_rfc3339(self.first)}"
        return f"{self.replicas} ({times}{', found at the start' if self.found else ''})"


class Window(msgspec.Struct, frozen=True):
    """One active stabilization window.

    Attributes:
        direction: ``up`` or ``down``, or ``long`` for the long scale-down window.
        length: How far it reaches back.
        text: Its direction, length and which recommendation of it holds.
        remembered: The recommendations inside of it before this tick's own, newest first.
    """

    direction: str
    length: Duration
    text: str
    remembered: tuple[Remembered, ...]


def windows_of(state: State, spec: Autoscaler, verdict: Verdict, now: Instant) -> tuple[Window, ...]:
    """Return the windows with the recommendations that ``stabilization`` reads in each."""
    known = state.recommendations.of(spec.key)
    found = 0 if verdict.first else _found_at_the_start(known)
    if verdict.first:
        known = [Recommendation(now, verdict.current)]
    period = state.settings.sync_period

    def window(direction: str, text: str, length: Duration, *, edge: bool = False) -> Window:
        oldest = now - length
        inside = [
            Remembered(old.replicas, Instant(old.at), Instant(old.at), found=slot == found)
            for slot, old in enumerate(known)
            if old.at > oldest or (edge and old.at == oldest)
        ]
        return Window(direction, length, text, _in_runs(inside, period))

    longer: tuple[Window, ...] = ()
    if holds_longer(state, spec):
        text = f"long scale-down window {format_duration(LONG)}: {full_share(spec):.2f} of the highest recommendation holds"
        longer = (window(LONG_DOWN, text, LONG, edge=True),)
    down = down_window(spec)
    if spec.up is None or spec.down is None:
        text = f"scale-down window {format_duration(down)} (the flag's): the highest recommendation holds"
        return (window(DOWN, text, down, edge=True), *longer)
    return (
        window(
            UP,
            f"scale-up window {format_duration(spec.up.window)}: the lowest recommendation holds",
            spec.up.window,
        ),
        window(DOWN, f"scale-down window {format_duration(down)}: the highest recommendation holds", down),
        *longer,
    )


def _found_at_the_start(known: Sequence[Recommendation]) -> int | None:
    """Return the slot of the replicas found at the start, while it is known.

    Only the first tick stores two recommendations of one time: what it found, then its proposal.
    """
    slots: dict[int, int] = {}
    for slot, old in enumerate(known):
        if old.at in slots:
            return slots[old.at]
        slots[old.at] = slot
    return None


def _in_runs(inside: Sequence[Remembered], period: Duration) -> tuple[Remembered, ...]:
    """Put equal recommendations of consecutive ticks together, newest first; a tick left out parts them.

    Args:
        inside: One each, in slot order.
        period: Time between two ticks.
    """
    runs: list[Remembered] = []
    # Of one time, what the first tick found comes before its proposal in the slots.
    slots = sorted(range(len(inside)), key=lambda slot: (inside[slot].last, slot), reverse=True)
    for one in (inside[slot] for slot in slots):
        newer = runs[-1] if runs else None
        # Half a period more than one lets a late tick pass, and a tick left out not.
        near = newer is not None and newer.first - one.last < period + period // 2
        if newer and near and newer.replicas == one.replicas and not one.found:
            runs[-1] = msgspec.structs.replace(newer, first=one.first)
        else:
            runs.append(one)
    return tuple(runs)
