"""Cron triggers beside others: whether a window is open, its metric, and when that changes.

Source: KEDA 2.21, pkg/scalers/cron_scaler: a target of 1, and a value of ``desiredReplicas`` in the window and of 0
outside. The windows are those of the loop ``schedules``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.triggers import Trigger
from kubetide.ports.clock import Clock
from kubetide.schedules.kinds.keda_cron import window_of
from kubetide.schedules.times.windows import Opening, opening
from kubetide.units.time import Duration, Instant, after

_MOST: Final = 2**63 - 1
_MOST_WINDOWS: Final = 20
"""Of one object; more are not looked for ahead."""


def opening_of(source: Source, trigger: Trigger, now: Instant) -> Opening:
    """Return whether the window of a cron trigger is open, and until when."""
    assert trigger.window is not None
    return opening(window_of(trigger.window, source.created).entry, now)


def next_change(source: Source, now: Instant) -> Instant | None:
    """Return when the next window of an object opens or closes; None for never."""
    found = [opening_of(source, one, now).until for one in source.triggers if one.window is not None]
    return min((one for one in found if one is not None), default=None)


def coming_demands(source: Source, now: Instant, ahead: Duration) -> list[tuple[Trigger, Instant, int]]:
    """Return the next window to open, and those that open within ``ahead`` of it and ask for more than the one before.

    Each with the time, and the replicas that all windows open then ask for.
    """
    found: list[tuple[Trigger, Instant, int]] = []
    at, before = now, 0
    for _ in range(_MOST_WINDOWS):
        one = _next_demand(source, at)
        if one is None or (found and one[1] > after(found[0][1], ahead)):
            break
        if not found or one[2] > before:
            found.append(one)
        _, at, before = one
    return found


def _next_demand(source: Source, now: Instant) -> tuple[Trigger, Instant, int] | None:
    """Return the next window to open, when, and the replicas that all windows open then ask for; None for none."""
    windows = [one for one in source.triggers if one.window is not None]
    coming = []
    for one in windows:
        found = opening_of(source, one, now)
        if not found.active and found.until is not None:
            coming.append((found.until, one.place, one))
    if not coming:
        return None
    due, _, first = min(coming, key=lambda one: one[:2])
    sizes = [
        one.window.size or 0
        for one in windows
        if one.window is not None and opening_of(source, one, due).active
    ]
    return first, due, min(max([*sizes, source.least]), source.most)


class CronScaler:
    """Answers for cron triggers by the clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def is_active(self, source: Source, trigger: Trigger) -> bool:
        """Return whether the window is open."""
        return opening_of(source, trigger, self._clock.now()).active

    async def metric_specs(self, source: Source, trigger: Trigger) -> tuple[tuple[str, int], ...]:
        """Return the metric of the window: its target is 1."""
        del source
        assert trigger.window is not None
        return ((trigger.window.name.removeprefix(f"s{trigger.place}-"), 1000),)

    async def metrics(self, source: Source, trigger: Trigger, name: str) -> list[int]:
        """Return the replicas of the open window, in thousandths; 0 where it is closed."""
        del name
        assert trigger.window is not None
        size = trigger.window.size or 0
        return [min(1000 * size, _MOST) if await self.is_active(source, trigger) else 0]

    async def keep(self, addresses: Collection[str]) -> None:
        """Do nothing: there are no connections."""

    async def close(self) -> None:
        """Do nothing: there are no connections."""
