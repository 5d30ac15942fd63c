"""``kubetide_objects_not_understood``: how many objects the node loop cannot read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubetide.units.exposition import Registry


def show_not_understood(registry: Registry, current: Callable[[], Mapping[str, int]]) -> None:
    """Add the series of objects that the node loop cannot understand, by resource."""
    objects = registry.gauge(
        "kubetide_objects_not_understood",
        "Objects of which the node loop passes over what it cannot read; an event on each says why.",
        ("resource",),
    )

    def collect() -> None:
        for resource, number in current().items():
            objects.set(number, resource)

    registry.before_scrape(collect)
