"""The long window of scale-downs is used where it pays, and within its budget."""

from __future__ import annotations

import pytest
from tests.forecast.loads import Player

from kubetide.forecast.forecasts import Forecasts
from kubetide.units.time import hours


def spikes(every, length=2):
    """A load of 10 pods' worth that is 40 for ``length`` minutes, and again after ``every``."""
    return lambda minute: 40.0 if minute % every < length else 10.0


LOADS = {
    "spikes ten minutes apart": (spikes(10), True),
    "spikes an hour and a half apart": (spikes(90, 10), False),
    "a long wave": (lambda minute: 10.0 + abs(minute % 360 - 180) / 6, True),
    "steps that last": (lambda minute: (10.0, 20.0, 14.0, 30.0)[minute // 60 % 4], False),
    "constant": (lambda _: 10.0, True),
}


@pytest.mark.parametrize(("load", "pays"), LOADS.values(), ids=list(LOADS))
def test_it_pays_where_what_it_holds_is_needed_again(load, pays):
    """It pays if pods held beyond five minutes served the next spike; where none are held it cannot matter."""
    player = Player()
    player.run(load, hours(12))
    assert player.forecasts.holds_longer("web") == player.forecasts.long_window_pays("web") == pays


def test_it_is_used_at_first_and_comes_back_when_it_would_pay():
    """It is scored also while it is not used: a load whose spikes come close together has it again."""
    player = Player()
    assert player.forecasts.holds_longer("web")
    player.run(spikes(90, 10), hours(9))
    assert not player.forecasts.holds_longer("web")
    player.run(spikes(10), hours(3))
    assert player.forecasts.holds_longer("web")


def test_it_costs_no_more_than_its_budget():
    """With a budget of a twentieth the long window is used a part of the time, though it would pay all day."""
    used = {}
    for budget in (10.0, 0.05):
        player = Player(budget)
        used[budget] = 0
        for minute in range(24 * 60):
            player.run(lambda _, minute=minute: spikes(12)(minute), 60 * 10**9)
            used[budget] += player.forecasts.holds_longer("web")
        _, _, spent, asked = player.forecasts.dump("web").long_window
        assert spent <= budget * asked + 60 + 30
        assert player.forecasts.long_window_pays("web")
    assert 0 < used[0.05] < used[10.0] == 24 * 60


@pytest.mark.parametrize("disturbance", [{"rolling": True}, {"load": None}])
def test_disturbances_teach_nothing(disturbance):
    """Neither a rollout nor a time without metrics says that what was held was not needed."""
    load = spikes(90, 10)
    player = Player()
    if "load" in disturbance:
        player.run(lambda _: None, hours(9))
    else:
        player.run(load, hours(9), **disturbance)
    assert player.forecasts.holds_longer("web")
    assert player.forecasts.dump("web").long_window == (0.0, 0.0, 0.0, 0.0)


def test_its_score_is_remembered():
    """A dumped and restored score goes on; a workload that is forgotten begins anew."""
    player = Player()
    player.run(spikes(90, 10), hours(9))
    other = Forecasts(10.0)
    other.put("web", player.forecasts.dump("web"))
    assert not other.holds_longer("web")
    other.forget("web")
    assert other.holds_longer("web")
