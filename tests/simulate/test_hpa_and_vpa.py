"""An HPA and a VPA on one service for a day with a burst."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import load_scenario
from kubetide.simulate.variants import variant_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "hpa-and-vpa.yaml"


@pytest.mark.slow
def test_replicas_beside_a_vpa_are_those_of_the_hpa_alone(tmp_path):
    """For 24 hours, step by step: no oscillation, and the memory request falls to what is used.

    The shipped scenario at a slower pace: a step and an HPA tick a minute.
    """
    shipped = load_scenario(EXAMPLE)
    found = {}
    for name in ("hpa", "hpa-and-vpa"):
        one = variant_of(shipped, name)
        loops = tuple(loop for loop in one.loops if loop != "nodes")
        flags = {**one.flags, "horizontal-pod-autoscaler-sync-period": "1m"}
        one = msgspec.structs.replace(one, step="1m", loops=loops, flags=flags)
        result = run_simulation(one, base=EXAMPLE.parent, out=tmp_path / name, seed=1, warn=pytest.fail)
        assert result.violations == ()
        found[name] = result
    alone, beside = (found[name].timeline.services["web"].desired for name in ("hpa", "hpa-and-vpa"))
    assert len(alone) == 24 * 60
    assert beside == alone
    hpa, both = (found[name].summary.services[0] for name in ("hpa", "hpa-and-vpa"))
    assert max(alone) > 3 * min(alone)
    assert both.turns <= 8
    assert both.memory_slack < hpa.memory_slack / 2
    assert both.oom_kills == both.slo_minutes_lost == 0
