"""``kubetide_cache_*``: whether the caches can be read, and their age; the clock skew."""

from __future__ import annotations

from collections.abc import Callable

from kubetide.ports.clock import Clock
from kubetide.units.exposition import Registry
from kubetide.units.time import Duration, between, to_seconds
from kubetide.watching import Caches


def show_caches(registry: Registry, caches: Caches, clock: Clock) -> None:
    """Add the series; a cache that has not synced has no age."""
    ages = registry.gauge(
        "kubetide_cache_age_seconds",
        "Time since the API server last said anything of the resource, a bookmark too.",
        ("resource",),
    )
    failures = registry.gauge(
        "kubetide_cache_failures",
        "Lists and watches of the resource that failed in a row; 0 while it can be read.",
        ("resource",),
    )
    unread = registry.gauge(
        "kubetide_cache_unread_objects",
        "Objects of the resource that cannot be read, as their fields have other types; the log names each.",
        ("resource",),
    )

    def collect() -> None:
        now = clock.now()
        for informer in caches.all:
            failures.set(informer.failures, informer.kind.resource)
            unread.set(len(informer.unread), informer.kind.resource)
            if informer.last_received is not None:
                ages.set(to_seconds(between(informer.last_received, now)), informer.kind.resource)

    registry.before_scrape(collect)


def show_skew(registry: Registry, ahead: Callable[[], Duration]) -> None:
    """Add the series; ``ahead`` returns how far our clock is ahead of the API server's."""
    skew = registry.gauge(
        "kubetide_clock_skew_seconds",
        "How far this process's clock is ahead of the API server's at the least; negative where it is behind.",
    )
    registry.before_scrape(lambda: skew.set(to_seconds(ahead())))
