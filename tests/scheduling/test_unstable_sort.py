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


@pytest.mark.parametrize(
    ("scores", "order"),
    [
        ("0203333103033032102", "12 14 9 4 5 6 3 11 18 1 15 7 16 10 13 0 8 17 2"),
        ("1230032113331113001", "9 2 15 11 5 10 1 6 12 8 7 0 13 14 18 4 3 16 17"),
        ("0000001001111111001", "9 18 15 14 13 12 6 11 10 4 8 7 5 0 3 2 16 17 1"),
        (
            "0121111120201002122201020211201112202112102002122202110",
            (
                "23 51 2 49 48 47 45 42 8 39 10 36 34 33 28 15 25 17 18 19 38 6 53 52 1 16 26 27 3 4 30 31 32 5 12 46"
                " 21 37 7 40 35 50 0 43 44 11 41 29 9 14 13 24 20 22 54"
            ),
        ),
        (
            "0110101100010110011100100100000011111101100111010110000",
            (
                "40 7 2 50 4 49 6 47 45 44 43 11 39 13 14 37 36 17 18 19 35 34 22 33 32 25 1 8 3 29 30 42 24 23 21 20"
                " 16 15 38 26 12 31 0 10 9 41 27 28 48 5 46 51 52 53 54"
            ),
        ),
        (
            (
                "213004024041003301043040140443010412314042410441204040413432343221110424323240043121330044"
                "222434300230024323203214030121133301334213423231101111034122"
            ),
            (
                "46 45 61 71 57 5 54 132 33 52 10 128 76 50 146 79 8 69 88 19 42 89 22 113 40 25 93 27 28 38 95"
                " 104 15 100 96 105 36 94 29 107 110 115 20 121 85 122 123 84 80 14 126 127 131 74 134 72 56 136"
                " 58 145 60 2 62 73 103 118 111 108 149 63 70 59 106 0 148 75 64 129 7 99 48 133 82 135 35 92 91"
                " 90 41 117 112 140 141 43 37 47 34 83 81 142 143 138 130 137 31 147 55 11 67 125 24 66 1 17 120"
                " 119 65 30 116 21 114 18 23 16 124 109 13 12 26 102 101 9 32 98 6 97 4 39 87 139 86 44 49 78"
                " 144 3 77 51 53 68"
            ),
        ),
    ],
)
def test_leaves_equal_elements_where_go_does(scores, order):
    """The orders are those of Go 1.26's ``sort.Slice``."""
    assert descending_order([int(one) for one in scores]) == [int(one) for one in order.split()]
