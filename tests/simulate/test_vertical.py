"""The VPA loops in runs: guessed requests are set right, and an HPA beside them is left in peace."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from kubetide.cli.main import cli
from kubetide.objects.kinds import MUTATING_WEBHOOKS, PODS, VPAS
from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.answers.replay import replay
from kubetide.simulate.answers.when import read_moment
from kubetide.simulate.answers.why import explain_object
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import (
    BurstSpec,
    DailySpec,
    LoadSpec,
    NodeGroupSpec,
    Scenario,
    ServiceSpec,
    start_of,
)
from kubetide.simulate.world import World
from kubetide.units.time import after, format_rfc3339, hours, parse_duration

VPA = """apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  updatePolicy: {updateMode: %s}
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: web
        resources: {requests: {cpu: 100m, memory: 64Mi}}
"""
HPA = """apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 20
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}
"""
LOOPS = ("horizontal", "nodes", "recommender", "updater", "admission")


def scenario(*manifests, duration="40m", loops=LOOPS, low=20.0, peak=20.0, burst=None, **flags):
    load = LoadSpec(daily=DailySpec(low=low, peak=peak, burst=burst))
    return Scenario(
        name="vertical",
        duration=duration,
        node_groups=(NodeGroupSpec(name="general", instance_type="m5.large", min=1, max=10, initial=4),),
        services=(
            ServiceSpec(deployment="web", cpu_seconds_per_request=0.05, base_memory="300Mi", load=load),
        ),
        manifests=(DEPLOYMENT, *manifests),
        loops=loops,
        flags={name.replace("_", "-"): value for name, value in flags.items()},
    )


def played(one, base, look, lasting="45m"):
    """Run a world for that long, and return what ``look`` gives of it then."""

    async def main(clock):
        end = after(clock.now(), parse_duration(lasting))
        world = World(one, clock, base=base, end=end, seed=1, recorder=NullRecorder())
        await world.run()
        assert world.violations() == []
        return await look(world)

    return run_virtual(main, start=start_of(one))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["Recreate", "InPlaceOrRecreate"])
def test_running_pods_get_what_they_use(mode, tmp_path):
    """Pods that request a third of what they use request all of it after a while: replaced, or resized where they are."""

    async def look(world):
        pods = (await world.cluster.list(PODS)).items
        vpa = await world.cluster.get(VPAS, "web", namespace="default")
        hooks = [one.metadata.name for one in (await world.cluster.list(MUTATING_WEBHOOKS)).items]
        return pods, vpa, hooks

    pods, vpa, hooks = played(scenario(VPA % mode, scale_down_enabled=False), tmp_path, look)
    assert hooks == ["vpa-webhook-config"]
    assert {one.type: one.status for one in vpa.status.conditions} == {"RecommendationProvided": "True"}
    live = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    assert len(live) == 3
    for pod in live:
        marks = pod.metadata.annotations or {}
        assert ("vpaInPlaceUpdated" in marks) == (mode == "InPlaceOrRecreate")
        assert ("vpaUpdates" in marks) == (mode == "Recreate")
        cpu = pod.spec.containers[0].resources.requests["cpu"]
        assert int(cpu.removesuffix("m")) > 300


def test_a_vpa_of_a_run_without_its_loops_is_stored(tmp_path):
    """Its kind is defined by itself; nothing acts on it."""

    async def look(world):
        return await world.cluster.get(VPAS, "web", namespace="default")

    one = scenario(VPA % "Recreate", loops=("horizontal",))
    assert played(one, tmp_path, look).status.recommendation is None


def test_the_answer_about_a_vpa_has_its_pods(tmp_path):
    """What the recommender says ends with what the updater says of the pods, at the same time; without it, nothing does."""
    for name, loops in (("both", LOOPS), ("alone", ("horizontal", "recommender"))):
        run_simulation(
            scenario(VPA % "Recreate", duration="6m", loops=loops),
            base=tmp_path,
            out=tmp_path / name,
            seed=3,
            warn=pytest.fail,
        )
    both, alone = (
        explain_object(tmp_path / name, "vpa", "web", namespace="default", at=None).splitlines()[1]
        for name in ("both", "alone")
    )
    assert re.fullmatch(r"  It recommends cpu \S+ and memory \S+ for main: nothing holds it back\.", alone)
    assert re.fullmatch(
        r"  It recommends cpu \S+ and memory \S+ for main: nothing holds it back\. .* 3 pods .*", both
    )


@pytest.mark.parametrize("hpa", [(), (HPA,)])
def test_a_workload_is_answered_by_its_hpa_or_else_by_its_vpa(tmp_path, hpa):
    """What scales replicas comes first; where both are there, the answer names the other."""
    loops = ("horizontal", "recommender")
    run_simulation(
        scenario(VPA % "'Off'", *hpa, duration="3m", loops=loops),
        base=tmp_path,
        out=tmp_path / "out",
        seed=3,
        warn=pytest.fail,
    )
    asked = CliRunner().invoke(cli, ["explain", "deploy", "web", "--out", str(tmp_path / "out")])
    assert asked.stdout.startswith(f"{'hpa' if hpa else 'vpa'} default/web at ")
    assert (f"ask: kubetide explain vpa default/web --out {tmp_path / 'out'}" in asked.stderr) == bool(hpa)


def test_a_workload_that_nothing_scales_is_answered_with_those_that_are(tmp_path):
    """A VPA of the same namespace that is about another workload is not meant."""
    run_simulation(
        scenario(VPA % "'Off'", duration="3m", loops=("recommender",)),
        base=tmp_path,
        out=tmp_path / "out",
        seed=3,
        warn=pytest.fail,
    )
    asked = CliRunner().invoke(cli, ["explain", "deploy", "mailer", "--out", str(tmp_path / "out")])
    assert str(asked.exception) == (
        "nothing scales Deployment default/mailer; an HPA, a time table or a VPA has default/web"
    )


@pytest.mark.slow
def test_a_run_is_replayed_byte_by_byte(tmp_path):
    """The records of a run replay to the decisions of recommender and updater."""
    one = scenario(VPA % "Recreate", HPA)
    run_simulation(one, base=tmp_path, out=tmp_path / "out", seed=1, warn=str)
    found = replay(tmp_path / "out")
    assert found.differences == ()
    assert {"recommender", "updater"} <= set(found.records)


@pytest.mark.slow
def test_the_answer_about_a_vpa_says_what_a_week_has_changed(tmp_path):
    """Targets of a week before the moment that is asked about; before that, of the first in the records."""
    one = scenario(
        VPA % "'Off'", duration="180h", loops=("recommender",), low=0.2, peak=2.0, recommender_interval="6h"
    )
    run_simulation(one, base=tmp_path, out=tmp_path / "out", seed=1, warn=str)

    def line(at):
        moment = None if at is None else read_moment(at, start_of(one))
        return explain_object(tmp_path / "out", "vpa", "web", namespace="default", at=moment).splitlines()[2]

    change = re.compile(r"  Since (.+): cpu of main from \d+m to \d+m \([+-]\d+%\)\.")
    first = format_rfc3339(after(start_of(one), hours(6)))
    assert change.fullmatch(line(None))[1] == "a week ago"
    assert change.fullmatch(line("100h"))[1] == f"{first}, the first in the records"
    assert not line("6h").startswith("  Since")


@pytest.mark.slow
def test_a_vpa_leaves_the_resource_of_an_hpa_alone(tmp_path):
    """For hours with a burst the HPA desires the same replicas as without a VPA; only memory is recommended."""
    burst = BurstSpec(at="02:00", height=4.0)

    def run(name, *manifests):
        one = scenario(
            HPA, *manifests, duration="6h", low=2.0, peak=8.0, burst=burst, scale_down_enabled=False
        )
        result = run_simulation(one, base=tmp_path, out=tmp_path / name, seed=1, warn=str)
        assert result.violations == ()
        return result.timeline.services["web"].desired

    alone = run("alone")
    assert len(set(alone)) > 4
    assert run("beside", VPA % "InPlaceOrRecreate") == alone
    said = explain_object(tmp_path / "beside", "vpa", "web", namespace="default", at=None)
    assert "cpu: HorizontalPodAutoscaler web scales on its utilization, so it is left alone" in said
    assert "memory: target " in said
    assert "cpu: target " not in said


def test_no_node_is_bought_for_a_pod_that_comes_back_larger(tmp_path):
    """The node loop is told what new pods will ask for: no node goes that a moved pod would need when it is back."""

    async def look(world):
        return world.timeline

    one = scenario(VPA % "Initial", duration="2h", low=54.0, peak=54.0, consolidation_enabled=True)
    timeline = played(one, tmp_path, look, lasting="2h")
    assert len(timeline.node_lives) == 4
    assert max(timeline.waits) == 0
    assert timeline.nodes["general"][-1] == 2
