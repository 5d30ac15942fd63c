"""Headroom learned from a load's own errors: used where it would have been better on the own past, and refused else."""

from __future__ import annotations

import numpy as np
import pytest
from tests.forecast.loads import Player

from kubetide.forecast.headroom import LEAST_STEPS, Headroom, within
from kubetide.units.time import hours, minutes

STEPS = LEAST_STEPS + 120
FIRST = 1000
LOADS = ("slow wave", "constant", "wild noise", "rare jumps", "unknown", "no target")


def loads(seed=3):
    """Return (steps, loads) means and peaks of the loads by name, about 60 pods each, and the share of each."""
    rng = np.random.default_rng(seed)
    at = np.arange(STEPS)
    means = np.empty((STEPS, len(LOADS)), np.float32)
    means[:, :] = 60.0
    means[:, 0] += 20 * np.sin(2 * np.pi * at / 720)
    means[:, 2] *= np.exp(rng.normal(0, 0.5, STEPS))
    means[:, 3] *= np.where(rng.random(STEPS) < 0.01, 4, 1)
    means[:, 4] = np.nan
    means[:, 5] = means[:, 0]
    share = np.full(len(LOADS), 0.7, np.float32)
    share[5] = 0
    return means, means * 1.02, share


@pytest.fixture(scope="module")
def played():
    """A day and two hours of all loads."""
    headroom = Headroom(len(LOADS))
    means, peaks, share = loads()
    for at in range(STEPS):
        headroom.advance(FIRST + at, means[at], peaks[at], share)
    return headroom


def test_it_is_used_only_where_the_own_past_says_so(played):
    """Smooth load needs less headroom than the target leaves; noise and rare jumps gain nothing, and without a known load or a target there is no headroom."""
    assert dict(zip(LOADS, played.used.tolist(), strict=True)) == {
        "slow wave": True,
        "constant": True,
        "wild noise": False,
        "rare jumps": False,
        "unknown": False,
        "no target": False,
    }
    for slot in (0, 1):
        score = played.score(slot)
        assert score.pods < 0.97 * score.plain_pods
        assert score.short <= score.plain_short


def test_the_score_is_that_of_the_replicas_it_would_have_desired():
    """The pods of the plain target, and the minutes in which they would have been too few, equal a count by hand."""
    means, peaks, share = loads()
    headroom = Headroom(len(LOADS))
    peak = peaks[:200, 3]
    for at in range(200):
        headroom.advance(FIRST + at, means[at], peaks[at], share)
    asked = np.ceil(peak / 0.7 - 1e-4)
    needed = np.array([asked[max(0, at - 9) : at + 1].max() for at in range(200)])
    scored = headroom.score(3).steps
    weights = 0.5 ** (np.arange(scored)[::-1] / (48 * 60))
    assert headroom.score(3).plain_pods == pytest.approx(
        float((weights * needed[195 - scored : 195]).sum()), rel=1e-3
    )
    short = peak[200 - scored :] > needed[195 - scored : 195]
    assert short.any()
    assert headroom.score(3).plain_short == pytest.approx(float((weights * short).sum()), rel=1e-3)


def test_a_day_is_scored_before_it_is_used():
    """An hour before a load has the least number of scored steps its headroom is not used."""
    means, peaks, share = loads()
    headroom = Headroom(len(LOADS))
    for at in range(LEAST_STEPS - 60):
        headroom.advance(FIRST + at, means[at], peaks[at], share)
    assert not headroom.used.any()


def test_a_gap_is_no_error():
    """A load that comes back elsewhere after unknown steps has not risen above its line, and stays in use."""
    headroom = Headroom(1)
    load, share, unknown = np.full(1, 60.0, np.float32), np.full(1, 0.7, np.float32), np.full(1, np.nan)
    for at in range(STEPS):
        headroom.advance(FIRST + at, load, load, share)
    factor = headroom.factor[0, 0]
    for at in range(STEPS, STEPS + 30):
        headroom.advance(FIRST + at, unknown, unknown, share)
    assert headroom.capacity[0] == 0
    for at in range(STEPS + 40, STEPS + 60):
        headroom.advance(FIRST + at, 2 * load, 2 * load, share)
    assert headroom.factor[0, 0] == pytest.approx(factor, rel=0.03)
    assert headroom.capacity[0] == pytest.approx(2 * 60 * factor, rel=0.05)


def test_what_is_dumped_goes_on(played):
    """A slot that was restored elsewhere says the same; another index, and another size, change nothing."""
    means, peaks, share = loads(seed=4)
    other = Headroom(3)
    other.restore(1, played.dump(0))
    for at in range(30):
        load, peak = np.zeros(3, np.float32), np.zeros(3, np.float32)
        load[1], peak[1] = means[at, 0], peaks[at, 0]
        played.advance(FIRST + STEPS + at, means[at], peaks[at], share)
        other.advance(FIRST + STEPS + at, load, peak, np.full(3, 0.7, np.float32))
        assert (other.capacity[1], other.used[1]) == (played.capacity[0], played.used[0])
    late = Headroom(1)
    late.advance(5, load[:1], load[:1], share[:1])
    late.restore(0, played.dump(0))
    assert not late.used.any()


def test_bounds_are_around_the_target():
    """At 70 % pods end between 50 and 80 % of full use, at 90 % between 64 and 95."""
    for share, least, most in ((0.7, 0.5, 0.8), (0.9, 0.643, 0.95)):
        assert 100 / float(within(0.0, 100.0, share)) == pytest.approx(most)
        assert 100 / float(within(1e9, 100.0, share)) == pytest.approx(least, rel=1e-3)


def test_ticks_are_gathered_and_a_rollout_is_left_out():
    """Forecasts hand on what they see; what is seen in a rollout is not learned from."""
    player = Player(tick=minutes(1), headroom=True)
    player.run(lambda _: 60.0, hours(26))
    assert player.forecasts.capacity("web") == pytest.approx(60, rel=0.1)
    scored = player.forecasts.headroom_score("web").steps
    player.run(lambda _: 120.0, minutes(30), rolling=True)
    assert player.forecasts.headroom_score("web").steps == scored + 1, "but for the step that was not over"
    again = Player(start=player.now, headroom=True)
    again.forecasts.put("web", player.forecasts.dump("web"))
    assert again.forecasts.headroom_score("web") == player.forecasts.headroom_score("web")
    player.forecasts.forget("web")
    assert player.forecasts.capacity("web") is None
