"""Forecasters of others: used only where the past says that they are better than the level."""

from __future__ import annotations

import numpy as np
import pytest
from tests.forecast.loads import START

from kubetide.forecast.backtest import backtest
from kubetide.forecast.forecaster import CalendarForecaster, History, load_forecaster
from kubetide.forecast.forecasts import Forecasts
from kubetide.forecast.rows import Seen
from kubetide.forecast.second_stage import SecondStage
from kubetide.ports.plugins import PluginNotUsable
from kubetide.units.time import Instant, hours, minutes

DAY = 24 * 60


class Yesterday:
    """Forecasts what was a day before; a forecaster as another package would bring it."""

    name = "yesterday"

    def forecast(self, history, ahead, quantiles):
        predicted = history.loads[-DAY : len(history.loads) - DAY + ahead]
        if len(history.loads) < DAY:
            predicted = np.full((ahead, history.loads.shape[1]), np.nan, np.float32)
        return np.repeat(predicted[None] * 1.05, len(quantiles), axis=0)


class Broken:
    """Fails, or answers with a wrong shape."""

    name = "broken"

    def __init__(self, answer=None):
        self.answer = answer

    def forecast(self, history, ahead, quantiles):
        return [1.0 / 0.0] if self.answer is None else self.answer


class NotOne:
    """Has neither a name nor an answer."""


def waves(days=4, seed=3):
    """A load with a day's wave, beside one that wanders without any."""
    steps = np.arange(days * DAY)
    wave = 20 + 15 * np.sin(2 * np.pi * steps / 240)
    wander = 20 + np.cumsum(np.random.default_rng(seed).normal(0, 0.2, len(steps)))
    return np.stack([wave, np.abs(wander)], axis=1).astype(np.float32)


def history(loads):
    return History(loads, minutes(1), Instant(START + len(loads) * minutes(1)))


def test_the_back_test_distinguishes_what_repeats():
    """On a wave that repeats the forecaster of yesterday is better than the level, on a random walk it is not."""
    found = backtest(Yesterday(), history(waves()), 70, 0.9)
    assert found.is_better.tolist() == [True, False]
    assert found.coverage[0] > 0.9


@pytest.mark.parametrize("loads", [np.zeros((3, 1)), np.full((5000, 1), 7.0), np.full((5000, 1), np.nan)])
def test_too_short_constant_and_missing_histories_are_refused(loads):
    """On three samples, a constant load or none at all nobody is better than the level."""
    assert not backtest(Yesterday(), history(loads.astype(np.float32)), 70, 0.9).is_better.any()


def test_the_calendar_is_a_forecaster():
    """Given a history with an onset each hour, every quantile names its size at its time, and nothing else."""
    loads = np.where(np.arange(300) % 60 < 5, 30.0, 10.0)[:, None].astype(np.float32)
    found = CalendarForecaster().forecast(history(loads), 20, (0.5, 0.9))
    assert found.shape == (2, 20, 1)
    assert found[0, 0, 0] == found[1, 0, 0] == 30.0
    assert np.isnan(found[0, 15:]).all()


def test_a_forecaster_is_loaded_by_name_or_is_refused():
    """One of a module is named as module:attribute; what is no forecaster, or is not there, is an error."""
    assert load_forecaster("calendar").name == "calendar"
    assert load_forecaster(f"{__name__}:Yesterday").name == "yesterday"
    with pytest.raises(PluginNotUsable, match="is no forecaster"):
        load_forecaster(f"{__name__}:NotOne")
    with pytest.raises(PluginNotUsable, match="there is no 'prophet'"):
        load_forecaster("prophet")


def test_pods_are_held_only_for_the_workload_whose_past_repeats():
    """Before the wave rises its pods are there and say who forecast them; those of the random walk are left alone."""
    loads = waves()
    forecasts: Forecasts[str] = Forecasts(10.0, Yesterday())
    held = {"wave": 0, "walk": 0}
    for step, (wave, walk) in enumerate(loads.tolist()):
        now = Instant(START + step * minutes(1))
        for key, load in (("wave", wave), ("walk", walk)):
            ahead = forecasts.ahead(key, now)
            held[key] += ahead.by == "yesterday" and ahead.load > load
        forecasts.take([("wave", Seen(wave, 20, 20)), ("walk", Seen(walk, 20, 20))], now)
    assert held["wave"] > 100
    assert held["walk"] <= held["wave"] / 10


@pytest.mark.parametrize("answer", [None, np.zeros((1, 3, 7)), "text"])
def test_a_forecaster_that_fails_is_ignored(answer):
    """Neither an error nor a wrong shape ends the loop: nothing is forecast, and the reason is reported."""
    stage = SecondStage(Broken(answer), minutes(1), 2)
    for step, row in enumerate(waves(days=1)):
        stage.advance(START // minutes(1) + step, row)
    assert not stage.used.any()
    assert stage.problem.startswith("the forecaster broken")


def test_what_is_dumped_of_a_second_stage_goes_on():
    """A slot that was restored forecasts what it did."""
    one, other = (SecondStage(Yesterday(), minutes(1), 2) for _ in range(2))
    for step, row in enumerate(waves(days=3)):
        one.advance(START // minutes(1) + step, row)
    for slot in (0, 1):
        other.restore(slot, one.dump(slot))
    assert one.used.tolist() == other.used.tolist()
    assert one.most(5)[0].tolist() == other.most(5)[0].tolist()
    assert one.most(5)[0][0] > 0
    assert hours(1) // one.step == 60
