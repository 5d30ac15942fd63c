"""``kubetide_*``: how often a guard had to step in, and whether one holds something back now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kubetide.horizontal.controller import HorizontalController
from kubetide.units.exposition import Registry


def show_sources(registry: Registry, controller: HorizontalController) -> None:
    """Adds the series of the guards around the metric sources."""
    bugs = registry.counter(
        "kubetide_metric_source_failures_total",
        "Questions to a metric source that ended in an error which such a source must not raise.",
        ("source",),
    )
    left = registry.gauge(
        "kubetide_metric_source_left_alone",
        "Whether the source is not asked for a while, as it did not answer several times: 1 or 0.",
        ("source",),
    )

    def collect() -> None:
        for source in controller.sources:
            bugs.set(source.failures, source.name)
            left.set(source.is_left_alone, source.name)

    registry.before_scrape(collect)


def show_holds(registry: Registry, loops: Sequence[tuple[str, Callable[[], Sequence[str]]]]) -> None:
    """Adds the series of what holds scale-downs; of each loop its name, and its holds as of the last tick."""
    holds = registry.gauge(
        "kubetide_scale_down_holds",
        "Reasons for which the last tick of the loop took nothing away: caches that are old or lost much.",
        ("loop",),
    )

    def collect() -> None:
        for name, current in loops:
            holds.set(len(current()), name)

    registry.before_scrape(collect)


def show_not_understood(registry: Registry, current: Callable[[], Mapping[str, int]]) -> None:
    """Adds the series of objects that the node loop cannot understand, by resource."""
    objects = registry.gauge(
        "kubetide_objects_not_understood",
        "Objects of which the node loop passes over what it cannot read; an event on each says why.",
        ("resource",),
    )

    def collect() -> None:
        for resource, number in current().items():
            objects.set(number, resource)

    registry.before_scrape(collect)


def show_dropped(registry: Registry, dropped: Callable[[], int]) -> None:
    """Adds the series of decision records that could not be written."""
    count = registry.counter("kubetide_records_dropped_total", "Decision records that could not be written.")
    registry.before_scrape(lambda: count.set(dropped()))
