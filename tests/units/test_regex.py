"""Regular expressions of users: matches beside Python's own, and patterns that RE2 refuses."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.units.regex import PatternError, compile_pattern


@st.composite
def patterns(draw, depth=3):
    """Patterns that Python and RE2 read alike."""
    if depth == 0:
        return draw(
            st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\w", r"\d", "^", r"\b", "x{2}", "(?i:A)"])
        )
    one, other = draw(patterns(depth=depth - 1)), draw(patterns(depth=depth - 1))
    times = draw(st.sampled_from(["", "*", "+", "?", "{1,2}", "{2}", "*?", "+?", "{0,3}"]))
    return draw(st.sampled_from([one, one + other, f"(?:{one}|{other})", f"(?:{one}){times}"]))


@settings(max_examples=100, deadline=None)
@given(patterns(), st.text(alphabet="abAx1 ", max_size=7))
def test_matches_are_those_of_a_backtracking_matcher(pattern, text):
    """A match begins where Python finds one; ends differ where something empty is repeated."""
    found, expected = compile_pattern(pattern).find(text), re.search(pattern, text)
    assert (found and found[0]) == (expected and expected.start())


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "a**", "[a", "[b-a]", "a{2,1}", "(?=a)", "(?P<n", "\\", "\\8", "*a", "a{1001}", "[[:x:]]"],
)
def test_patterns_that_are_none(pattern):
    """A pattern that RE2 refuses is refused with words."""
    with pytest.raises(PatternError, match="error parsing regexp: "):
        compile_pattern(pattern)
