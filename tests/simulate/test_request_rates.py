"""An HPA on a rate of requests, end to end: what is forecast is the demand, also where the pods serve less of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.simulate.worlds import MANIFEST, small

from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import ExternalMetricSpec, LoadSpec
from kubetide.web.history import History

EACH = 20
"""Requests/s that a pod serves at its CPU limit."""
PEAK = 15 * EACH
EVERY_S, JUMP_S = 1800, 600
CPU = "  - type: Resource\n    resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}\n"
RATES = {
    "cpu": CPU,
    "object": "  - type: Object\n    object: {metric: {name: requests_per_second}, describedObject: {apiVersion: apps/v1, "
    f"kind: Deployment, name: web}}, target: {{type: AverageValue, averageValue: {7 * EACH // 10}}}}}\n",
    "external": "  - type: External\n    external: {metric: {name: rps}, "
    f"target: {{type: AverageValue, averageValue: {7 * EACH // 10}}}}}\n",
    "pods": "  - type: Pods\n    pods: {metric: {name: http_requests_per_second}, "
    f"target: {{type: AverageValue, averageValue: {7 * EACH // 10}}}}}\n",
}


def played(metric, folder):
    """An hour and a half in which the load jumps from 5 to 15 pods' worth every half an hour, for 5 minutes."""
    minutes = [PEAK if 0 <= 60 * minute % EVERY_S - JUMP_S < 300 else 5 * EACH for minute in range(92)]
    (folder / "load.txt").write_text("".join(f"{one}\n" for one in minutes))
    load = LoadSpec(trace="load.txt", step="1m")
    manifest = (
        MANIFEST.replace(
            "metadata: {name: web}\nspec:\n  scaleTargetRef",
            "metadata: {name: web, annotations: {horizontal.kubetide.io/forecast: calendar}}\nspec:\n  scaleTargetRef",
        )
        .replace("maxReplicas: 8", "maxReplicas: 40")
        .replace("memory: 128Mi}", "memory: 128Mi}, limits: {cpu: 200m}")
        .replace(CPU, RATES[metric])
    )
    plain = small(duration="90m", nodes=4)
    scenario = replace(
        plain,
        services=(replace(plain.services[0], load=load),),
        manifests=(manifest,),
        external_metrics=(ExternalMetricSpec(metric="rps", load=load),),
    )
    result = run_simulation(scenario, base=folder, out=folder, seed=1, warn=pytest.fail)
    past = History(folder).past(kind="forecast", name="", figure="", at="", window="", points=5000)
    return result, {one.figure: one for one in past.lines}


@pytest.mark.parametrize(
    ("metric", "shows_all"), [("object", True), ("external", True), ("pods", False), ("cpu", False)]
)
def test_a_rate_that_is_counted_where_it_arrives_forecasts_all_of_the_demand(metric, shows_all, tmp_path):
    """At the first jump it shows what no pod serves yet, as CPU and pods' own figures do not; then jumps are forecast."""
    result, lines = played(metric, tmp_path)
    begin, web = result.summary.start / 1e9, result.timeline.services["web"]
    came = [
        value
        for time, value in zip(lines["came"].times, lines["came"].values, strict=True)
        if time >= begin + JUMP_S
    ]
    assert (came[0] == pytest.approx(PEAK / EACH)) == shows_all
    forecast = [
        (time - begin, one)
        for time, one in zip(lines["forecast"].times, lines["forecast"].values, strict=True)
        if one
    ]
    assert 2 * EVERY_S < forecast[0][0] < 2 * EVERY_S + JUMP_S, "two jumps forecast the third one"
    assert forecast[0][1] == pytest.approx(PEAK / EACH, rel=0.05)
    bad = [sum(web.violated[jump * EVERY_S // 15 : (jump + 1) * EVERY_S // 15]) for jump in range(3)]
    assert bad[0] > 4
    assert bad[1] > 0
    assert bad[2] == 0, "at the third one the pods are there"
