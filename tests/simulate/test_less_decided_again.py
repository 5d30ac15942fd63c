"""Answers that skip decisions and objects equal those that decide everything."""

from __future__ import annotations

from functools import partial

import pytest
from msgspec.structs import replace
from tests.simulate.worlds import MANIFEST, small

from kubetide.nodes.core import NodesCore, encode_delta
from kubetide.nodes.records.export import export_state
from kubetide.runtime.recording.indexed_records import read_entries
from kubetide.simulate.answers.moments import Moments
from kubetide.simulate.answers.when import Moment, read_moment, start_of_records
from kubetide.simulate.answers.why import answer_about
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import DailySpec, LoadSpec
from kubetide.vertical.recommender.one_vpa import OneVpaCore

BUFFER = """
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: spare}
spec:
  scalableRef: {apiGroup: apps, kind: Deployment, name: web}
  replicas: 1
"""
VPA = """
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: NAME}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: TARGET}
  updatePolicy: {updateMode: "Off"}
"""


@pytest.mark.parametrize("buffers", [False, True])
def test_records_with_the_memory_spare_decisions(tmp_path, buffers):
    """A state that begins at the last record with the memory equals the state after all earlier decisions."""
    scenario = replace(
        small(duration="28m", nodes=4),
        flags={"scale-down-unneeded-time": "2m"}
        | (
            {"capacity-buffer-controller-enabled": True, "capacity-buffer-pod-injection-enabled": True}
            if buffers
            else {}
        ),
        manifests=(MANIFEST + (BUFFER if buffers else ""),),
    )
    run_simulation(scenario, base=tmp_path, out=tmp_path, seed=3, warn=pytest.fail)
    entries = list(Moments(tmp_path).entries("nodes"))
    assert [one.has_memory for one in entries].count(True) >= 3
    decided = NodesCore()
    last = entries[-1].tick
    for number, (entry, record) in enumerate(zip(entries, read_entries(entries), strict=True)):
        decided.apply(bytes(record.state), full=record.full)
        decided.decide(record.now)
        decided.absorb(bytes(record.outcomes), record.now)
        ends = entry.tick == last or entries[number + 1].now > entry.now
        if not ends or entry.tick % 17 > 1:
            continue
        with Moments(tmp_path).state("nodes", Moment(entry.now)) as state:
            assert isinstance(state.core, NodesCore)
            assert encode_delta(export_state(state.core.state)) == encode_delta(export_state(decided.state))


def test_one_vpa_is_followed_alone(tmp_path):
    """A core that follows one VPA decides as the whole core; VPAs that share pods are left to the whole core."""
    vpas = {"web": "web", "api": "api", "jobs": "jobs", "jobs-too": "jobs"}
    more = [MANIFEST.partition("---\n")[0].replace("web", name) for name in ("api", "jobs")]
    scenario = small(duration="50m")
    (service,) = scenario.services
    services = [
        replace(service, deployment=name, load=LoadSpec(daily=DailySpec(low=10, peak=60)))
        for name in ("api", "jobs")
    ]
    made = [VPA.replace("NAME", name).replace("TARGET", target) for name, target in vpas.items()]
    scenario = replace(
        scenario,
        loops=("horizontal", "nodes", "recommender"),
        services=(service, *services),
        manifests=(MANIFEST, *more, *made),
    )
    run_simulation(scenario, base=tmp_path, out=tmp_path, seed=2, warn=lambda _: None)
    whole, start = Moments(tmp_path), start_of_records(tmp_path)
    for moment in (None, *(read_moment(text, start) for text in ("2m", "9m", "31m30s"))):
        for name in vpas:
            alone, of_all = (
                answer_about(one, "vpa", name, namespace="default", at=moment) for one in (tmp_path, whole)
            )
            assert alone == of_all
            make = partial(OneVpaCore, ("default", name))
            with Moments(tmp_path).state("recommender", moment, alone=make) as state:
                assert isinstance(state.core, OneVpaCore) == ("jobs" not in name)
