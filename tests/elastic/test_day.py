"""The shipped day of an ElasticWorkload: all its sections at work beside one another."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import load_scenario

EXAMPLE = Path(__file__).parents[2] / "examples" / "elastic-day.yaml"


def test_floors_hold_on_the_working_day_and_not_on_the_holiday(tmp_path):
    """Six pods from 08:30 in Berlin although two would do; no OOM kill, no request lost; the holiday has the load's number.

    The shipped scenario at a slower pace, without nodes and evictions: a step and a tick in five minutes.
    """
    shipped = load_scenario(EXAMPLE)
    loops = ("elastic", "schedules", "horizontal", "recommender")
    flags = dict.fromkeys(
        ("horizontal-pod-autoscaler-sync-period", "schedules-period", "recommender-interval"), "5m"
    )
    one = msgspec.structs.replace(shipped, step="5m", loops=loops, flags=flags)
    result = run_simulation(one, base=EXAMPLE.parent, out=tmp_path, seed=1, warn=pytest.fail)
    assert result.violations == ()
    pods = result.timeline.services["shop"].desired
    at = {hour: pods[hour * 12] for hour in range(34)}
    assert at[7] < 6
    assert min(at[hour] for hour in range(8, 17)) >= 6
    assert max(pods[22 * 12 :][: 6 * 12]) <= 4  # from 21:00 UTC the night's ceiling holds
    assert at[24 + 8] < 6
    assert result.summary.services[0].oom_kills == 0
    assert result.summary.services[0].slo_minutes_lost == 0
