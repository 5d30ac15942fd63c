"""Recorded load from end to end, held against a reference computation with the same definitions.

The reference steps through the trace in plain arithmetic: 15 s steps, usage spread evenly over
ready pods, the HPA's rules with target 70 %, pods ready 60 s after they are made, a pod billed from
its creation. With exact utilisation it gives 232149.0 pod-minutes for the fourteen days of World
Cup 98 and 2153.0 for the hour of Autothrottle's diurnal-2, and no SLO minute lost in either.

Kubetide comes to 231924.75 (0.1 % less) and 2102.5 (2.35 % less). The difference on diurnal-2 is
the whole percent: HPA v1.36 cuts utilisation down to a whole percent before it takes the ratio, so
that 77.x of 70 stays within the tolerance of 0.1. The reference with that cut gives 2103.75; below
is that reference, so that both halves of the explanation stay checked.

The fourteen days take about 45 s of CPU, so they are played with KUBETIDE_LONG=1 only. One of them, that of
the match that opened the Cup, is played always, and so is the reference over all fourteen.
"""

from __future__ import annotations

import gzip
import math
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import load_scenario

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"


WORLD_CUP = "worldcup98/requests_per_minute_1998-04-30_to_06-20.csv.gz"
FIRST_DAY = datetime(1998, 6, 7, tzinfo=UTC)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "trace", "pod_minutes"),
    [
        pytest.param("autothrottle.yaml", "autothrottle/diurnal-2.txt.gz", 2153.0, id="autothrottle"),
        pytest.param("worldcup98.yaml", WORLD_CUP, 232149.0, id="worldcup", marks=pytest.mark.long),
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


@pytest.mark.slow
def test_a_day_of_the_world_cup(tmp_path):
    """The day of the opening match: pod-minutes agree with the reference to 1 %."""
    path = DATA / WORLD_CUP
    if not path.is_file():
        pytest.skip("the trace of the World Cup is not beside the checkout")
    first = FIRST_DAY + timedelta(days=3)
    scenario = load_scenario(ROOT / "examples" / "worldcup98.yaml", trace=path)
    load = scenario.services[0].load
    window = (f"{first:%Y-%m-%dT%H:%M:%SZ}", f"{first + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}")
    service = replace(scenario.services[0], load=replace(load, window=window))
    scenario = replace(scenario, start=window[0], duration="24h", services=(service,))
    result = run_simulation(scenario, base=ROOT / "examples", out=tmp_path, seed=1, warn=pytest.fail)
    (summary,) = result.summary.services
    rates = world_cup(path, first, 1)
    expected = reference(rates, whole_percent=True, value_s=60, per_pod=50.0, first=2)
    assert summary.pod_minutes == pytest.approx(expected, rel=0.01)
    # It begins with two pods under the load of a night of the Cup.
    (series,) = result.timeline.services.values()
    assert not any(series.violated[10 * 4 :])
    assert result.violations == ()
    assert summary.replicas_max >= 10


def test_the_reference_of_the_fourteen_days():
    """The plain computation gives the published pod-minutes exactly."""
    path = DATA / WORLD_CUP
    if not path.is_file():
        pytest.skip("the trace of the World Cup is not beside the checkout")
    rates = world_cup(path, FIRST_DAY, 14)
    assert reference(rates, whole_percent=False, value_s=60, per_pod=50.0, first=2) == 232149.0


def world_cup(path: Path, first: datetime, days: int) -> list[float]:
    """Requests/s, a value a minute; the last value holds through missing minutes."""
    rows = (line.split(",") for line in gzip.decompress(path.read_bytes()).decode().splitlines()[1:])
    known = {datetime.fromisoformat(minute).replace(tzinfo=UTC): float(count) for minute, count in rows}
    rates, last = [], 0.0
    for minute in range(days * 24 * 60):
        last = known.get(first + timedelta(minutes=minute), last)
        rates.append(last / 60)
    return rates


def reference(
    rates: list[float], *, whole_percent: bool, value_s: int = 1, per_pod: float = 10.0, first: int = 16
) -> float:
    """Pod-minutes of requests/s, one value each ``value_s``, from ``first`` pods of ``per_pod`` requests/s each."""
    step_s, ready_after_s, window_s = 15, 60, 300
    made = [-ready_after_s] * first
    recommended: list[tuple[int, int]] = []
    pod_minutes = 0.0
    for begin in range(0, len(rates) * value_s, step_s):
        now = begin + step_s
        ready = sum(one + ready_after_s <= begin for one in made)
        pods = len(made)
        pod_minutes += pods * step_s / 60
        load = sum(rates[second // value_s] for second in range(begin, now)) / step_s
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
        desired = max(1, min(desired, max(pods * 2, pods + 4)))
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
