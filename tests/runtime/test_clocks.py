"""The messages about a wrong clock, and how often they come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubetide.runtime.timing.clocks import SkewReport
from kubetide.units.time import Duration, minutes, seconds


def test_how_far_and_which_way():
    """The sentence names the difference, its direction and what it does to ages."""
    ahead = SkewReport().sentence(Duration(minutes(3) + seconds(2.5)))
    assert ahead.startswith(
        "the clock of this process is 3m2s ahead of the API server's: pods, nodes and samples look older"
    )
    behind = SkewReport().sentence(minutes(-90))
    assert behind.startswith("the clock of this process is 1h30m0s behind the API server's")
    assert "younger" in behind
    assert SkewReport().sentence(seconds(5)) == ""


def test_it_is_said_once_and_ends_once():
    """While the skew stays about the same, or moves about the bound, the sentence stays; a minute more is reported."""
    report, reported = SkewReport(), []
    for second in (0, 4, 6, 7, 4, 3, 40, 66, 67, 2, 0, 4):
        sentence = report.sentence(seconds(second))
        if sentence != (reported[-1] if reported else ""):
            reported.append(sentence)
    assert [bool(one) for one in reported] == [True, True, False]
    assert "6s ahead" in reported[0]
    assert "1m7s ahead" in reported[1]


@given(st.lists(st.integers(-minutes(90), minutes(90))))
def test_it_never_names_a_wrong_side(skews):
    """Whatever came before, the direction is the present one, and the figure is a minute off at most."""
    report = SkewReport()
    for skew in skews:
        said = report.sentence(Duration(skew))
        assert (abs(skew) > seconds(5)) <= bool(said)
        if said and abs(skew) > minutes(1):
            assert ("ahead" in said) == (skew > 0)
