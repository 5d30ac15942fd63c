"""Lists of names within a sentence."""

from __future__ import annotations

from kubetide.units.lists import counted, listed


def test_names_past_the_most_are_counted():
    """All are named up to the limit; past it the others are counted, with the noun where there is one."""
    assert listed([], 2) == ""
    assert listed(["a", "b"], 2) == "a, b"
    assert listed(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert listed(["a", "b", "c"], 2, "groups") == "a, b and 1 more groups"


def test_one_of_a_thing_is_singular():
    """No "1 seeds"."""
    assert [counted(number, "seed") for number in (0, 1, 2)] == ["0 seeds", "1 seed", "2 seeds"]
