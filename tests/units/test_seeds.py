from __future__ import annotations

import re
import statistics
import uuid

from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.units import seeds

keys = st.lists(st.one_of(st.text(max_size=8), st.integers(-5, 5)), max_size=3)


def test_draws_are_pinned():
    """A draw is the same on every machine and in every version, or recorded seeds would not replay."""
    assert seeds.uuid_of(7, "pod", "web", 1) == "30e14943-d0e6-46ce-a6b2-e6c3c7dec032"
    assert seeds.name_suffix(7, "pod", "web", 1) == "spwpv"
    assert seeds.unit_interval(7, "pod") == 0.17543401649265855


@given(st.integers(), keys, keys)
@settings(max_examples=100)
def test_different_keys_draw_differently(seed, first, second):
    """Two lists of keys share a draw only when they are equal in value and type."""
    same = [(type(k), k) for k in first] == [(type(k), k) for k in second]
    assert (seeds.uuid_of(seed, *first) == seeds.uuid_of(seed, *second)) is same


def test_the_unit_interval_is_even():
    """Draws lie in [0, 1) and fill ten boxes evenly."""
    draws = [seeds.unit_interval(1, "box", i) for i in range(5000)]
    assert all(0.0 <= x < 1.0 for x in draws)
    boxes = [sum(1 for x in draws if int(x * 10) == box) for box in range(10)]
    assert min(boxes) > 420
    assert max(boxes) < 580


def test_uniform_and_normal_have_their_moments():
    """The shaped draws have the requested mean and deviation."""
    flat = [seeds.uniform(2, 10.0, 20.0, i) for i in range(3000)]
    bell = [seeds.normal(2, 100.0, 5.0, i) for i in range(3000)]
    assert min(flat) >= 10.0
    assert max(flat) < 20.0
    assert abs(statistics.fmean(bell) - 100.0) < 0.5
    assert abs(statistics.stdev(bell) - 5.0) < 0.3


def test_uuids_carry_version_and_variant():
    """Each UUID reads as a random one of RFC 9562."""
    for i in range(50):
        text = seeds.uuid_of(3, i)
        assert uuid.UUID(text).version == 4
        assert uuid.UUID(text).variant == uuid.RFC_4122
        assert str(uuid.UUID(text)) == text


def test_name_suffixes_use_kubernetes_alphabet():
    """A suffix is five characters without vowels and look-alikes."""
    assert all(re.fullmatch("[bcdfghjklmnpqrstvwxz2456789]{5}", seeds.name_suffix(4, i)) for i in range(200))
    assert len({seeds.name_suffix(4, i) for i in range(200)}) == 200
