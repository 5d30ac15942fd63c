"""``kubetide_cache_*``: whether the caches can be read, and how old they are."""

from __future__ import annotations

from kubetide.ports.clock import Clock
from kubetide.units.exposition import Registry
from kubetide.units.time import between, to_seconds
from kubetide.watching import Caches


def show_caches(registry: Registry, caches: Caches, clock: Clock) -> None:
    """Adds the series; a cache without a first list yet has no age."""
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

    def collect() -> None:
        now = clock.now()
        for informer in caches.all:
            failures.set(informer.failures, informer.kind.resource)
            if informer.last_heard is not None:
                ages.set(to_seconds(between(informer.last_heard, now)), informer.kind.resource)

    registry.before_scrape(collect)
