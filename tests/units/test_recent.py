"""A table of recent keys goes on to serve those that come again, and stays small."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubetide.units.recent import Recent


@given(st.integers(1, 6), st.lists(st.integers(0, 20), max_size=80))
def test_the_last_keys_are_there_and_few_others(size, keys):
    """As many of the most recent keys as the size are always there; never more than twice as many."""
    table = Recent(size)
    for number, key in enumerate(keys):
        if table.get(key) is None:
            table.put(key, str(key))
        assert len(table) <= 2 * size
        last = list(dict.fromkeys(reversed(keys[: number + 1])))[:size]
        assert {one: table.get(one) for one in reversed(last)} == {one: str(one) for one in last}


def test_as_many_keys_as_fit_may_come_in_turns():
    """Cycling over all keys finds each, where a table that is emptied when full would find none."""
    table = Recent(5)
    misses = 0
    for _ in range(10):
        for key in range(5):
            if table.get(key) is None:
                misses += 1
                table.put(key, key + 1)
    assert misses == 5


def test_a_newer_value_takes_the_place_of_the_old():
    table = Recent(2)
    for value in ("a", "b"):
        table.put(1, value)
    table.put(2, "c")
    table.put(3, "d")
    table.put(1, "e")
    assert [table.get(key) for key in (1, 2, 3)] == ["e", "c", "d"]


def test_keys_of_weight_are_cached_by_their_weight():
    """The cache weighs no more than twice the limit, or holds one key that by itself weighs more."""
    table = Recent(100, len)
    for number in range(50):
        table.put(str(number) + "x" * (number * 7 % 40), number)
        cached = {**table._old, **table.newest}
        assert sum(map(len, cached)) <= 200
        assert table.get(next(reversed(cached))) == number
    table.put("y" * 1000, "huge")
    assert table.get("y" * 1000) == "huge"
    table.put("z", "small")
    table.put("w" * 100, "next")
    assert len(table) <= 3


def test_each_key_weighs_more_where_its_value_does():
    """What each key weighs beside its own weight counts from when it is set."""
    table = Recent(100, len)
    table.each = 49
    for key in "abcd":
        table.put(key, key)
    assert list(table.newest) == ["c", "d"]
    assert len(table) == 4
    table.each = 0
    for number in range(10, 60):
        table.put(str(number), number)
    assert len(table.newest) == 50
