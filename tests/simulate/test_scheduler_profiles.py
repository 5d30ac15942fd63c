"""A scenario's flags and scheduler profile change where pods and nodes are."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.simulate.worlds import small

from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import NodeGroupSpec, Scenario, start_of
from kubetide.simulate.world import World
from kubetide.units.time import Instant, minutes

CROWD = """apiVersion: apps/v1
kind: Deployment
metadata: {name: crowd}
spec:
  replicas: 12
  selector: {matchLabels: {app: crowd}}
  template:
    metadata: {labels: {app: crowd}}
    spec:
      containers:
      - name: main
        image: web
        resources: {requests: {cpu: 900m, memory: 128Mi}}
"""


def run(scenario: Scenario, out: Path):
    return run_simulation(scenario, base=Path("unused"), out=out, seed=1, warn=pytest.fail)


@pytest.mark.parametrize(("balances", "sizes"), [(True, [3, 3]), (False, None)])
def test_like_groups_grow_alike(tmp_path, balances, sizes):
    """With --balance-similar-node-groups two groups that differ in name and zone alone end at the same size."""
    groups = tuple(
        NodeGroupSpec(name=name, instance_type="m5.large", min=1, max=9, zone=zone)
        for name, zone in (("a", "zone-a"), ("b", "zone-b"))
    )
    flags = {"balance-similar-node-groups": balances, "expander": "least-nodes"}
    scenario = replace(
        small(duration="12m"), node_groups=groups, services=(), manifests=(CROWD,), flags=flags
    )
    nodes = run(scenario, tmp_path).timeline.nodes
    last = [nodes["a"][-1], nodes["b"][-1]]
    assert sum(last) >= 6
    if sizes is not None:
        assert abs(last[0] - last[1]) <= 1
    else:
        assert abs(last[0] - last[1]) > 1


def test_an_empty_group_is_like_one_with_nodes(tmp_path):
    """A group at zero takes its part, as its template has the labels that nodes of the other one have."""
    groups = tuple(
        NodeGroupSpec(name=name, instance_type="m5.large", min=least, max=9, zone=zone)
        for name, least, zone in (("a", 1, "zone-a"), ("b", 0, "zone-b"))
    )
    flags = {"balance-similar-node-groups": True, "expander": "least-nodes"}
    scenario = replace(
        small(duration="12m"), node_groups=groups, services=(), manifests=(CROWD,), flags=flags
    )
    nodes = run(scenario, tmp_path).timeline.nodes
    assert abs(nodes["a"][-1] - nodes["b"][-1]) <= 1


def test_a_profile_that_packs_frees_nodes(tmp_path):
    """With mostAllocated the same pods are on no more nodes than with the default profile."""
    hours = {}
    for profile in ("default", "mostAllocated"):
        scenario = replace(small(duration="1h"), scheduler=profile)
        result = run(scenario, tmp_path / profile)
        assert result.violations == ()
        hours[profile] = sum(result.timeline.nodes["general"])
    assert hours["mostAllocated"] <= hours["default"]


SERVICE = """apiVersion: v1
kind: Service
metadata: {name: pair}
spec: {selector: {app: pair}}
"""
POD = """apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: APP}}
spec:
  containers:
  - name: main
    image: web
    resources: {requests: {cpu: CPU, memory: 64Mi}}
"""


def placed(*manifests: str) -> dict[str, str]:
    """Play ten minutes of two nodes and return where each pod of the manifests ends."""
    scenario = replace(small(nodes=2), loops=("horizontal",), services=(), manifests=manifests)
    worlds = []

    async def main(clock):
        end = Instant(start_of(scenario) + minutes(10))
        worlds.append(World(scenario, clock, base=Path(), end=end, seed=1, recorder=NullRecorder()))
        await worlds[0].run()

    run_virtual(main, start=start_of(scenario))
    return {pod.metadata.name: pod.spec.node_name for pod in worlds[0].pods.objects.values()}


@pytest.mark.parametrize("served", [True, False])
def test_pods_of_a_service_are_spread(served):
    """Pods without owner are spread where a Service selects them, even onto the fuller node."""
    pods = [
        POD.replace("NAME", name).replace("APP", app).replace("CPU", cpu)
        for name, app, cpu in (("a", "pair", "100m"), ("b", "other", "200m"), ("c", "pair", "100m"))
    ]
    found = placed(*([SERVICE] if served else []), *pods)
    assert found["a"] != found["b"]
    assert (found["c"] == found["b"]) is served
