"""With the setting a status is written once a period if only measured values have changed."""

from __future__ import annotations

import msgspec
import pytest
from tests.horizontal import worlds

from kubetide.horizontal.core import (
    HorizontalCore,
    encode_commands,
    encode_delta,
    encode_outcomes,
    encode_result,
)
from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import ScaleOutcome, record_of
from kubetide.horizontal.facts.views import StatusView
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import Delta, State
from kubetide.units.time import Duration, Instant, minutes, seconds

KEY = ("default", "web")
NOW = worlds.NOW


def world(period, pods=4, target=60):
    """An HPA of pods that each request 200m, so that from 108m to 132m nothing is scaled."""
    return worlds.state_of(
        hpas=[worlds.hpa(target=target)],
        pods=[worlds.pod(f"p{index}") for index in range(pods)],
        scales=[worlds.scale(replicas=pods)],
        usage={("default", f"p{index}"): 120 for index in range(pods)},
        settings=Settings(metrics_status_period=period),
    )


def tick(state, at, milli, **delta):
    """Play one tick; return the settlement of the HPA and what the record says."""
    pods = len(state.table.rows)
    usage = {("default", f"p{index}"): milli for index in range(pods)}
    state.apply(Delta(answers=[worlds.answer(usage)], **delta))
    commands = decide(state, at, columns_from=0)
    outcomes = [ScaleOutcome(*KEY, at) for _ in commands.writes]
    result = absorb(state, commands, outcomes)
    return result.settlements[0], record_of(result)


def times(count):
    return [Instant(NOW + index * seconds(15)) for index in range(count)]


@pytest.mark.parametrize(("period", "written"), [(minutes(1), [0, 4, 8]), (Duration(0), range(10))])
def test_measured_values_are_written_once_in_the_period(period, written):
    """With a minute, every fourth tick of 15 s writes the newest values; without, each does."""
    state = world(period)
    found = []
    for index, at in enumerate(times(10)):
        settled, record = tick(state, at, 110 + index)
        assert record.held == (() if index in written else (KEY,))
        if index in written:
            found.append(index)
            assert (
                settled.patch["currentMetrics"][0]["resource"]["current"]["averageValue"] == f"{110 + index}m"
            )
        else:
            assert settled.patch == {}
    assert found == list(written)


def test_what_else_changes_is_written_at_once_with_the_newest_values():
    """A rescale within the minute writes the whole status, and the minute begins anew."""
    state = world(minutes(1))
    first, second, third, fourth, *_ = times(6)
    tick(state, first, 120)
    assert tick(state, second, 121)[1].held == (KEY,)
    settled, record = tick(state, third, 190)
    assert record.held == ()
    assert settled.action == "scale_up"
    assert {"lastScaleTime", "desiredReplicas", "currentMetrics", "conditions"} <= set(settled.changes)
    assert settled.status.current_metrics[0].resource.current.average_value == "190m"
    assert state.written[KEY] == third
    assert tick(state, fourth, 190)[1].held == ()  # replicas found and conditions change again


def test_a_metric_that_begins_to_fail_is_written_at_once():
    """The entries of failed metrics are no values that were measured."""
    state = world(minutes(1))
    first, second, *_ = times(3)
    tick(state, first, 120)
    state.apply(Delta(answers=[]))
    result = absorb(state, decide(state, second), [])
    assert not result.settlements[0].held
    assert "currentMetrics" in result.settlements[0].changes


def test_nothing_is_held_of_a_status_that_is_not_the_loops_own():
    """After a status that somebody else wrote, or a write that failed, the next tick writes."""
    state = world(minutes(1))
    first, second, third, *_ = times(4)
    tick(state, first, 120)
    theirs = state.statuses[KEY]
    assert tick(state, second, 121)[1].held == (KEY,)
    settled, record = tick(state, third, 122, statuses=[StatusView(*KEY, theirs)])
    assert record.held == ()
    assert settled.changes == ("currentMetrics",)


def test_a_quiet_tick_does_not_forget_what_waits():
    """Usage that moves once and then stays is written when the minute is over."""
    state = world(minutes(1))
    seen = [tick(state, at, 120 if index == 0 else 121)[0].changes for index, at in enumerate(times(7))]
    assert [bool(changes) for changes in seen] == [True, False, False, False, True, False, False]


def test_a_replay_from_any_tick_holds_the_same():
    """A full record has the time at which each status was written."""
    period = minutes(1)
    state = world(period)
    copies: list[HorizontalCore] = []
    for index, at in enumerate(times(9)):
        usage = {("default", f"p{one}"): 110 + index for one in range(4)}
        delta = Delta(answers=[worlds.answer(usage)])
        state.apply(delta)
        full = msgspec.structs.replace(state.dump(), answers=delta.answers)
        for copy in copies:
            copy.apply(encode_delta(delta), full=False)
        fresh = HorizontalCore()
        fresh.apply(encode_delta(full), full=True)
        copies.append(fresh)
        commands = decide(state, at)
        result = encode_result(absorb(state, commands, []))
        for copy in copies:
            assert copy.decide(at) == encode_commands(commands)
            assert copy.absorb(encode_outcomes([]), at) == result


def test_a_period_below_zero_is_refused():
    """The text names the flag."""
    with pytest.raises(ValueError, match="horizontal-pod-autoscaler-metrics-status-period"):
        Settings(metrics_status_period=Duration(-1))


def test_without_the_setting_nothing_of_it_is_remembered():
    """A full record of a loop as upstream's says nothing of writes."""
    state = world(Duration(0))
    for at in times(3):
        tick(state, at, 120)
    assert state.written == {}
    assert b"status_written" not in encode_delta(state.dump())
    assert State.from_full(state.dump()).written == {}
