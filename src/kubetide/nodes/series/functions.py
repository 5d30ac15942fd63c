"""``cluster_autoscaler_function_*``: how long the parts of a tick take.

Source: Cluster Autoscaler (core commit 6e285e0f4b4f, July 2026); component-base v0.36 gives the quantiles.
"""

from __future__ import annotations

from kubetide.ports.clock import Clock
from kubetide.units.exposition import Registry, exponential_range
from kubetide.units.time import Duration, hours, to_seconds

PREFIX = "cluster_autoscaler_function_"


class FunctionSeries:
    """The durations by function, as a histogram and as quantiles of the last hour."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._durations = registry.histogram(
            f"{PREFIX}duration_seconds",
            "Time that a part took.",
            ("function",),
            buckets=exponential_range(0.1, 1800.0, 150),
        )
        self._quantiles = registry.summary(
            f"{PREFIX}duration_quantile_seconds",
            "Quantiles of the time that a part took, of the last hour.",
            ("function",),
            window=hours(1),
            elapsed=clock.monotonic,
        )

    def took(self, function: str, duration: Duration) -> None:
        """Count one run of a part."""
        self._durations.observe(to_seconds(duration), function)
        self._quantiles.observe(to_seconds(duration), function)
