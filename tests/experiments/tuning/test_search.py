"""Knobs, constraints and the search."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from tests.experiments.summaries import summary_of

from kubetide.experiments.tuning.answer import is_within_spread, judged_table
from kubetide.experiments.tuning.goal import TuneError, read_constraint
from kubetide.experiments.tuning.knobs import Knob, read_knob, read_knobs
from kubetide.experiments.tuning.search import Trial, best_of, search
from kubetide.simulate.scenarios.scenario import ScenarioError


@pytest.mark.parametrize(
    ("text", "values", "ordered"),
    [
        ("a=50:53", ("50", "51", "52", "53"), True),
        ("a=10:30:10", ("10", "20", "30"), True),
        ("a=-1:1:0.5", ("-1", "-0.5", "0", "0.5", "1"), True),
        ("a=x, y", ("x", "y"), False),
        ("a=2m,10m", ("2m", "10m"), False),
        ("a=12:30,13:30", ("12:30", "13:30"), False),
    ],
)
def test_values_of_a_knob(text, values, ordered):
    """A range of numbers, with a step or without, or a list."""
    assert read_knob(text) == Knob("a", values, ordered)


def test_a_range_of_decimals():
    """Without a step it has a hundred."""
    values = read_knob("a=0.5:1").values
    assert (len(values), values[0], values[1], values[-1]) == (101, "0.5", "0.505", "1")


@pytest.mark.parametrize("text", ["a", "=1:2", "a=80:50", "a=1:2:0", "a=1:90000", "a=x,x", "a=1:1"])
def test_knobs_that_cannot_be_read(text):
    """The knob is named, and how it is written."""
    with pytest.raises(ScenarioError, match="--knob "):
        read_knob(text)


def test_a_knob_twice():
    """Which of the two would hold?"""
    with pytest.raises(ScenarioError, match="--knob a: there twice"):
        read_knobs(["a=1:2", "a=3,4"])


@pytest.mark.parametrize(
    ("text", "runs", "baseline", "excess"),
    [
        ("sloMinutes <= now", [4, 6], [5, 5], 0.0),
        ("sloMinutes < now", [4, 6], [5, 5], 1e-9),
        ("sloMinutes <= 1.2 x now", [6, 9], [5, 5], 0.25),
        ("sloMinutes(web) <= 10", [6, 9], [5, 5], -0.25),
        ("sloMinutes >= 6", [3, 3], [5, 5], 0.5),
    ],
)
def test_constraints(text, runs, baseline, excess):
    """A constraint is about the mean over the runs, and `now` about that of the scenario as it is."""
    constraint = read_constraint(text, ["web"], ["general"])
    made = [summary_of(1.0, lost) for lost in runs], [summary_of(1.0, lost) for lost in baseline]
    assert constraint.excess(*made) == pytest.approx(excess)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("sloMinutes <= noww", "--keep sloMinutes <= noww"),
        ("never(pending > 5)", "kubetide test"),
        ("cost == now", "kubetide test"),
        ("sloMinutes(cart) <= 1", "no service `cart`"),
    ],
)
def test_constraints_that_cannot_be_used(text, reported):
    """A constraint that cannot be read, or that a search cannot meet, is an error."""
    with pytest.raises(TuneError, match=reported.replace("(", r"\(")):
        read_constraint(text, ["web"], [])


def bowl(tried):
    """Lowest at 70 and y; less than 65 is over the bound, 90 cannot be run."""
    return [
        Trial(values, 0.0, error="no")
        if values[0] == "90"
        else Trial(values, (int(values[0]) - 70) ** 2 + (values[1] != "y") * 50.0, (65.0 - int(values[0]),))
        for values in tried
    ]


def test_few_combinations_are_all_tried():
    """Each once, without Optuna."""
    trials = search((read_knob("a=60:90:10"), read_knob("b=x,y")), bowl, trials=8, seed=1)
    assert [trial.values for trial in trials] == [
        (a, b) for a in ("60", "70", "80", "90") for b in ("x", "y")
    ]
    assert [trial.feasible for trial in trials] == [False, False, True, True, True, True, False, False]
    assert best_of(trials, below=1.0).values == ("70", "y")
    assert best_of(trials, below=0.0) is None


@pytest.mark.skipif(find_spec("optuna") is None, reason="optuna is not installed")
def test_many_combinations_are_searched():
    """The search comes near to the best with a few of them, tries none twice, and repeats itself."""
    knobs = (read_knob("a=1:100"), read_knob("b=x,y,z"))
    trials = search(knobs, bowl, trials=60, seed=3)
    assert len({trial.values for trial in trials}) == len(trials) <= 60
    assert best_of(trials, below=1e9).score <= 25
    assert search(knobs, bowl, trials=60, seed=3) == trials


def test_without_optuna(monkeypatch):
    """Where it is needed and not there, its package is named."""
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(TuneError, match=r"optuna>=5"):
        search((read_knob("a=1:100"),), bowl, trials=10, seed=1)


def test_the_judged_table():
    """Differences are taken run by run, so a spread between days is not one of the change."""
    table = judged_table(
        [summary_of(10.0, 5), summary_of(20.0, 5)], [summary_of(9.0, 5), summary_of(19.0, 5)]
    )
    assert not is_within_spread(
        "cost", [summary_of(10.0, 5), summary_of(20.0, 5)], [summary_of(9.0, 5), summary_of(19.0, 5)]
    )
    assert is_within_spread(
        "cost", [summary_of(10.0, 5), summary_of(20.0, 5)], [summary_of(7.0, 5), summary_of(22.0, 5)]
    )
    assert table.rows[0] == ("cost", "15.00", "14.00", "-1.00 (-6.7%)", "0.00", "2 of 2")
