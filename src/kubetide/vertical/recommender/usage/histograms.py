"""Decaying histograms, one row each of a matrix: samples in, percentiles out, for all rows at once.

A sample at time t has the weight ``w * 2 ** ((t - reference) / half-life)``, so that new samples weigh
more and old weights need no change. Sums are made in upstream's order, sample by sample and bucket by
bucket, so that weights agree to the last digit. Where rows must be distinct, the caller sees to it.

Source: VPA 1.8, pkg/recommender/util histogram and decaying histogram.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kubetide.units.time import Duration, parse_rfc3339
from kubetide.units.vectors import BoolVector, Float64Vector, Int64Vector
from kubetide.vertical.recommender.usage.buckets import Buckets
from kubetide.vertical.recommender.usage.powers import exp2

NEVER = -(1 << 63)
"""The reference of a histogram that has had no sample (year 1 does not fit into int64 nanoseconds)."""

MOST_HALF_LIVES = 100
"""A sample so long after the reference moves it."""

_YEAR_ONE = parse_rfc3339("0001-01-01T00:00:00Z")
_MOST = (1 << 63) - 1
_TURNS = 64
"""Samples of one row that are taken out one after another; more of them go at once."""
_BLOCK = 256
"""Rows whose running sums are made together: they stay in the processor's cache."""


class Histograms:
    """Rows of one kind of histogram.

    Attributes:
        buckets: The same for all rows.
        half_life: None for histograms that do not decay.
        weights: (capacity, buckets) float64.
        total, low, high, reference: (capacity,) sum of weights; first and last bucket that is not empty
            (last and first bucket where all are); time at which a sample has its own weight, ns.
        stray: (capacity,) whether a bucket may have a weight but too little to count as not empty.
    """

    def __init__(self, buckets: Buckets, half_life: Duration | None, rows: int = 0) -> None:
        self.buckets = buckets
        self.half_life = half_life
        self.weights = np.zeros((rows, buckets.count))
        self.total = np.zeros(rows)
        self.low = np.full(rows, buckets.count - 1, np.int16)
        self.high = np.zeros(rows, np.int16)
        self.reference = np.full(rows, NEVER, np.int64)
        self.stray = np.zeros(rows, np.bool_)

    def grow(self, rows: int) -> None:
        """Grow to so many rows; new ones are empty."""
        more = Histograms(self.buckets, self.half_life, rows - len(self.total))
        # Zeros that nobody has touched take no memory: the old rows are copied, the new ones left alone.
        weights = np.zeros((rows, self.buckets.count))
        weights[: len(self.total)] = self.weights
        self.weights = weights
        self.total = np.concatenate([self.total, more.total])
        self.low = np.concatenate([self.low, more.low])
        self.high = np.concatenate([self.high, more.high])
        self.reference = np.concatenate([self.reference, more.reference])
        self.stray = np.concatenate([self.stray, more.stray])

    def clear(self, rows: Int64Vector) -> None:
        """Empty the rows."""
        self.weights[rows] = 0.0
        self.total[rows] = 0.0
        self.low[rows] = self.buckets.count - 1
        self.high[rows] = 0
        self.reference[rows] = NEVER
        self.stray[rows] = False

    def is_empty(self, rows: Int64Vector) -> BoolVector:
        empty: BoolVector = self.weights[rows, self.low[rows]] < self.buckets.epsilon
        return empty

    # ── samples ──

    def add(self, rows: Int64Vector, buckets: Int64Vector, weight: float, at: Int64Vector) -> None:
        """Add one sample per distinct row."""
        self._added(rows, buckets, weight * self._factors(rows, at))

    def add_many(self, rows: Int64Vector, buckets: Int64Vector, weight: float, at: Int64Vector) -> None:
        """Add samples in order; a row may have several."""
        if len(rows) == 0:
            return
        first = first_of_each(rows)
        self.add(rows[first], buckets[first], weight, at[first])
        rest = np.ones(len(rows), np.bool_)
        rest[first] = False
        rows, buckets, at = rows[rest], buckets[rest], at[rest]
        if len(rows) == 0:
            return
        if self._is_far(rows, at).any():
            self.add_many(rows, buckets, weight, at)
            return
        added = weight * self._factors(rows, at)
        flat = self.weights.reshape(-1)
        np.add.at(flat, rows * self.buckets.count + buckets, added)
        np.add.at(self.total, rows, added)
        self._widen(rows, buckets)

    def subtract(self, rows: Int64Vector, buckets: Int64Vector, weight: float, at: Int64Vector) -> None:
        """Remove one sample per distinct row; weights below epsilon become 0."""
        gone = weight * self._factors(rows, at)
        epsilon = self.buckets.epsilon
        total = self.total[rows] - gone
        self.total[rows] = np.where(total < epsilon, 0.0, total)
        left = self.weights[rows, buckets] - gone
        self.weights[rows, buckets] = np.where(left < epsilon, 0.0, left)
        self._trim(rows)

    def subtract_many(self, rows: Int64Vector, buckets: Int64Vector, weight: float, at: Int64Vector) -> None:
        """Remove samples in order; several of one row are removed at once."""
        while len(rows):
            first = first_of_each(rows)
            self.subtract(rows[first], buckets[first], weight, at[first])
            rest = np.ones(len(rows), np.bool_)
            rest[first] = False
            rows, buckets, at = rows[rest], buckets[rest], at[rest]
            if len(rows) > len(first) * _TURNS and not self._is_far(rows, at).any():
                self._subtract_at_once(rows, buckets, weight * self._factors(rows, at))
                return

    def _subtract_at_once(self, rows: Int64Vector, buckets: Int64Vector, weights: Float64Vector) -> None:
        epsilon = self.buckets.epsilon
        np.subtract.at(self.total, rows, weights)
        np.subtract.at(self.weights.reshape(-1), rows * self.buckets.count + buckets, weights)
        touched = np.unique(rows)
        self.total[touched] = np.where(self.total[touched] < epsilon, 0.0, self.total[touched])
        left = self.weights[rows, buckets]
        self.weights[rows, buckets] = np.where(left < epsilon, 0.0, left)
        self._trim(touched)

    def _added(self, rows: Int64Vector, buckets: Int64Vector, weights: Float64Vector) -> None:
        flat = self.weights.reshape(-1)
        places = rows * self.buckets.count + buckets
        flat[places] += weights
        self.total[rows] += weights
        self._widen(rows, buckets)

    def _widen(self, rows: Int64Vector, buckets: Int64Vector) -> None:
        """Move the first and last bucket out to those that are no longer empty."""
        big = self.weights.reshape(-1)[rows * self.buckets.count + buckets] >= self.buckets.epsilon
        if not big.all():
            self.stray[rows[~big]] = True
            rows, buckets = rows[big], buckets[big]
        narrow = buckets.astype(np.int16)
        if (narrow < self.low[rows]).any():
            np.minimum.at(self.low, rows, narrow)
        if (narrow > self.high[rows]).any():
            np.maximum.at(self.high, rows, narrow)

    def _trim(self, rows: Int64Vector) -> None:
        """Move the first and last bucket in over those that have become empty."""
        epsilon, last = self.buckets.epsilon, self.buckets.count - 1
        low, high = self.low[rows], self.high[rows]
        loose = (self.weights[rows, low] < epsilon) | (self.weights[rows, high] < epsilon)
        if not loose.any():
            return
        rows, low, high = rows[loose], low[loose], high[loose]
        filled = self.weights[rows] >= epsilon
        numbers = np.arange(last + 1)
        # A first bucket only moves up, a last one only down.
        up = filled & (numbers >= low[:, None])
        down = filled & (numbers <= high[:, None])
        self.low[rows] = np.where(up.any(axis=1), up.argmax(axis=1), last)
        self.high[rows] = np.where(down.any(axis=1), last - down[:, ::-1].argmax(axis=1), 0)

    # ── decay ──

    def _is_far(self, rows: Int64Vector, at: Int64Vector) -> BoolVector:
        """Return whether a sample lies so far after the reference that it moves."""
        if self.half_life is None:
            return np.zeros(len(rows), np.bool_)
        reference = self.reference[rows]
        far: BoolVector = (reference == NEVER) | (at - _reach(self.half_life) > reference)
        return far

    def _factors(self, rows: Int64Vector, at: Int64Vector) -> Float64Vector:
        """Return the decay factor of a sample of each row, whose reference is moved where it lies too far back."""
        if self.half_life is None:
            return np.ones(len(rows))
        far = self._is_far(rows, at)
        if far.any():
            self.shift(rows[far], at[far])
        return exp2((at - self.reference[rows]).astype(np.float64) / float(self.half_life))

    def shift(self, rows: Int64Vector, to: Int64Vector) -> None:
        """Move the references of distinct rows to the multiples of the half-life next to ``to``."""
        assert self.half_life is not None
        half_life = self.half_life
        offset = -_YEAR_ONE % half_life
        # Twice a half-life of more than 146 years does not fit into int64.
        rest = ((to % half_life).astype(np.uint64) + np.uint64(offset)) % np.uint64(half_life)
        down = rest + rest < np.uint64(half_life)
        rest = rest.astype(np.int64)
        rounded = np.where(down, to - rest, to + (half_life - rest))
        old = self.reference[rows]
        # Go's differences of times end at 292 years.
        difference = np.where(old == NEVER, float(NEVER), (old - rounded).astype(np.float64))
        exponent = np.floor(difference / float(half_life) + 0.5)
        factor = np.ldexp(np.ones(len(rows)), np.clip(exponent, -3000, 3000).astype(np.int32))
        self.reference[rows] = rounded
        used = self.total[rows] != 0
        if used.any():
            self._scale(rows[used], factor[used])

    def _scale(self, rows: Int64Vector, factor: Float64Vector) -> None:
        inside = self._inside(rows)
        self.weights[rows] = np.where(inside, self.weights[rows] * factor[:, None], self.weights[rows])
        self.total[rows] *= factor
        self.stray[rows] = True
        self._trim(rows)

    def _inside(self, rows: Int64Vector) -> NDArray[np.bool_]:
        numbers = np.arange(self.buckets.count)
        inside: NDArray[np.bool_] = (numbers >= self.low[rows][:, None]) & (
            numbers <= self.high[rows][:, None]
        )
        return inside

    # ── merging ──

    def merge(self, rows: Int64Vector, other: Histograms, others: Int64Vector) -> None:
        """Add histograms of the same kind to distinct rows; the older reference of two moves, in either."""
        if self.half_life is not None:
            mine, theirs = self.reference[rows], other.reference[others]
            behind, ahead = mine < theirs, mine > theirs
            if behind.any():
                self.shift(rows[behind], theirs[behind])
            if ahead.any():
                # Several rows may take from one of the others; it moves once, to the first of them.
                for row, to in zip(others[ahead], mine[ahead], strict=True):
                    if other.reference[row] < to:
                        other.shift(np.array([row]), np.array([to]))
        added = other.weights[others]
        if other.stray[others].any():
            added = np.where(other._inside(others), added, 0.0)
            self.stray[rows] |= other.stray[others]
        self.weights[rows] += added
        self.total[rows] += other.total[others]
        self.low[rows] = np.minimum(self.low[rows], other.low[others])
        self.high[rows] = np.maximum(self.high[rows], other.high[others])

    # ── reading ──

    def percentiles(self, rows: Int64Vector, shares: Sequence[float]) -> Int64Vector:
        """Return (percentiles, rows): the bucket of each percentile; -1 for an empty histogram."""
        found = np.empty((len(shares), len(rows)), np.int64)
        for begin in range(0, len(rows), _BLOCK):
            block = rows[begin : begin + _BLOCK]
            self._percentiles(block, shares, found[:, begin : begin + _BLOCK])
        return found

    def _percentiles(self, rows: Int64Vector, shares: Sequence[float], into: Int64Vector) -> None:
        low, high = self.low[rows], self.high[rows]
        first, last = int(low.min()), int(high.max()) + 1
        if first >= last:
            first = 0
        part = self.weights[rows, first:last]
        empty = self.weights[rows, low] < self.buckets.epsilon
        if self.stray[rows].any():
            part[np.arange(first, last) < low[:, None]] = 0.0
        running = part.cumsum(axis=1)
        total = self.total[rows]
        for index, percentile in enumerate(shares):
            reached = running >= (percentile * total)[:, None]
            at = np.where(reached[:, -1], reached.argmax(axis=1) + first, high)
            into[index] = np.where(empty, -1, np.clip(at, low, high))

    def values(self, rows: Int64Vector, shares: Sequence[float]) -> NDArray[np.float64]:
        """Return (percentiles, rows): the value of each percentile: the end of its bucket, 0 for an empty histogram."""
        found = self.percentiles(rows, shares)
        return np.where(found < 0, 0.0, self.buckets.ends[np.maximum(found, 0)])

    # ── checkpoints ──

    def shares(self, rows: Int64Vector) -> Int64Vector:
        """Return (rows, buckets): the weights as shares of 10,000 of the greatest."""
        weights = np.where(self._inside(rows), self.weights[rows], 0.0)
        greatest = weights.max(axis=1, initial=0.0)
        ratio = 10_000 / np.where(greatest > 0, greatest, np.inf)
        return np.floor(weights * ratio[:, None] + 0.5).astype(np.int64)

    def check(self, buckets: Sequence[int], total: float) -> None:
        """Raise CheckpointError, with upstream's text, for invalid checkpoint data."""
        count = self.buckets.count
        if total < 0 or not math.isfinite(total):
            raise CheckpointError(f"cannot load checkpoint with negative weight {total:g}")
        if buckets and max(buckets) >= count:
            raise CheckpointError(
                f"checkpoint has bucket {max(buckets)} that is exceeding histogram buckets {count}"
            )
        if buckets and min(buckets) < 0:
            raise CheckpointError(f"checkpoint has a negative bucket {min(buckets)}")

    def load(
        self,
        rows: Int64Vector,
        lengths: Int64Vector,
        buckets: Int64Vector,
        shares: Int64Vector,
        totals: Float64Vector,
        references: Int64Vector,
    ) -> None:
        """Add checked checkpoint data to distinct rows.

        Args:
            rows: (checkpoints,).
            lengths: (checkpoints,) how many buckets each has.
            buckets, shares: (all their buckets,).
            totals: (checkpoints,) sums of weights.
            references: (checkpoints,) ns; NEVER for none.
        """
        if self.half_life is not None:
            self.reference[rows] = references
        number = np.repeat(np.arange(len(rows)), lengths)
        sums = np.zeros(len(rows), np.int64)
        np.add.at(sums, number, shares)
        some = sums > 0
        ratio = totals / np.where(some, sums, 1)
        added = shares * ratio[number]
        np.add.at(self.weights.reshape(-1), rows[number] * self.buckets.count + buckets, added)
        rows = rows[some]
        self.total[rows] += totals[some]
        self.low[rows], self.high[rows] = 0, self.buckets.count - 1
        self.stray[rows] = True
        for begin in range(0, len(rows), _BLOCK):
            self._trim(rows[begin : begin + _BLOCK])


class CheckpointError(ValueError):
    """A checkpoint that cannot be loaded, with upstream's text."""


def _reach(half_life: Duration) -> int:
    """Return how long after the reference a sample leaves it in place, ns.

    Beyond 2.9 years of half-life upstream's product passes int64 and comes out negative or too small: then the
    reference moves earlier, which changes no share.
    """
    wrapped = (MOST_HALF_LIVES * half_life + (1 << 63)) % (1 << 64) - (1 << 63)
    return max(wrapped, -(1 << 62))


def first_of_each(rows: Int64Vector) -> Int64Vector:
    """Return the positions at which each row occurs first, in order of position."""
    _, first = np.unique(rows, return_index=True)
    return np.sort(first)
