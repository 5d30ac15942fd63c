"""From histograms to amounts: percentile, margin, confidence, minimum; for all containers at once.

Source: VPA 1.8, pkg/recommender/logic: target, lower and upper bound are each made by the same chain.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from kubetide.units.time import Duration
from kubetide.units.vectors import Float64Vector, Int64Vector
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.usage.aggregates import Aggregates
from kubetide.vertical.recommender.usage.buckets import CPU_BUCKETS, MAX_AMOUNT, MEMORY_BUCKETS, AmountBuckets
from kubetide.vertical.recommender.usage.cells import counted, summed
from kubetide.vertical.recommender.usage.histograms import NEVER

TARGET, LOWER, UPPER = range(3)
_AT_ONCE = 4096
"""Containers with several aggregates whose histograms are copied together."""
_NS_PER_MINUTE = 60 * 1_000_000_000


class Usage(msgspec.Struct, frozen=True, eq=False):
    """The facts about each container of each VPA.

    Attributes:
        cpu, memory: (3, containers) buckets of the percentiles of target, lower and upper bound; -1 without samples.
        first, last, count: (containers,) CPU samples; times in ns.
    """

    cpu: Int64Vector
    memory: Int64Vector
    first: Int64Vector
    last: Int64Vector
    count: Int64Vector


def percentiles(settings: Settings) -> tuple[Sequence[float], Sequence[float]]:
    """Return the percentiles of target, lower and upper bound for CPU and for memory."""
    return (
        (
            settings.target_cpu_percentile,
            settings.recommendation_lower_bound_cpu_percentile,
            settings.recommendation_upper_bound_cpu_percentile,
        ),
        (
            settings.target_memory_percentile,
            settings.recommendation_lower_bound_memory_percentile,
            settings.recommendation_upper_bound_memory_percentile,
        ),
    )


def usage_of(aggregates: Aggregates, rows: Sequence[tuple[int, ...]]) -> Usage:
    """Return the facts about each container; the rows of one container are summed."""
    both = percentiles(aggregates.settings)
    usage = Usage(
        np.empty((3, len(rows)), np.int64),
        np.empty((3, len(rows)), np.int64),
        *counted(aggregates, rows),
    )
    single = np.fromiter((one[0] if len(one) == 1 else -1 for one in rows), np.int64, len(rows))
    alone = np.flatnonzero(single >= 0)
    for into, histograms, shares in (
        (usage.cpu, aggregates.cpu, both[0]),
        (usage.memory, aggregates.memory, both[1]),
    ):
        into[:, alone] = histograms.percentiles(single[alone], shares)
    several = np.flatnonzero(single < 0)
    for begin in range(0, len(several), _AT_ONCE):
        cells = several[begin : begin + _AT_ONCE]
        sums = summed(aggregates, [rows[cell] for cell in cells.tolist()])
        every = np.arange(len(cells))
        usage.cpu[:, cells] = sums.cpu.percentiles(every, both[0])
        usage.memory[:, cells] = sums.memory.percentiles(every, both[1])
    return usage


def confidence(usage: Usage, interval: Duration) -> Float64Vector:
    """Return the days of samples, by time and by number; a day is the flag's interval."""
    times = usage.last.astype(np.float64) - usage.first.astype(np.float64)
    exact = (usage.last != NEVER) & (usage.first != NEVER)
    times[exact] = (usage.last[exact] - usage.first[exact]).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        lifespan = np.clip(times, -(2.0**63), 2.0**63) / float(interval)
        samples = usage.count.astype(np.float64) / (interval / _NS_PER_MINUTE)
    return np.minimum(lifespan, samples)


def amounts(buckets: NDArray[np.int64], which: AmountBuckets) -> Int64Vector:
    """Return the amount of each percentile; 0 for an empty histogram."""
    return np.where(buckets < 0, 0, which.ends[np.maximum(buckets, 0)])


def estimates(
    usage: Usage, resource: str, least: Int64Vector, settings: Settings
) -> tuple[Int64Vector, Int64Vector, Int64Vector]:
    """Return target, lower and upper bound of each container, in millicores or bytes.

    Args:
        resource: ``cpu`` or ``memory``.
        least: (containers,) the container's share of the pod's minimum.
    """
    _, wide = margined(usage, resource, settings)
    is_cpu = resource == "cpu"
    sure = confidence(
        usage, settings.confidence_interval_cpu if is_cpu else settings.confidence_interval_memory
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        below, above = 1.0 + 0.001 / sure, 1.0 + 1.0 / sure
        lower = scaled(wide[LOWER], 1.0 / (below * below))
        upper = scaled(wide[UPPER], above)
    return np.maximum(wide[TARGET], least), np.maximum(lower, least), np.maximum(upper, least)


def margined(usage: Usage, resource: str, settings: Settings) -> tuple[Int64Vector, Int64Vector]:
    """Return (3, containers): the amounts of the percentiles, without and with the safety margin."""
    buckets, which = (usage.cpu, CPU_BUCKETS) if resource == "cpu" else (usage.memory, MEMORY_BUCKETS)
    base = amounts(buckets, which)
    return base, base + scaled(base, np.float64(settings.recommendation_margin_fraction))


def least_amounts(settings: Settings, shares: Int64Vector) -> tuple[Int64Vector, Int64Vector]:
    """Return each container's share of the pod's minimum CPU and memory; ``shares`` is the pod's number of them."""
    cpu = _clipped(settings.pod_recommendation_min_cpu_millicores * 0.001 * 1000.0)
    memory = _clipped(settings.pod_recommendation_min_memory_mb * 1024 * 1024)
    fraction = 1.0 / np.maximum(shares, 1)
    return scaled(np.full(len(shares), cpu), fraction), scaled(np.full(len(shares), memory), fraction)


def scaled(amount: Int64Vector, factor: Float64Vector | np.float64) -> Int64Vector:
    """Return amounts times a factor, truncated to integers between 0 and the maximum; NaN becomes 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        product = amount.astype(np.float64) * factor
    product = np.where(np.isnan(product), 0.0, np.clip(product, 0.0, float(MAX_AMOUNT)))
    return product.astype(np.int64)


def _clipped(value: float) -> int:
    return int(min(max(value, 0.0), float(MAX_AMOUNT)))
