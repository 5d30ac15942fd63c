"""The meaning of an expectation, and the place of the error in one that cannot be read."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulate import made

from kubetide.experiments.figures import figures
from kubetide.experiments.policies import ExpectationError, evaluate, read_expectation
from kubetide.experiments.policies.expectations import OPERATORS, QUANTITIES, SERIES, check_subject
from kubetide.simulate.outcome.summary import summarize
from kubetide.simulate.outcome.timeline import NodeLife
from kubetide.units.time import after, format_rfc3339, minutes


def held(text, *, timeline=None, baseline=None):
    timeline = timeline or made.timeline()
    return evaluate(read_expectation(text), timeline, summarize("shop", timeline), baseline)


@pytest.mark.parametrize(
    ("text", "at", "found"),
    [
        ("sloMinutes ~ 3", 12, "`~`"),
        ("slominutes <= 3", 1, "did"),
        ("cost <=", 8, "its end"),
        ("cost <= 3 x base", 13, "`base`"),
        ("cost <= 3 4", 11, "`4`"),
        ("replicas >= 3", 1, ""),
        ("always(replicas >= 3)", 17, "`(service)`"),
        ("always(replicas(web) >= 3 for 5m)", 27, "`for`"),
        ("never(pending > 50 for 5)", 24, "`5`"),
        ("never(pending > 50 for -5m)", 24, "`-5m`"),
        ("waitP95 <= soon", 12, "`soon`"),
        ("cost <= 5m", 9, "`5m`"),
        ("no node deleted within -4m of its creation", 24, "`-4m`"),
        ("always(pending < 3 between 25:00 and 18:00)", 28, "`25:00`"),
        ("always(pending < 3 between 08:00 and 18:00 Mars/Olympus)", 44, "a time zone"),
        ("no node deleted within 15m of their creation", 31, "`its`"),
        ("", 1, "its end"),
    ],
)
def test_the_place_is_named(text, at, found):
    """An error names the character, the text there, and what is expected."""
    with pytest.raises(ExpectationError) as failed:
        read_expectation(text)
    assert f"at character {at}:" in str(failed.value)
    assert found in str(failed.value) or found == "did"


@given(
    st.text(max_size=40)
    | st.lists(
        st.sampled_from(
            [
                "always",
                "never",
                "(",
                ")",
                "pending",
                "cost",
                "<=",
                "3",
                "for",
                "5m",
                "x",
                "baseline",
                "between",
                "08:00",
                "and",
                "no",
            ]
        )
    ).map(" ".join)
)
def test_any_text_is_read_or_refused(text):
    """No text makes the reader fail otherwise."""
    with contextlib.suppress(ExpectationError):
        assert read_expectation(text).text == text.strip()


@given(st.sampled_from(sorted(OPERATORS)), st.integers(0, 12))
def test_totals_compare_as_they_say(operator, bound):
    """A figure of the run is held against the bound by the comparison that is written."""
    timeline = made.timeline()
    found = held(f"sloMinutes {operator} {bound}", timeline=timeline)
    value = sum(one.slo_minutes_lost for one in summarize("shop", timeline).services)
    assert found.held == OPERATORS[operator](value, bound)


def test_a_total_that_grows_says_when_it_passed():
    """The moment is the step in which the sum passed its bound, with the last decision before it."""
    found = held("cost <= 0.1")
    assert not found.held
    assert found.text == "cost is 0.24, which is not <= 0.1: 0.14 too much"
    assert format_rfc3339(found.at) == "2026-03-02T11:25:15Z"  # the 101st step
    assert "group burst was increased from 0 to 1 because" in found.decision


def test_waits_are_bounded_in_seconds_or_by_a_duration():
    """A wait is a figure in seconds, so that both forms mean the same."""
    timeline = made.timeline()
    timeline.waits = [0.0, 60.0, 100.0]
    for text, holds in (("100", True), ("1m40s", True), ("99", False), ("99s", False)):
        found = held(f"waitLongest <= {text}", timeline=timeline)
        assert found.held == holds
    assert found.text == "waitLongest is 100, which is not <= 99: 1 too much"
    assert held("waitMedian == 1m", timeline=timeline).held


def test_pods_that_were_made_to_go_are_told_apart():
    """By the Eviction API, by the scheduler, and by taints."""
    timeline = msgspec.structs.replace(made.timeline(), evictions=1, preemptions=2, taint_evictions=3)
    for text in ("evictions == 1", "preemptions == 2", "taintEvictions == 3"):
        assert held(text, timeline=timeline).held
    again = summarize("shop", timeline)
    named = {one.name: (one.before, one.after) for one in figures(summarize("shop", made.timeline()), again)}
    assert (named["preempted"], named["evicted by taints"]) == ((0, 2), (0, 3))


def test_a_share_of_the_baseline():
    """`1.05 x baseline` is that of the other run, in the same unit."""
    baseline = summarize("shop", made.timeline())
    expensive = made.timeline()
    expensive.cost = [1.1 * one for one in expensive.cost]
    assert held("cost <= baseline", baseline=baseline).held
    assert held("cost <= 1.2x baseline", timeline=expensive, baseline=baseline).held
    found = held("cost <= 1.05 x baseline", timeline=expensive, baseline=baseline)
    assert not found.held
    assert "baseline 0.24" in found.text


def test_never_needs_the_whole_stretch():
    """Four pods wait for two steps of 15 s at the beginning of the burst: 30 s, and not 31 s."""
    assert held("never(pending > 3 for 31s)").held
    found = held("never(pending > 3 for 30s)")
    assert not found.held
    assert found.text == "pending was 4 from 2026-03-02 11:20:15 for 30s, > 3"


def test_always_names_the_first_step_and_the_worst_value():
    """A count below its bound is reported with where it began and how long it lasted."""
    found = held("always(replicas(cart) >= 3)")
    assert not found.held
    assert found.text.startswith(
        "replicas(cart) was 2 from 2026-03-02 11:00:15 for 20m0s, not >= 3; 2 such stretches"
    )
    assert held("always(replicas(cart) >= 2)").held
    assert held("always(latency(cart) < 1s)").held


def test_a_window_is_by_the_clock_of_its_zone():
    """The burst, 11:20 to 11:40 UTC, is 12:20 to 12:40 in Berlin in winter."""
    assert held("always(replicas(cart) >= 4 between 11:21 and 11:39)").held
    assert held("always(replicas(cart) >= 4 between 12:21 and 12:39 Europe/Berlin)").held
    assert not held("always(replicas(cart) >= 4 between 22:00 and 11:10)").held


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "always(replicas(cart) >= 4 between 23:00 and 04:00)",
            "no step of the run, 2026-03-02 11:00:15 to ",
        ),
        ("never(pending > 0 between 23:00 and 04:00)", "no step of the run"),
        ("never(pending > 0 for 5m between 11:10 and 11:13)", "at most 3m0s at a stretch"),
        ("never(pending > 0 for 24h)", "so 24h0m0s cannot be seen"),
    ],
)
def test_what_the_run_cannot_break_does_not_hold(text, why):
    """A typing error in a window or a duration is no test that passes."""
    found = held(text)
    assert not found.held
    assert why in found.text


def test_nodes_that_live_too_short():
    """A node that went before its time is named with its age."""
    timeline = made.timeline()
    timeline.node_lives = [
        NodeLife("old", "general", made.START),
        NodeLife("short", "burst", made.START, after(made.START, minutes(9))),
    ]
    assert held("no node deleted within 9m of its creation", timeline=timeline).held
    found = held("no node deleted within 10m of its creation", timeline=timeline)
    assert found.text == "node short of group burst was deleted 9m0s after its creation"


def test_names_that_the_scenario_does_not_have():
    """A service or group that is not there is refused with those that are."""
    for text in ("sloMinutes(web) <= 3", "always(nodes(big) < 3)"):
        with pytest.raises(ExpectationError, match="there are"):
            check_subject(read_expectation(text), ["cart"], ["general"])
    check_subject(read_expectation("nodeHours(general) < 3"), ["cart"], ["general"])


def test_every_quantity_and_series_can_be_asked():
    """All names of the language have a value in a run."""
    subjects = {"": [""], "service": ["(cart)"], "service?": ["", "(cart)"], "group?": ["", "(burst)"]}
    for known, form in ((QUANTITIES, "{}{} >= 0"), (SERIES, "always({}{} >= 0)")):
        for name, takes in known.items():
            for subject in subjects[takes]:
                found = held(form.format(name, subject))
                assert found.held, (name, found)
                assert msgspec.structs.asdict(found)["text"]
