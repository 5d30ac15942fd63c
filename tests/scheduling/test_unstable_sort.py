"""Go's sort: sorted, and equal elements where Go leaves them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.scheduling.estimator.unstable_sort import _Sorting, descending_order


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=120), st.sampled_from((0, 1, 7)))
def test_sorts_whatever_the_path(scores, bad_pivots):
    """The indexes are a permutation with falling scores, by quicksort and by heap."""
    sorting = _Sorting(scores)
    sorting.sort(0, len(scores), bad_pivots)
    assert sorted(sorting.order) == list(range(len(scores)))
    assert [scores[index] for index in sorting.order] == sorted(scores, reverse=True)


@pytest.mark.parametrize(
    "scores",
    [
        list(range(100)),
        list(range(100, 0, -1)),
        [*range(60, 0, -1), 99, *range(40, 0, -1)],
        [index % 7 for index in range(300)],
        [*range(50), *range(50, 0, -1)],
    ],
)
def test_sorts_patterns(scores):
    """Rising, falling, nearly sorted and repeating input comes out sorted."""
    assert [scores[index] for index in descending_order(scores)] == sorted(scores, reverse=True)


def test_up_to_twelve_is_stable():
    """Twelve equal elements stay in order."""
    assert descending_order([1.0] * 12) == list(range(12))
