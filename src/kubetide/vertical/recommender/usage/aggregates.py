"""Aggregates: containers with the same namespace, name and pod labels.

An aggregate is a row of the two matrices of histograms and of the columns here. Checkpoints that were
loaded at the start are rows too.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kubetide.objects.vpa import ContainerPolicy
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.time import Instant
from kubetide.units.vectors import BoolVector, Int64Vector
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.usage.buckets import CPU_BUCKETS, MAX_AMOUNT, MEMORY_BUCKETS
from kubetide.vertical.recommender.usage.histograms import NEVER, Histograms

_NS = 1_000_000_000
_LONGEST_S = 100 * 365 * 24 * 3600
_MOST = 1 << 62


class Aggregates:
    """Rows with their histograms; groups and VPAs hold the row numbers.

    Attributes:
        first, last: (capacity,) time of the first and the last CPU sample, ns; NEVER without one.
        count: (capacity,) CPU samples.
        created: (capacity,) when the row was made, ns.
        bump_ratio, bump_least: (capacity,) how much an OOM adds at least: a factor, and bytes.
        interval, interval_count: (capacity,) window of memory peaks, ns, and how many of them are of interest.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.cpu = Histograms(CPU_BUCKETS.buckets, settings.cpu_histogram_decay_half_life)
        self.memory = Histograms(MEMORY_BUCKETS.buckets, settings.memory_histogram_decay_half_life)
        self.first = np.empty(0, np.int64)
        self.last = np.empty(0, np.int64)
        self.count = np.empty(0, np.int64)
        self.created = np.empty(0, np.int64)
        self.bump_ratio = np.empty(0)
        self.bump_least = np.empty(0, np.int64)
        self.interval = np.empty(0, np.int64)
        self.interval_count = np.empty(0, np.int64)
        self._free: list[int] = []

    def add(self, now: Instant) -> int:
        """Return the row of a new aggregate."""
        if not self._free:
            self._grow()
        row = self._free.pop()
        settings = self.settings
        self.created[row] = now
        self.bump_ratio[row] = settings.oom_bump_up_ratio
        self.bump_least[row] = int(min(max(settings.oom_min_bump_up_bytes, 0), MAX_AMOUNT))
        self.interval[row] = settings.memory_aggregation_interval
        self.interval_count[row] = settings.memory_aggregation_interval_count
        return row

    def drop(self, rows: Iterable[int]) -> None:
        """Free rows for reuse."""
        gone = np.array(list(rows), np.int64)
        self._free += gone.tolist()
        self.cpu.clear(gone)
        self.memory.clear(gone)
        self.first[gone] = self.last[gone] = NEVER
        self.count[gone] = 0

    def _grow(self) -> None:
        old = len(self.count)
        size = max(64, old + old // 2)
        for histograms in (self.cpu, self.memory):
            histograms.grow(size)
        more = size - old
        never, zero = np.full(more, NEVER, np.int64), np.zeros(more, np.int64)
        self.first = np.concatenate([self.first, never])
        self.last = np.concatenate([self.last, never])
        self.count = np.concatenate([self.count, zero])
        self.created = np.concatenate([self.created, never])
        self.bump_ratio = np.concatenate([self.bump_ratio, np.ones(more)])
        self.bump_least = np.concatenate([self.bump_least, zero])
        self.interval = np.concatenate([self.interval, zero])
        self.interval_count = np.concatenate([self.interval_count, zero])
        self._free += range(size - 1, old - 1, -1)

    def follow(self, row: int, policy: ContainerPolicy | None) -> None:
        """Apply the OOM and window settings of a VPA's policy; absent ones stay unchanged, windows end at 100 years.

        Source: VPA 1.8, feature gate PerVPAConfig.
        """
        if policy is None or not self.settings.per_vpa_config:
            return
        if (ratio := _number(policy.oom_bump_up_ratio)) is not None:
            self.bump_ratio[row] = float(max(min(ratio.exact_milli(), _MOST), -_MOST)) / 1000.0
        if (least := _number(policy.oom_min_bump_up)) is not None:
            self.bump_least[row] = min(max(least.value(), 0), MAX_AMOUNT)
        if policy.memory_aggregation_interval_seconds is not None:
            self.interval[row] = min(max(policy.memory_aggregation_interval_seconds, 1), _LONGEST_S) * _NS
        if policy.memory_aggregation_interval_count is not None:
            self.interval_count[row] = max(min(policy.memory_aggregation_interval_count, _MOST), -_MOST)

    def add_cpu(self, rows: Int64Vector, amounts: Int64Vector, at: Int64Vector, weight: float) -> None:
        """Add CPU samples in order; only CPU samples count as samples of the aggregate."""
        self.cpu.add_many(rows, CPU_BUCKETS.find(amounts), weight, at)
        np.add.at(self.count, rows, 1)
        np.maximum.at(self.last, rows, at)
        # NEVER is the least number there is, so a first sample needs another way.
        first = np.where(self.first == NEVER, (1 << 63) - 1, self.first)
        np.minimum.at(first, rows, at)
        self.first[rows] = first[rows]

    def expired(self, now: Instant) -> BoolVector:
        """Return (capacity,): whether the last sample is older than all windows together."""
        since = np.where(self.count > 0, self.last, self.created).astype(np.float64)
        length = self.interval.astype(np.float64) * self.interval_count
        gone: BoolVector = float(now) >= since + length
        return gone


def _number(value: str | float | None) -> Quantity | None:
    if value is None:
        return None
    try:
        return Quantity.parse(value)
    except QuantityError:
        return None
