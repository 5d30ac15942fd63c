"""Recorded load from end to end, held against a reference computation with the same definitions.

The reference steps through the trace in plain arithmetic: 15 s steps, usage spread evenly over
ready pods, the HPA's rules with target 70 %, pods ready 60 s after they are made, a pod billed from
its creation. With exact utilisation it gives 232149.0 pod-minutes for the fourteen days of World
Cup 98 and 2153.0 for the hour of Autothrottle's diurnal-2, and no SLO minute lost in either.

Kubetide comes to 231924.75 (0.1 % less) and 2102.5 (2.35 % less). The difference on diurnal-2 is
the whole percent: HPA v1.36 cuts utilisation down to a whole percent before it takes the ratio, so
that 77.x of 70 stays within the tolerance of 0.1. The reference with that cut gives 2103.75; below
is that reference, so that both halves of the explanation stay checked.

The World Cup takes about 45 s of CPU, diurnal-2 one second.
"""

from __future__ import annotations

import gzip
import math
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
    assert service.pod_minutes == pytest.approx(pod_minutes, rel=0.03)
    assert service.slo_minutes_lost == 0
    assert service.replicas_max >= 10
    assert result.violations == ()


def reference(rates: list[float], *, whole_percent: bool) -> float:
    """Pod-minutes of an hour of requests/s, one value a second, from 16 pods of 10 requests/s each."""
    step_s, ready_after_s, window_s, per_pod = 15, 60, 300, 10.0
    made = [-ready_after_s] * 16
    recommended: list[tuple[int, int]] = []
    pod_minutes = 0.0
    for begin in range(0, 3600, step_s):
        now = begin + step_s
        ready = sum(one + ready_after_s <= begin for one in made)
        pods = len(made)
        pod_minutes += pods * step_s / 60
        load = sum(rates[begin:now]) / step_s
        percent = min(100.0, load / (ready * per_pod) * 100)
        ratio = (math.floor(percent) if whole_percent else percent) / 70
        desired = pods
        if abs(ratio - 1) > 0.1 and ratio > 1:
            # Pods that are not ready count as idle when it goes up; the tolerance is asked once more then.
            careful = ratio * ready / pods
            if ready == pods or (careful > 1 and abs(careful - 1) > 0.1):
                desired = max(pods, math.ceil(careful * pods - 1e-12))
        elif abs(ratio - 1) > 0.1:
            desired = min(pods, math.ceil(ratio * ready - 1e-12))
        recommended = [(at, count) for at, count in recommended if at > now - window_s] + [(now, desired)]
        if desired < pods:
            desired = max(count for _, count in recommended)
        desired = min(desired, max(pods * 2, pods + 4))
        made = made + [now] * (desired - pods) if desired > pods else sorted(made)[:desired]
    return pod_minutes


@pytest.mark.slow
def test_whole_percents_explain_the_difference_on_diurnal_2(tmp_path):
    """The reference gives 2153.0 with exact utilisation; with whole percents it and the run agree to 0.1 %."""
    path = DATA / "autothrottle" / "diurnal-2.txt.gz"
    if not path.is_file():
        pytest.skip("the trace of Autothrottle is not beside the checkout")
    rates = [float(line) for line in gzip.decompress(path.read_bytes()).split()]
    assert reference(rates, whole_percent=False) == 2153.0
    scenario = load_scenario(ROOT / "examples" / "autothrottle.yaml", trace=path)
    result = run_simulation(scenario, base=ROOT / "examples", out=tmp_path, seed=1, warn=pytest.fail)
    (service,) = result.summary.services
    assert service.pod_minutes == pytest.approx(reference(rates, whole_percent=True), rel=0.001)
