"""Settings with several values, and their combinations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulate.worlds import small

from kubetide.experiments.sweeps.grid import Axis, read_axes, read_axis, variants
from kubetide.experiments.sweeps.results import pareto_front, spread
from kubetide.simulate.scenarios.scenario import ScenarioError


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("expander=least-cost", ("least-cost",)),
        ("expander = least-cost, price", ("least-cost", "price")),
        ("a=,1", ("", "1")),
        ("a=[1,2],{b: 1, c: 2}", ("[1,2]", "{b: 1, c: 2}")),
        ("a='1,2',\"3]\",4", ("'1,2'", '"3]"', "4")),
    ],
)
def test_values_of_a_setting(text, values):
    """Commas part values, but not within brackets and quotes."""
    assert read_axis(text).values == values


@pytest.mark.parametrize(
    ("texts", "reported"),
    [
        (["expander"], "write it as NAME=VALUE"),
        (["=1"], "write it as NAME=VALUE"),
        (["a=1,2,1"], "the value '1' is there twice"),
        (["a=1", "a=2"], "--set a: set twice"),
    ],
)
def test_settings_that_cannot_be_read(texts, reported):
    """The error says what is wrong, and how it is written."""
    with pytest.raises(ScenarioError, match=reported):
        read_axes(texts)


def test_every_combination(tmp_path):
    """All combinations, the last setting fastest; one that is no scenario has its error."""
    axes = read_axes(["group/general.initial=1,3", "group/general.max=2,4"])
    found = variants(tmp_path / "shop.yaml", small(), axes, ())
    assert [one.values for one in found] == [("1", "2"), ("1", "4"), ("3", "2"), ("3", "4")]
    assert [one.scenario is not None for one in found] == [True, True, False, True]
    assert "nodeGroups[0] (general)" in found[2].error


def test_a_value_that_is_never_right(tmp_path):
    """A mistake in one value is reported before anything runs."""
    axes = read_axes(["group/general.max=4,5", "expander=least-waste,least-wast"])
    with pytest.raises(ScenarioError, match="expander=least-wast can be run"):
        variants(tmp_path / "shop.yaml", small(), axes, ())


def test_too_many(tmp_path):
    """A slip of the hand does not make millions of runs."""
    axes = [Axis(f"a{number}", tuple(map(str, range(100)))) for number in range(4)]
    with pytest.raises(ScenarioError, match="100,000,000 combinations"):
        variants(tmp_path / "shop.yaml", small(), axes, ())


def test_a_sample_of_the_combinations(tmp_path):
    """So many different ones in the order of the grid; more of them have those of fewer, and all is the grid."""
    axes = read_axes(["group/general.max=4,5,6,7", "hpa/web.max=8,9,10", "scale-down-unneeded-time=1m,2m"])

    def sampled(count):
        return [one.values for one in variants(tmp_path / "shop.yaml", small(), axes, (), sample=count)]

    every = sampled(24)
    assert every == [one.values for one in variants(tmp_path / "shop.yaml", small(), axes, ())]
    few, more = sampled(5), sampled(23)
    assert (len(few), len(more)) == (5, 23)
    assert few == [one for one in every if one in few]
    assert set(few) < set(more)
    assert {value for values in few for value in values} == {
        value for axis in axes for value in axis.values
    }, "every value is in it"


def test_a_sample_of_more_combinations_than_can_be_run(tmp_path):
    """Where the grid is too large a sample of it is not."""
    thousand = tuple(map(str, range(10, 1010)))
    axes = [Axis("group/general.max", thousand), Axis("hpa/web.max", thousand)]
    assert len(variants(tmp_path / "shop.yaml", small(), axes, (), sample=3)) == 3


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_the_front_is_what_nothing_dominates(points):
    """A point is on the front if, and only if, no other is at most as high in both and differs."""
    front = pareto_front(points)
    for point in points:
        dominated = any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in points)
        assert (point in front) != dominated


def test_spread_of_a_figure():
    """Mean and deviation of the sample."""
    assert (spread([2.0, 4.0, 6.0]).mean, spread([2.0, 4.0, 6.0]).deviation) == (4.0, 2.0)
    assert spread([3.0]).deviation == 0.0
