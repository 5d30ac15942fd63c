"""Clocks that jump: what is learned goes on, and a long gap is passed over at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecast.loads import LEARNED, Player, hourly

from kubetide.forecast.calendar import Calendar
from kubetide.forecast.memory import dumped
from kubetide.forecast.second_stage import SecondStage
from kubetide.units.time import Instant, hours, minutes

YEAR = hours(24 * 365)
SCORES = slice(4, 6)


@pytest.mark.parametrize("jump", [hours(2), hours(24 * 3), YEAR])
@pytest.mark.parametrize("trouble", [{}, {"rolling": True}])
def test_onsets_are_learned_after_the_clock_was_ahead(jump, trouble):
    """However far it was ahead for some ticks, the hourly onset is forecast a few hours after it was set back."""
    player = Player(tick=minutes(1))
    player.run(lambda _: 10.0, hours(2))
    true = player.now
    player.now = Instant(true + jump)
    player.run(lambda _: 10.0, minutes(5), **trouble)
    player.now = true
    player.run(hourly(), LEARNED)
    assert max(player.run(hourly(), hours(1))) == 33


def test_an_outage_of_a_time_to_come_holds_no_pods():
    """What looked like one while the clock was ahead ends when it is set back."""
    player = Player(tick=minutes(1))
    player.now = Instant(player.now + YEAR)
    player.run(lambda _: 20.0, hours(2))
    assert player.run(lambda _: 0.0, minutes(5))[-1] > 0
    player.now = Instant(player.now - YEAR)
    assert player.run(lambda _: 1.0, minutes(3))[-1] == 0


@settings(max_examples=6)
@given(known=st.integers(40, 200), gap=st.integers(1, 400), seed=st.integers(0, 99))
def test_a_gap_is_the_same_at_once_as_step_by_step(known, gap, seed):
    """Passing over many unknown steps leaves what taking each of them leaves."""
    loads = np.random.default_rng(seed).choice([1.0, 9.0], known + 1).astype(np.float32)
    learns, unknown = np.ones(4, np.bool_), np.full(4, np.nan, np.float32)
    found = []
    for each in (False, True):
        calendar = Calendar()
        for at in range(known):
            calendar.advance(at, *(np.full(4, loads[at]),) * 2, learns)
        for at in range(known, known + gap) if each else ():
            calendar.advance(at, unknown, unknown, ~learns)
        calendar.advance(known + gap, *(np.full(4, loads[-1]),) * 2, learns)
        found.append(dumped(calendar, 0))
    once, step_by_step = found
    scores = [np.frombuffer(b"".join(one.rings[SCORES]), np.float32) for one in found]
    assert np.allclose(*scores, rtol=1e-4)
    assert once.rings[:4] + once.rings[6:] == step_by_step.rings[:4] + step_by_step.rings[6:]
    assert (once.index, once.onset_rows, once.onset_sizes) == (
        step_by_step.index,
        step_by_step.onset_rows,
        step_by_step.onset_sizes,
    )


def test_a_year_takes_no_year_of_steps():
    """A clock that jumps a year ahead costs some dozens of steps, and nothing old is left."""
    taken = []

    class Counting(Calendar):
        def _take(self, index, mean, peak, learns):
            taken.append(index)
            super()._take(index, mean, peak, learns)

    calendar, learns = Counting(), np.ones(4, np.bool_)
    for at in range(200):
        load = np.full(4, 30.0 if at % 60 < 5 else 10.0, np.float32)
        calendar.advance(at, load, load, learns)
    assert calendar.onsets.any()
    calendar.advance(200 + YEAR // minutes(1), load, load, learns)
    assert len(taken) < 300
    assert not calendar.onsets.any()
    assert calendar.day_peak()[0] == 10.0


def test_onsets_that_are_not_over_yet_come_from_no_older_week():
    """Two hours ahead of an onset of half an hour's period, no load of three weeks before stands in for one to come."""
    calendar, quiet = Calendar(), np.full(4, 10.0, np.float32)
    learns = np.ones(4, np.bool_)
    calendar.advance(calendar.history_steps, quiet, quiet, learns)
    calendar.onsets[:] = 50.0
    assert not calendar._recurring(calendar.history_steps + 100, 30, 0).any()


def test_a_second_stage_forgets_what_a_clock_ahead_brought():
    """Loads of a time to come are no history."""

    class Silent:
        name = "silent"

        def forecast(self, history, ahead, quantiles):
            return np.full((1, ahead, history.loads.shape[1]), np.nan, np.float32)

    stage = SecondStage(Silent(), minutes(1), 1)
    for at in (1000, 1001, 5000, 5001, 1002):
        stage.advance(at, np.full(1, at, np.float32))
    assert sorted(stage.history[~np.isnan(stage.history)].tolist()) == [1000.0, 1001.0, 1002.0]
