"""Decisions without a rule: decided again by the same functions, with one rule removed."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.horizontal import worlds

from kubetide.horizontal.explain.answers import explain
from kubetide.horizontal.memory import MemoryEntry, Recommendation, ScaleEvent, ScaleEvents
from kubetide.horizontal.rules.evaluate import evaluate
from kubetide.horizontal.settings import Settings
from kubetide.units.time import Duration, Instant, seconds

KEY, NOW = ("default", "web"), worlds.NOW
BEHAVIOR = {
    "scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]},
    "scaleDown": {"stabilizationWindowSeconds": 60},
}


def state_of(milli, *, pods=2, known=(), ups=(), tolerance=0.1, window=300, behavior=None):
    """Pods that each use that much of 200m, with a target of 50 %."""
    names = [f"p{index}" for index in range(pods)]
    memory = [
        MemoryEntry(
            *KEY,
            [Recommendation(Instant(NOW - seconds(ago)), replicas) for ago, replicas in known],
            ScaleEvents([ScaleEvent(NOW - seconds(ago), change) for ago, change in ups]),
        )
    ]
    return worlds.state_of(
        hpas=[worlds.hpa(maximum=50, **({"behavior": behavior} if behavior else {}))],
        pods=[worlds.pod(name) for name in names],
        scales=[worlds.scale(replicas=pods)],
        usage={("default", name): milli for name in names},
        memory=memory,
        settings=Settings(tolerance=tolerance, downscale_stabilization=Duration(seconds(window))),
    )


def without(state):
    return {one.rule: one.desired for one in explain(state, KEY, NOW).what_ifs}


def test_stabilization_that_holds_a_scale_in():
    """A recommendation of the window holds four; without the window it would be two."""
    state = state_of(50, pods=4, known=[(30, 4)])
    assert explain(state, KEY, NOW).desired == 4
    assert without(state) == {"stabilization": 2, "policies": 4, "tolerance": 4}
    lines = explain(state, KEY, NOW).lines()
    assert "without stabilization: 2 instead of 4" in lines
    assert "without policies or tolerance: the same" in lines


def test_a_policy_that_slows_a_scale_out():
    """One pod a minute allows three; without policies the proposal of eight is reached at once."""
    state = state_of(400, known=[(30, 2)], behavior=BEHAVIOR)
    assert explain(state, KEY, NOW).desired == 3
    assert without(state) == {"stabilization": 2 + 1, "policies": 8, "tolerance": 3}


def test_a_tolerance_that_holds_the_number():
    """A ratio of 1.06 is within a tenth; without tolerance the HPA desires one replica more."""
    state = state_of(106, known=[(30, 2)])
    assert explain(state, KEY, NOW).desired == 2
    assert without(state) == {"stabilization": 2, "policies": 2, "tolerance": 3}


def test_without_a_proposal_there_is_nothing_to_hold_back():
    """Outside of the bounds no metric is asked, so no rule holds anything."""
    assert explain(state_of(100, pods=60), KEY, NOW).what_ifs == ()


@settings(max_examples=60, deadline=None)
@given(
    milli=st.integers(0, 900),
    pods=st.integers(1, 12),
    known=st.lists(st.tuples(st.integers(1, 400), st.integers(1, 30)), min_size=1, max_size=4),
    ups=st.lists(st.tuples(st.integers(1, 90), st.integers(1, 5)), max_size=2),
    behaves=st.booleans(),
)
def test_it_is_what_a_spec_without_the_rule_decides(milli, pods, known, ups, behaves):
    """No tolerance and no window: what the loop decides where settings or spec say so themselves."""
    behavior = BEHAVIOR if behaves else None
    world = {"pods": pods, "known": known, "ups": ups, "behavior": behavior}
    found = without(state_of(milli, **world))
    exact = evaluate(state_of(milli, **{**world, "tolerance": 0.0}), KEY, NOW)
    assert found["tolerance"] == exact.desired
    windowless = {
        direction: {**rules, "stabilizationWindowSeconds": 0} for direction, rules in BEHAVIOR.items()
    }
    unheld = {**world, "behavior": windowless if behaves else None, "window": 0}
    assert found["stabilization"] == evaluate(state_of(milli, **unheld), KEY, NOW).desired


def test_an_explanation_is_data_too():
    """Programs read the same numbers as people."""
    found = msgspec.to_builtins(explain(state_of(106, known=[(30, 2)]), KEY, NOW))
    assert found["what_ifs"][2] == {"rule": "tolerance", "proposal": 3, "stabilized": 3, "desired": 3}
