"""Each danger and its guard."""

from __future__ import annotations

from tests.forecast.loads import LEARNED, TICK, Player, hourly

from kubetide.forecast.forecasts import MOST_OF_DAY, Forecasts
from kubetide.forecast.rows import Seen
from kubetide.units.time import Instant, hours, minutes


def test_runaway_is_capped_by_the_last_day():
    """A wild spike that came three times two days ago holds at most twice the highest load of the last day."""
    quiet = Player(tick=minutes(1))
    quiet.run(lambda minute: 5000.0 if minute % 1440 < 5 and minute < 3 * 1440 else 10.0, hours(24 * 4 + 12))
    held = quiet.run(lambda _: 10.0, hours(36))
    assert max(held) <= MOST_OF_DAY * 10 * 1.1 + 1


def test_new_pods_that_do_not_lower_the_load_end_the_boost():
    """A load that stays at the limit however many pods come no longer counts more; once it falls, it does again."""
    player = Player()
    replicas = 4
    for _ in range(20):
        if player.forecasts.may_boost("web"):
            replicas *= 2
        player.tick(float(replicas), saturated=True, replicas=replicas)
    assert replicas <= 4 * 2**6
    player.tick(float(replicas), saturated=False)
    assert player.forecasts.may_boost("web")


def test_spikes_that_are_over_when_pods_come_end_the_boost():
    """A load counts more at its limit only where it used to stay until there were pods for it."""
    spikes, bursts = Player(tick=minutes(1)), Player(tick=minutes(1))

    def play(player, afterwards):
        for _ in range(3):
            player.run(lambda _: 5.0, minutes(50))
            for load in (8.0, 11.0):
                player.tick(load, saturated=True)
            player.run(lambda _: afterwards, minutes(8))

    assert spikes.forecasts.may_boost("web")
    play(spikes, 4.0)
    play(bursts, 12.0)
    assert not spikes.forecasts.may_boost("web")
    assert bursts.forecasts.may_boost("web")
    again = Player(start=spikes.now)
    again.forecasts.put("web", spikes.forecasts.dump("web"))
    assert not again.forecasts.may_boost("web"), "a restart remembers"
    play(spikes, 12.0)
    assert spikes.forecasts.may_boost("web")


def test_an_outage_holds_the_pods_and_teaches_nothing():
    """The load falls to nothing for ten minutes and comes back at once: pods are held, and no onset is learned."""
    player = Player()
    player.run(lambda _: 20.0, hours(2))
    held = player.run(lambda _: 0.0, minutes(10))
    assert held[-1] == 22
    player.run(lambda _: 20.0, hours(1))
    assert player.pods[-1] == 0
    assert not player.forecasts.calendar.onsets.any()


def test_an_outage_does_not_hold_for_ever():
    """After half an hour the HPA has its way."""
    player = Player()
    player.run(lambda _: 20.0, hours(2))
    held = player.run(lambda _: 0.0, minutes(45))
    assert held[minutes(25) // TICK] == 22
    assert held[-1] == 0


def test_a_workload_begins_with_nothing_of_one_that_is_gone():
    """The slot of a deleted workload goes to the next one, which has neither its highest load nor its window."""
    forecasts, now = Forecasts(0.25), Instant(minutes(1))
    for _ in range(3):
        now = Instant(now + minutes(1))
        forecasts.take([("old", Seen(500.0, 700, 700))], now)
    assert forecasts.most_of_day("old") == 1000
    forecasts._held_longer[0] = False
    forecasts.forget("old")
    forecasts.take([("new", Seen(2.0, 3, 3))], now)
    assert forecasts.most_of_day("new") == 0
    assert forecasts.holds_longer("new")


def test_a_load_below_zero_is_no_load():
    """An external metric below zero, as a difference may be, is no outage that holds fewer than no pods."""
    player = Player(tick=minutes(1))
    player.run(lambda minute: 5.0 if minute % 20 > 16 else -10.0, hours(2))
    assert min(player.pods) == min(player.nodes) == 0


def test_the_end_of_a_burst_is_no_outage():
    """A burst that ends in a step goes back to what there was before it: nothing is held."""
    player = Player()
    player.run(lambda minute: 40.0 if 120 <= minute < 126 else 10.0, hours(3))
    assert not any(player.pods)


def test_a_rollout_teaches_nothing():
    """Each new version doubles the load for three minutes; without the guard that is learned as an onset."""
    for rolling, learned in ((True, False), (False, True)):
        player = Player()
        for _ in range(5):
            player.run(lambda _: 10.0, minutes(50))
            player.run(lambda _: 20.0, minutes(3), rolling=rolling)
            player.run(lambda _: 10.0, minutes(7))
        assert any(player.pods) is learned


def test_bursts_from_zero_stay_within_the_budget():
    """Forecast bursts of a service that is idle else cost no more than the budget and the first credit."""
    free, bound = Player(budget=10.0), Player(budget=0.05)
    load = hourly(low=0.5, high=60.0, at=0, long=1)
    for player in (free, bound):
        player.run(load, hours(30))
    spent = {player: player.forecasts.score("web").pod_minutes for player in (free, bound)}
    asked = sum(max(1, round(load(at // 4) / 0.7)) for at in range(30 * 240)) / 4
    assert spent[bound] <= 0.05 * asked + 60 + 2 * 66 * 10
    assert spent[bound] < spent[free]


def test_missing_metrics_freeze_and_teach_nothing():
    """While metrics are missing nothing is learned, and their return is no onset."""
    player = Player()
    player.run(lambda _: 10.0, hours(1))
    player.run(lambda _: None, minutes(20))
    player.run(lambda _: 30.0, hours(1))
    assert not player.forecasts.calendar.onsets.any()
    assert not any(player.pods)


def test_a_restart_with_its_memory_goes_on_and_without_it_is_silent():
    """A restart with its memory still forecasts; without memory the HPA is alone until the load is learned again."""
    player = Player()
    player.run(hourly(), LEARNED + minutes(10))
    memory = player.forecasts.dump("web")
    with_memory, without = Player(start=player.now), Player(start=player.now)
    with_memory.forecasts.put("web", memory)
    for one in (player, with_memory, without):
        one.run(lambda minute: hourly()(minute + 10), hours(1))
    assert with_memory.pods == player.pods[-len(with_memory.pods) :]
    assert any(with_memory.pods)
    assert not any(without.pods)


def test_a_workload_that_is_forgotten_leaves_nothing_behind():
    """A new workload in place of a deleted one begins without a memory."""
    player = Player()
    player.run(hourly(), LEARNED)
    player.forecasts.forget("web")
    player.run(hourly(), hours(1))
    assert not any(player.pods[-240:])


def test_workloads_do_not_mix():
    """Each of many workloads is forecast what it is forecast alone."""
    alone = Player()
    alone.run(hourly(), hours(5))
    together: Forecasts[int] = Forecasts(10.0)
    now = Instant(alone.now - hours(5))
    held = []
    for at in range(hours(5) // TICK):
        now = Instant(now + TICK)
        held.append(together.ahead(3, now).pods)
        load = hourly()(at * TICK // minutes(1))
        seen = [(key, Seen(load if key == 3 else float(key), 10, 10)) for key in range(9)]
        together.take(seen, now)
    assert any(held)
    assert all(not together.ahead(key, now).pods for key in range(9) if key != 3)
