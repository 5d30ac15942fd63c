"""Options of the VPA loops beyond upstream, each in a run that is better with it."""

from __future__ import annotations

import pytest

from kubetide.simulate.answers.replay import replay
from kubetide.simulate.answers.why import explain_object
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import (
    BurstSpec,
    DailySpec,
    LoadSpec,
    NodeGroupSpec,
    Scenario,
    ServiceSpec,
)
from kubetide.simulate.scenarios.spec import RolloutSpec
from kubetide.units.time import parse_rfc3339

LOOPS = ("nodes", "recommender", "updater", "admission")


def deployment(name, requests, *, limits="", replicas=3, namespace="default"):
    return f"""apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - name: main
        image: web:1
        resources: {{requests: {requests}{f", limits: {limits}" if limits else ""}}}
---
apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  targetRef: {{apiVersion: apps/v1, kind: Deployment, name: {name}}}
"""


def scenario(*manifests, services, duration="1h", instance_type="m5.xlarge", initial=3, **flags):
    return Scenario(
        name="options",
        duration=duration,
        node_groups=(
            NodeGroupSpec(name="general", instance_type=instance_type, min=1, max=6, initial=initial),
        ),
        services=services,
        manifests=manifests,
        loops=LOOPS,
        flags={name.replace("_", "-"): value for name, value in flags.items()}
        | {"scale-down-enabled": False},
    )


def service(name="web", *, rate=20.0, cpu=0.01, memory="300Mi", **more):
    load = LoadSpec(daily=DailySpec(low=rate, peak=rate, noise=0.0))
    return ServiceSpec(deployment=name, cpu_seconds_per_request=cpu, base_memory=memory, load=load, **more)


@pytest.fixture
def run(tmp_path):
    """Runs a scenario; its folder is replayed, too, and must say the same."""

    def once(one, name):
        result = run_simulation(one, base=tmp_path, out=tmp_path / name, seed=1, warn=str)
        assert result.violations == ()
        assert replay(tmp_path / name).differences == ()
        return result

    return once


def evictions(result):
    return [mark for mark in result.timeline.marks if (mark.loop, mark.code) == ("updater", "Evicted")]


@pytest.mark.slow
def test_an_oom_kill_as_a_lower_bound_ends_the_kills_sooner(run):
    """A deploy exceeds the limit after a time in which the histogram weighs more than one kill."""

    def played(**flags):
        web = service(rollouts=(RolloutSpec(at="170m", image="web:2", base_memory="650Mi"),))
        one = scenario(
            deployment("web", "{cpu: 100m, memory: 400Mi}", limits="{memory: 500Mi}", replicas=4),
            services=(web,),
            duration="200m",
            memory_aggregation_interval="5m",
            **flags,
        )
        return run(one, f"run{len(flags)}").summary.services[0].oom_kills

    assert 0 < played(vpa_oom_lower_bound=True) < played()


@pytest.mark.slow
def test_a_rollback_ends_throttling(run):
    """Requests that are lowered lower the limits with them; without the option the pods stay throttled."""

    def played(**flags):
        one = scenario(
            deployment("web", '{cpu: "1", memory: 400Mi}', limits='{cpu: "1"}'),
            services=(_bursty(),),
            duration="2h",
            confidence_interval_cpu="10m",
            confidence_interval_memory="10m",
            **flags,
        )
        return run(one, f"run{len(flags)}").summary.services[0]

    upstream, ours = played(), played(vpa_rollback_window="6h")
    assert ours.throttled_share < upstream.throttled_share / 2
    assert ours.slo_minutes_lost < upstream.slo_minutes_lost


def _bursty():
    """A quiet hour, and then as much as the first request was for."""
    burst = BurstSpec(at="01:00", height=12.0, hold="1h")
    load = LoadSpec(daily=DailySpec(low=20.0, peak=20.0, noise=0.0, burst=burst))
    return ServiceSpec(deployment="web", cpu_seconds_per_request=0.01, base_memory="300Mi", load=load)


def test_targets_that_fit_a_node_are_scheduled(run):
    """Pods that use nearly a whole node: with the margin on top they fit on no node."""

    def played(**flags):
        one = scenario(
            deployment("web", '{cpu: "1", memory: 400Mi}', replicas=2),
            services=(service(rate=3.4, cpu=1.0),),
            instance_type="m5.large",
            initial=2,
            duration="30m",
            **flags,
        )
        return run(one, f"run{len(flags)}").summary

    upstream, ours = played(), played(vpa_fit_node_groups=True)
    assert upstream.pending_pod_minutes > 10 > ours.pending_pod_minutes
    assert ours.services[0].unserved_share < upstream.services[0].unserved_share


def test_labelled_workloads_get_advice_without_a_vpa_object(run, tmp_path):
    """The recommendation is reported and written nowhere; a workload with a VPA of its own has only that one."""
    web = (
        deployment("web", "{cpu: 50m, memory: 100Mi}")
        .partition("---")[0]
        .replace("{name: web,", "{name: web, labels: {advise: 'yes'},", 1)
    )
    own = deployment("own", "{cpu: 50m, memory: 100Mi}").replace(
        "{name: own,", "{name: own, labels: {advise: 'yes'},", 1
    )
    one = scenario(web, own, services=(service(rate=60.0),), duration="10m", vpa_advise_selector="advise=yes")
    result = run(one, "advice")
    assert not [mark for mark in evictions(result) if "/web-" in mark.subject]
    said = explain_object(tmp_path / "advice", "vpa", "deployment:web", namespace="default", at=None)
    assert "default/deployment:web/main: cpu: target " in said
    titles = {mark.subject for mark in result.timeline.marks if mark.loop == "recommender"}
    assert titles == {"default/deployment:web/main", "default/own/main"}


def test_pods_are_evicted_within_windows_only(run):
    """All evictions of an hour fall into its last twenty minutes."""
    low = deployment("web", "{cpu: 50m, memory: 100Mi}")
    free = run(scenario(low, services=(service(rate=60.0),)), "free")
    held = run(scenario(low, services=(service(rate=60.0),), update_windows="00:40-01:00"), "held")
    opens = parse_rfc3339("2026-03-02T00:40:00Z")
    assert min(mark.at for mark in evictions(free)) < opens
    assert evictions(held)
    assert min(mark.at for mark in evictions(held)) >= opens


def test_no_minute_sees_more_evictions_than_allowed(run):
    """Six VPAs become wrong at once: without the limit a loop evicts of each, with it two a minute."""
    names = [f"web{number}" for number in range(6)]
    manifests = [deployment(name, "{cpu: 50m, memory: 100Mi}") for name in names]
    services = tuple(service(name, rate=60.0) for name in names)

    def most(**flags):
        result = run(scenario(*manifests, services=services, duration="30m", **flags), f"run{len(flags)}")
        times = [mark.at for mark in evictions(result)]
        return max(sum(0 <= at - other < 60 * 10**9 for other in times) for at in times)

    assert most() >= 6
    assert most(max_evictions_per_minute=2) == 2


def test_a_larger_pod_has_its_node_before_the_running_one_is_evicted(run):
    """Without it pods wait for the boot of a node; with it none does, and all get what is recommended all the same."""

    def played(**flags):
        one = scenario(
            deployment("web", "{cpu: 550m, memory: 64Mi}", replicas=6),
            services=(service(rate=120.0, cpu=0.05),),
            initial=1,
            **flags,
        )
        return run(one, f"run{len(flags)}")

    upstream, ours = played(), played(provision_before_eviction=True)
    assert upstream.summary.wait_max_s > 60
    assert ours.summary.wait_max_s < 10
    assert len(evictions(ours)) >= 6
    assert ours.summary.nodes_added <= upstream.summary.nodes_added
