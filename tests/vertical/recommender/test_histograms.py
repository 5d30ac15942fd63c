"""Histograms in rows: what is not recorded of upstream, and powers as Go makes them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.vertical.recommender.running import START

from kubetide.units.time import hours
from kubetide.vertical.recommender.usage.buckets import CPU_BUCKETS
from kubetide.vertical.recommender.usage.histograms import Histograms
from kubetide.vertical.recommender.usage.powers import exp2, power

DAY = hours(24)
SAMPLES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 175), st.integers(0, 96)), max_size=60)


def walked(histograms, row, percentile):
    """The walk from the first bucket to the percentile, as upstream describes it."""
    low, high = int(histograms.low[row]), int(histograms.high[row])
    if histograms.weights[row, low] < histograms.buckets.epsilon:
        return -1
    total, bucket = 0.0, low
    while bucket < high:
        total += histograms.weights[row, bucket]
        if total >= percentile * histograms.total[row]:
            break
        bucket += 1
    return bucket


@given(SAMPLES)
def test_rows_together_are_rows_one_by_one(samples):
    """Samples of several rows at once leave the same bits as samples one after another, and percentiles are the walk's."""
    together = Histograms(CPU_BUCKETS.buckets, DAY, 6)
    single = Histograms(CPU_BUCKETS.buckets, DAY, 6)
    rows = np.array([row for row, _, _ in samples], np.int64)
    buckets = np.array([bucket for _, bucket, _ in samples], np.int64)
    at = np.array([hour * hours(1) for _, _, hour in samples], np.int64)
    together.add_many(rows, buckets, 0.1, at)
    for place in range(len(samples)):
        one = slice(place, place + 1)
        single.add(rows[one], buckets[one], 0.1, at[one])
    assert (together.weights == single.weights).all()
    assert (together.total == single.total).all()
    assert (together.low == single.low).all()
    assert (together.high == single.high).all()
    every = np.arange(6)
    found = together.percentiles(every, [0.0, 0.5, 0.9, 1.0])
    expected = [[walked(together, row, p) for row in every] for p in (0.0, 0.5, 0.9, 1.0)]
    assert found.tolist() == expected


def test_thousands_of_samples_leave_a_row_as_one_by_one_would():
    """Removing samples at once equals removing them one after another, up to the last digits."""
    rng = np.random.default_rng(4)
    buckets, zero = rng.integers(0, 176, 500), np.zeros(500, np.int64)
    one, other = (Histograms(CPU_BUCKETS.buckets, DAY, 1) for _ in range(2))
    for histograms in (one, other):
        histograms.add_many(zero, buckets, 1.0, zero)
    one.subtract_many(zero[:400], buckets[:400], 1.0, zero[:400])
    for place in range(400):
        other.subtract(zero[:1], buckets[place : place + 1], 1.0, zero[:1])
    assert one.weights == pytest.approx(other.weights)
    assert (one.low, one.high) == (other.low, other.high)


@given(
    half_life=st.sampled_from([1, 24, 25_000, 26_000, 87_600, 1_400_000, 2_562_047]),
    gap=st.integers(0, 300 * 24),
)
def test_a_sample_weighs_half_of_one_a_half_life_later(half_life, gap):
    """Half-lives of any length that the flag takes, also those with which nothing decays in practice."""
    found = Histograms(CPU_BUCKETS.buckets, hours(half_life), 1)
    row = np.zeros(1, np.int64)
    for bucket, at in ((10, START), (20, START + hours(gap))):
        found.add(row, np.array([bucket]), 1.0, np.array([at]))
    share = 2.0 ** -(gap / half_life)
    assert found.weights[0, 10] == pytest.approx(found.weights[0, 20] * share, rel=1e-9, abs=1e-9)
    assert abs(found.reference[0] - START - hours(gap)) <= 100 * hours(half_life)


@given(st.floats(-1000, 1000))
def test_powers_of_two_are_near_the_exact_ones(x):
    """Go's power of two lies within one unit in the last place of the C library's."""
    [found] = exp2(np.array([x]))
    assert math.isclose(found, math.exp2(x), rel_tol=4e-16)


def test_powers_at_the_ends():
    """Beyond the range of doubles a power is 0 or infinite; whole exponents are exact."""
    assert exp2(np.array([-1075.0, 1024.0, 3.0, 0.0])).tolist() == [0.0, math.inf, 8.0, 1.0]
    assert power(2.0, 10) == 1024.0
    assert power(1.05, 0) == 1.0
