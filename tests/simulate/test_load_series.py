"""Recorded load from end to end, held against a reference computation with the same definitions.

The reference steps through the trace in plain arithmetic: 15 s steps, usage spread evenly over
ready pods, HPA v1.36 rules with target 70 %, pods ready 60 s after they are made, a pod billed
from its creation. It gives 232149.0 pod-minutes for the fourteen days of World Cup 98 and 2153.0
for the hour of Autothrottle's diurnal-2, and no SLO minute lost in either.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenario import load_scenario

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "trace", "pod_minutes"),
    [
        pytest.param("autothrottle.yaml", "autothrottle/diurnal-2.txt.gz", 2153.0, id="autothrottle"),
        pytest.param(
            "worldcup98.yaml",
            "worldcup98/requests_per_minute_1998-04-30_to_06-20.csv.gz",
            232149.0,
            id="worldcup",
        ),
    ],
)
def test_a_recorded_load_costs_what_the_reference_says(tmp_path, example, trace, pod_minutes):
    """Pod-minutes agree with the reference to 3 %, no SLO minute is lost, ten replicas are reached."""
    path = DATA / trace
    if not path.is_file():
        pytest.skip(f"the trace {trace} is not beside the checkout")
    scenario = load_scenario(ROOT / "examples" / example, trace=path)
    result = run_simulation(scenario, base=ROOT / "examples", out=tmp_path, seed=1, warn=pytest.fail)
    service = result.summary.services[0]
    print(example, service)
    assert service.pod_minutes == pytest.approx(pod_minutes, rel=0.03)
    assert service.slo_minutes_lost == 0
    assert service.replicas_max >= 10
    assert result.violations == ()
