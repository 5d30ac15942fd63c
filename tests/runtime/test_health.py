"""The health of the process: for the kubelet, and in Cluster Autoscaler's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.runtime.health import Activity, Patience, health_check, not_alive
from kubetide.units.time import Duration, Instant, after, minutes, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00Z")
PATIENCE = Patience()


def at(minute):
    return after(START, minutes(minute))


TEN_SECONDS = seconds(10)


def loop(began, well=None, excused=None, *, period=TEN_SECONDS, failure=""):
    """The activity of a loop, in minutes after the start."""
    given_at = [None if one is None else at(one) for one in (well, excused)]
    return Activity("nodes", period, at(began), *given_at, failure)


@pytest.mark.parametrize(
    ("activity", "minute", "alive", "checked"),
    [
        # the first tick has upstream's longer time, to be begun and to end well
        (loop(0), 20, "", ""),
        (loop(0), 20.1, "the nodes loop has begun and ended no tick for 20m6s", "20m6s ago"),
        (loop(20), 20, "", ""),
        (
            loop(20),
            20.1,
            "the nodes loop has ended no tick well for 20m6s",
            "Error: last activity more 6s ago, last success more than 20m6s ago",
        ),
        # a tick that hangs
        (loop(30, 29.9), 40, "", ""),
        (
            loop(30, 29.9),
            40.1,
            "the nodes loop has begun and ended no tick for 10m6s",
            "Error: last activity more 10m6s ago, last success more than 10m12s ago",
        ),
        # ticks that fail: by others' errors a restart does not help, by bugs it may
        (loop(60, 30, 59.9), 60, "", "Error: last activity more 0s ago, last success more than 30m0s ago"),
        (loop(45, 30, failure="KeyError: 1"), 45, "", ""),
        (
            loop(46, 30, failure="KeyError: 1"),
            46,
            "the nodes loop has ended no tick well for 16m0s: KeyError: 1",
            "Error: last activity more 0s ago, last success more than 16m0s ago",
        ),
    ],
)
def test_the_two_questions(activity, minute, alive, checked):
    """Each of the rules, at its edge and beyond it."""
    assert not_alive([activity], at(minute), since=START, patience=PATIENCE) == alive
    assert health_check([activity], at(minute), since=START, patience=PATIENCE).endswith(checked)
    assert bool(health_check([activity], at(minute), since=START, patience=PATIENCE)) == bool(checked)


def test_a_loop_that_ticks_seldom_is_given_its_periods():
    """A sync period of a quarter of an hour is no hang."""
    seldom = loop(0, 0, period=minutes(15))
    assert not_alive([seldom], at(45), since=START, patience=PATIENCE) == ""
    assert not_alive([seldom], at(46), since=START, patience=PATIENCE)


_MINUTES = st.integers(0, 120)


@given(st.lists(st.tuples(_MINUTES, st.none() | _MINUTES, st.none() | _MINUTES), min_size=1), _MINUTES)
def test_a_time_out_of_reach_is_forgiven(loops, lasted):
    """Whatever the loops did: while the server cannot be read, and ten minutes after, no restart is requested."""
    activities = [loop(*one) for one in loops]
    for later in (Duration(0), minutes(10)):
        now = Instant(at(lasted) + later)
        assert not_alive(activities, now, since=at(lasted), patience=PATIENCE) == ""


def test_one_bad_loop_is_enough():
    """The first that is not well is named."""
    other = loop(0, 0)._replace(loop="horizontal")
    assert "horizontal" in not_alive([loop(59, 59), other], at(60), since=START, patience=PATIENCE)
