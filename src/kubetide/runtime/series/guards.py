"""``kubetide_*``: how often a guard intervened, and whether one holds anything now."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubetide.loop.wiring import RunningLoop
from kubetide.units.exposition import Registry


def show_holds(registry: Registry, loops: Sequence[RunningLoop]) -> None:
    """Add the series of what holds scale-downs, as of each loop's last tick."""
    holds = registry.gauge(
        "kubetide_scale_down_holds",
        "Reasons for which the last tick of the loop took nothing away: caches that are old or lost much.",
        ("loop",),
    )

    def collect() -> None:
        for entry, loop, _ in loops:
            holds.set(len(loop.holds), entry.name)

    registry.before_scrape(collect)


def show_dropped(registry: Registry, dropped: Callable[[], int]) -> None:
    """Add the series of decision records that could not be written."""
    count = registry.counter("kubetide_records_dropped_total", "Decision records that could not be written.")
    registry.before_scrape(lambda: count.set(dropped()))
