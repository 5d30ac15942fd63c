"""Containers of live pods: the aggregate of each, and its window of memory peaks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubetide.units.vectors import Int64Vector
from kubetide.vertical.recommender.usage.aggregates import Aggregates
from kubetide.vertical.recommender.usage.buckets import MAX_AMOUNT, MEMORY_BUCKETS, MIN_SAMPLE_WEIGHT
from kubetide.vertical.recommender.usage.histograms import NEVER, first_of_each

_TURNS = 64
"""So many containers of one aggregate are taken one after another; more of them at once."""


class Containers:
    """Rows of containers; pods hold the row numbers.

    Attributes:
        aggregate: (capacity,) row of the aggregate; -1 while it has none, -2 for a free row.
        last_cpu, last_memory: (capacity,) time of the last sample, ns; NEVER before the first.
        window_end: (capacity,) end of the window of memory peaks, ns; NEVER before the first sample.
        peak, oom_peak: (capacity,) greatest usage in the window, and what OOMs made of it, bytes.
        oom_samples: Row and need in bytes of each OOM that counted in the last pass.
    """

    def __init__(self) -> None:
        self.aggregate = np.empty(0, np.int64)
        self.last_cpu = np.empty(0, np.int64)
        self.last_memory = np.empty(0, np.int64)
        self.window_end = np.empty(0, np.int64)
        self.peak = np.empty(0, np.int64)
        self.oom_peak = np.empty(0, np.int64)
        self.oom_samples: list[tuple[int, int]] = []
        self._free: list[int] = []

    def add(self, aggregate: int) -> int:
        """Return the row of a new container."""
        if not self._free:
            self._grow()
        row = self._free.pop()
        self.aggregate[row] = aggregate
        self.last_cpu[row] = self.last_memory[row] = self.window_end[row] = NEVER
        self.peak[row] = self.oom_peak[row] = 0
        return row

    def drop(self, row: int) -> None:
        """Free the row of a container for reuse."""
        self.aggregate[row] = -2
        self._free.append(row)

    def orphan(self, aggregates: Sequence[int]) -> None:
        """Note that aggregates were dropped; the next sample creates them again."""
        self.aggregate[np.isin(self.aggregate, np.array(aggregates, np.int64))] = -1

    def _grow(self) -> None:
        old = len(self.aggregate)
        more = max(64, old // 4)
        never, zero = np.full(more, NEVER, np.int64), np.zeros(more, np.int64)
        self.aggregate = np.concatenate([self.aggregate, np.full(more, -2, np.int64)])
        self.last_cpu = np.concatenate([self.last_cpu, never])
        self.last_memory = np.concatenate([self.last_memory, never])
        self.window_end = np.concatenate([self.window_end, never])
        self.peak = np.concatenate([self.peak, zero])
        self.oom_peak = np.concatenate([self.oom_peak, zero])
        self._free += range(old + more - 1, old - 1, -1)

    # ── samples ──

    def add_cpu(
        self, aggregates: Aggregates, rows: Int64Vector, amounts: Int64Vector, at: Int64Vector
    ) -> None:
        """Add one CPU sample per distinct container; negative and outdated ones are dropped."""
        good = (amounts >= 0) & (at > self.last_cpu[rows])
        rows, amounts, at = rows[good], amounts[good], at[good]
        self.last_cpu[rows] = at
        aggregates.add_cpu(self.aggregate[rows], amounts, at, MIN_SAMPLE_WEIGHT)

    def add_memory(
        self,
        aggregates: Aggregates,
        rows: Int64Vector,
        amounts: Int64Vector,
        at: Int64Vector,
        *,
        oom: bool = False,
    ) -> None:
        """Add one memory sample per distinct container; negative and outdated ones are dropped.

        A sample counts only as the peak of its window, at the window's end. A peak of 0 is never
        replaced within its window. What follows an OOM is never dropped.

        Source: VPA 1.8, model.ContainerState.
        """
        if not oom:
            good = (amounts >= 0) & (at >= self.last_memory[rows])
            rows, amounts, at = rows[good], amounts[good], at[good]
        if len(rows) == 0:
            return
        self.last_memory[rows] = at
        fresh = self.window_end[rows] == NEVER
        end = np.where(fresh, at, self.window_end[rows])
        before = np.maximum(self.peak[rows], self.oom_peak[rows])
        inside = at < end
        replaced = inside & (before != 0) & (amounts > before)
        moved = ~inside
        interval = aggregates.interval[self.aggregate[rows]]
        end = np.where(moved, end + ((at - end) // interval + 1) * interval, end)
        self.window_end[rows] = end
        self.peak[rows[moved]] = 0
        self.oom_peak[rows[moved]] = 0
        added = moved | replaced
        peaks = self.oom_peak if oom else self.peak
        peaks[rows[added]] = amounts[added]
        self._change(
            aggregates, rows[added], np.where(replaced, before, -1)[added], amounts[added], end[added]
        )

    def _change(
        self, aggregates: Aggregates, rows: Int64Vector, old: Int64Vector, new: Int64Vector, at: Int64Vector
    ) -> None:
        """Replace old peaks (-1 for none) by new ones in the aggregates."""
        into = self.aggregate[rows]
        buckets = MEMORY_BUCKETS.find(new)
        if (old < 0).all():
            aggregates.memory.add_many(into, buckets, 1.0, at)
            return
        old_buckets = MEMORY_BUCKETS.find(np.maximum(old, 0))
        for _ in range(_TURNS):
            now = first_of_each(into)
            taken = now[old[now] >= 0]
            aggregates.memory.subtract(into[taken], old_buckets[taken], 1.0, at[taken])
            aggregates.memory.add(into[now], buckets[now], 1.0, at[now])
            if len(now) == len(into):
                return
            left = np.ones(len(into), np.bool_)
            left[now] = False
            into, old, at = into[left], old[left], at[left]
            buckets, old_buckets = buckets[left], old_buckets[left]
        held = old >= 0
        aggregates.memory.subtract_many(into[held], old_buckets[held], 1.0, at[held])
        aggregates.memory.add_many(into, buckets, 1.0, at)

    def add_oom(self, aggregates: Aggregates, row: int, memory: int, at: int, *, by_window: bool) -> bool:
        """Add the memory need that an OOM shows; return False for one that is too old.

        The need is the greater of request and peak, raised by the bump. Earlier OOMs of the window do
        not count, so that they do not pile up.
        """
        aggregate = int(self.aggregate[row])
        last = int((self.window_end if by_window else self.last_memory)[row])
        if last != NEVER and at < last - int(aggregates.interval[aggregate]):
            return False
        used = min(max(memory, int(self.peak[row]), 0), 1 << 62)
        scaled = int(min(used * float(aggregates.bump_ratio[aggregate]), MAX_AMOUNT))
        needed = max(used + int(aggregates.bump_least[aggregate]), scaled)
        self.oom_samples.append((row, needed))
        one = np.array([row])
        self.add_memory(aggregates, one, np.array([needed]), np.array([at]), oom=True)
        return True

    def current_peaks(self, rows: Int64Vector) -> Int64Vector:
        """Return the peak of each container's window, OOMs included."""
        return np.maximum(self.peak[rows], self.oom_peak[rows])
