"""The calendar: what recurs is forecast, what does not is not, and what never comes true is no longer believed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.forecast.loads import LEARNED, START, TICK, Player, hourly

from kubetide.forecast.calendar import Calendar
from kubetide.forecast.memory import dumped, restore
from kubetide.units.time import Instant, hours, minutes, parse_rfc3339, seconds


def test_an_onset_that_recurs_is_forecast_before_it_comes():
    """After three hours pods for an hourly onset are there two minutes before it, nodes five, and both go again."""
    player = Player()
    player.run(hourly(), LEARNED)
    held = player.run(hourly(), hours(1))
    onset = minutes(20) // TICK
    ahead = [at for at, pods in enumerate(held) if pods]
    assert set(held) == {0, 33}, "1.1 times the 30 that came before"
    assert onset - 9 <= ahead[0] <= onset - 6
    assert ahead[-1] <= onset + minutes(12) // TICK
    nodes = [at for at, pods in enumerate(player.nodes[-len(held) :]) if pods]
    assert onset - 26 <= nodes[0] <= onset - 20


def test_one_onset_alone_is_no_forecast():
    """Neither one onset nor two at different phases are forecast."""
    player = Player()
    player.run(lambda minute: 30.0 if 200 <= minute < 205 or 417 <= minute < 422 else 10.0, hours(12))
    assert not any(player.pods)


@pytest.mark.parametrize("mean", [2, 20, 100])
def test_constant_load_is_left_alone(mean):
    """Poisson noise around one level costs next to nothing: at most 2 % of the pods."""
    rng = np.random.default_rng(7)
    player = Player()
    loads = rng.poisson(mean * 15, int(hours(48) // TICK)) / 15
    for load in loads.tolist():
        player.tick(load)
    replicas = np.ceil(loads / 0.7)
    stabilized = np.max([np.roll(replicas, back) for back in range(20)], axis=0)
    extra = np.maximum(0, np.array(player.pods) - stabilized)
    assert extra.sum() <= 0.02 * stabilized.sum()


def noisy(level, days, seed=5):
    """Return a load, by tick, that is far above its own mean in every second minute."""
    return level * np.exp(np.random.default_rng(seed).normal(0, 0.45, int(hours(24 * days) // TICK)))


def test_noise_is_no_onset():
    """Load that always differs from its own mean teaches nothing; bursts that recur above it are forecast all the same."""
    alone, with_bursts = Player(), Player()
    loads, burst = noisy(12.0, 2), hourly(low=1.0, high=4.0)
    for at, load in enumerate(loads.tolist()):
        alone.tick(load)
        with_bursts.tick(load * burst(at * TICK // minutes(1)))
    stabilized = np.max([np.roll(loads, back) for back in range(40)], axis=0) / 0.7
    assert np.maximum(0, np.array(alone.pods) - stabilized).sum() <= 0.005 * stabilized.sum()
    held = np.array(with_bursts.pods[-24 * 240 :]).reshape(24, 240)
    assert (held[:, minutes(20) // TICK] >= 40).mean() > 0.8


def test_a_period_that_fails_is_no_longer_believed():
    """When onsets cease the calendar stops within a day, and comes back when they do."""
    player = Player(tick=minutes(1))
    player.run(hourly(), hours(8))
    player.run(lambda _: 10.0, hours(24))
    assert not any(player.run(lambda _: 10.0, hours(6)))
    score = player.forecasts.score("web")
    assert score.hits >= 4
    player.run(hourly(), hours(24))
    assert any(player.run(hourly(), hours(1)))


def test_each_forecast_onset_is_on_record_with_what_came():
    """The record has the forecast and its time, the observed load, the period, and the cost."""
    player = Player()
    player.run(hourly(), hours(8))
    assert len(player.came) >= 3
    last = player.came[-1]
    assert (round(last.forecast), round(last.came)) == (30, 30)
    assert last.at % hours(1) in {minutes(at) for at in range(18, 24)}
    assert last.pod_minutes > 0
    score = player.forecasts.score("web")
    assert score.hits + score.misses == len(player.came)
    assert score.misses <= 1, "half an hour after the hour, until that is no longer believed"


def test_days_follow_the_workloads_own_clock():
    """An onset at nine local time is forecast at nine after the clocks have changed, not at eight or ten."""
    start = parse_rfc3339("2026-03-24T00:00:00Z")  # Berlin goes to summer time on the 29th

    def nine_in_berlin(minute):
        at = start + minute * minutes(1)
        summer = at >= parse_rfc3339("2026-03-29T01:00:00Z")
        of_day = (at + hours(2 if summer else 1)) % hours(24)
        return 30.0 if hours(9) <= of_day < hours(9) + minutes(5) else 10.0

    found = {}
    for zone in ("Europe/Berlin", ""):
        player = Player(start=start, zone=zone, tick=minutes(1))
        played = player.run(nine_in_berlin, hours(24 * 6))
        last = played[-24 * 60 :]
        found[zone] = {at // 60 for at, pods in enumerate(last) if pods}
    assert found["Europe/Berlin"] == {6, 7}, "from two minutes before seven by UTC on"
    assert found[""] == {7, 8}, "by UTC it is forecast for eight, an hour too late"


def test_the_onsets_to_come_are_those_that_each_step_forecasts():
    """Over two days with a change of the clocks between them: where they begin, and the highest load of each."""
    start = parse_rfc3339("2026-03-25T00:00:00Z")  # Berlin goes to summer time on the 29th
    player = Player(start=start, zone="Europe/Berlin", tick=minutes(1))
    player.run(lambda minute: 30.0 + minute % 7 if 480 <= minute % 1440 < 490 else 10.0, hours(24 * 3 + 12))
    calendar = player.forecasts.calendar
    steps = int(hours(48) // calendar.step)
    each = [0.0, *calendar.forecast_next(steps)[:, 0].tolist()]
    begins = [at for at in range(steps) if each[at + 1] and not each[at]]
    found = calendar.coming(0, steps)
    assert [one.at - calendar.index - 1 for one in found] == begins
    assert len(begins) >= 2
    ends = [next(at for at in range(begin, steps) if not each[at + 1]) for begin in begins]
    most = [max(each[begin + 1 : end + 1]) for begin, end in zip(begins, ends, strict=True)]
    assert [one.forecast for one in found] == most


STEPS = st.lists(st.one_of(st.none(), st.floats(0, 1000)), min_size=1, max_size=80)


@given(loads=STEPS, gap=st.integers(0, 400))
@settings(max_examples=30, deadline=None)
def test_what_is_dumped_goes_on_as_if_nothing_had_been(loads, gap):
    """A calendar that was restored in the middle forecasts the same; gaps and unknown steps harm nothing."""
    one, other = Calendar(), Calendar()
    learns = np.ones(one.size, np.bool_)
    index = START // one.step
    for at, load in enumerate(loads * 2):
        value = np.full(one.size, np.nan if load is None else load, np.float32)
        index += 1 + (gap if at == len(loads) // 2 else 0)
        one.advance(index, value, value, learns)
        if at == len(loads):
            memory = dumped(one, 1)
            assert memory is not None
            assert restore(other, 1, memory)
        elif at > len(loads):
            other.advance(index, value, value, learns)
    assert one.pods_ahead()[0][1] == other.pods_ahead()[0][1]
    assert (one.hits[:, 1] == other.hits[:, 1]).all()
    assert (one.onsets[:, 1] == other.onsets[:, 1]).all()
    assert not np.isnan(one.pods_ahead()[0]).any()


def test_a_finer_step_finds_the_same():
    """At steps of 15 s the same onsets are forecast as at those of a minute."""
    fine, coarse = Calendar(seconds(15)), Calendar()
    load = hourly()
    for calendar in (fine, coarse):
        learns = np.ones(calendar.size, np.bool_)
        found = []
        for at in range(int(hours(6) // calendar.step)):
            value = np.full(calendar.size, load(at * calendar.step // minutes(1)), np.float32)
            calendar.advance(START // calendar.step + at, value, value, learns)
            if calendar.pods_ahead()[0][0] > 0:
                found.append(Instant(at * calendar.step) % hours(1) // minutes(1))
        assert not set(found) & {0, *range(5, 17)}
        assert {18, 19} <= set(found)
        assert 20 in found
