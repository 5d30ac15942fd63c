"""Buckets of a histogram: their bounds, and the bucket of a value.

Source: VPA 1.8 histogram options: linear, and exponential with
``start(n) = first * (ratio ** n - 1) / (ratio - 1)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from kubetide.units.vectors import Float64Vector, Int64Vector
from kubetide.vertical.recommender.usage.powers import power

MAX_AMOUNT = 10**14
"""The greatest amount of a resource, in millicores or bytes."""

MIN_SAMPLE_WEIGHT = 0.1
EPSILON = 0.001 * MIN_SAMPLE_WEIGHT
"""A bucket with less weight counts as empty."""


class BucketError(ValueError):
    """Invalid options of a histogram, or a bucket that does not exist."""


@dataclass(frozen=True, eq=False)
class Buckets:
    """The buckets of a kind of histogram.

    Attributes:
        starts: (buckets,) float64 lower bounds, the first is 0.
        ratio: By which one bucket is wider than the one before; 1 for a linear histogram.
        width: Of the first bucket.
        epsilon: A bucket with less weight counts as empty.
    """

    starts: Float64Vector
    ratio: float
    width: float
    epsilon: float
    ends: Float64Vector = field(init=False)

    def __post_init__(self) -> None:
        # The last bucket has no end; what falls into it counts as its start.
        object.__setattr__(self, "ends", np.append(self.starts[1:], self.starts[-1]))

    @property
    def count(self) -> int:
        return len(self.starts)

    @staticmethod
    def linear(*, most: float, width: float, epsilon: float) -> Buckets:
        """Return buckets of one width up to ``most``. Raises: BucketError."""
        if most <= 0 or width <= 0 or epsilon <= 0:
            raise BucketError("maxValue and bucketSize must both be positive")
        count = math.ceil(most / width) + 1
        return Buckets((np.arange(count) * width).astype(np.float64), 1.0, width, epsilon)

    @staticmethod
    def exponential(*, most: float, width: float, ratio: float, epsilon: float) -> Buckets:
        """Return buckets each ``ratio`` times as wide as the one before, up to ``most``. Raises: BucketError."""
        if most <= 0 or width <= 0 or epsilon <= 0 or ratio <= 1:
            raise BucketError("maxValue, firstBucketSize and epsilon must be > 0.0, ratio must be > 1.0")
        count = math.ceil(_log(most * (ratio - 1) / width + 1, ratio)) + 1
        starts = [0.0, *(width * (power(ratio, n) - 1) / (ratio - 1) for n in range(1, count))]
        return Buckets(np.array(starts), ratio, width, epsilon)

    def find(self, value: float) -> int:
        """Return the bucket of a value; values outside belong to the first or last one."""
        if self.ratio == 1:
            found = math.trunc(min(value / self.width, self.count))
        elif value < self.width:
            found = 0
        else:
            found = math.trunc(_log(value * (self.ratio - 1) / self.width + 1, self.ratio))
        return min(max(found, 0), self.count - 1)

    def start(self, bucket: int) -> float:
        """Return the lower bound of a bucket. Raises: BucketError."""
        if not 0 <= bucket < self.count:
            raise BucketError(f"index {bucket} out of range [0..{self.count - 1}]")
        return float(self.starts[bucket])


@dataclass(frozen=True, eq=False)
class AmountBuckets:
    """Buckets of a resource whose amounts are whole numbers.

    Attributes:
        buckets: In the unit of the histogram (cores, bytes).
        firsts: (buckets,) int64, the smallest amount of each bucket.
        ends: (buckets,) int64, the amount that a percentile gives that stops in the bucket.
    """

    buckets: Buckets
    firsts: Int64Vector
    ends: Int64Vector

    def find(self, amounts: Int64Vector) -> Int64Vector:
        """Return the bucket of each amount; a bound is an exact number, so no logarithm is needed."""
        return (np.searchsorted(self.firsts, amounts, side="right") - 1).astype(np.int64)


def _amounts(most: float, width: Fraction, unit: int, below: tuple[int, ...] = ()) -> AmountBuckets:
    """Return the buckets of a resource; ``below`` are those whose exact bound still falls into the bucket before."""
    ratio = Fraction(105, 100)
    buckets = Buckets.exponential(most=most, width=float(width), ratio=float(ratio), epsilon=EPSILON)
    bounds = [unit * width * (ratio**n - 1) / (ratio - 1) for n in range(buckets.count)]
    firsts = np.array([math.ceil(bound) + (n in below) for n, bound in enumerate(bounds)], np.int64)
    ends = np.minimum(np.trunc(buckets.ends * unit), MAX_AMOUNT).astype(np.int64)
    return AmountBuckets(buckets, firsts, ends)


def _log(x: float, base: float) -> float:
    return math.log(x) / math.log(base)


CPU_BUCKETS = _amounts(1000.0, Fraction(1, 100), 1000)
"""Up to 1,000 cores; amounts are millicores."""
MEMORY_BUCKETS = _amounts(1e12, Fraction(10**7), 1, below=(2, 3))
"""Up to 1 TB; amounts are bytes. Upstream's logarithm of the whole bounds 20,500,000 and 31,525,000 is a little small."""
