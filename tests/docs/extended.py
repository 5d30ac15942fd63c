"""Uses the examples of docs/extending.md; run by ``test_extending`` over a package that has them in it."""

from __future__ import annotations

import msgspec
from tests.nodes.frozen import World, group, node, pod, template

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.horizontal.metrics.registry import propose, read_metric
from kubetide.horizontal.metrics.types import MetricFailure, Reading, Tolerance
from kubetide.nodes.scale_down.drain_rules import RULES, WAIT
from kubetide.objects.hpa import MetricSpec
from kubetide.objects.kinds import KINDS
from kubetide.runtime.timing.clock import run_virtual
from kubetide.scheduling import Snapshot, classify
from kubetide.units.time import parse_rfc3339

START = parse_rfc3339("2026-03-02T08:00:00Z")


def expander() -> None:
    """The cheaper of two groups is bought, though its nodes are larger; a group without a price never."""
    groups = [
        group("dear", made=template(cpu="2"), price_per_hour=0.4),
        group("cheap", made=template(cpu="8"), price_per_hour=0.3),
        group("unknown", made=template(cpu="2")),
    ]
    world = World(groups=groups, pods=[pod("p", cpu="1")], settings={"expander": "cheapest"})
    assert world.increases() == {"cheap": 1}


def filters() -> None:
    """A pod goes to nodes of its own team and to nodes of none, and the refusal names the team."""
    label = "example.com/team"
    snapshot = Snapshot()
    for name, labels in (("ours", {label: "red"}), ("theirs", {label: "blue"}), ("free", {})):
        snapshot.set_node(node(name, labels=labels))
    incoming = classify(pod("p", metadata={"labels": {label: "red"}}))
    assert [name for name in ("ours", "theirs", "free") if snapshot.fits(incoming, name)] == ["ours", "free"]
    refusal = snapshot.first_refusal(incoming, "theirs")
    assert refusal is not None
    assert (refusal.plugin, refusal.detail) == ("TeamNodes", f"{label}=blue")


def drain() -> None:
    """The first rule with an answer for a Job's pod says to wait; pods of ReplicaSets are left to others."""
    rule = next(rule for rule in RULES if rule.name == "FinishingJobs")
    assert rule.check(pod("j", kind="Job"), None) == WAIT
    assert rule.check(pod("w"), None) is None


def demand() -> None:
    """With the source on, a node is bought for a pod that does not exist; with enough capacity none is."""
    on = {"demand_sources": ("pending", "headroom")}
    assert World(groups=[group("g")], settings=on).increases() == {"g": 1}
    assert World(groups=[group("g")]).increases() == {}
    roomy = World(groups=[group("g", nodes=["n1"])], nodes=[node("n1")], settings=on)
    assert roomy.increases() == {}


def api_type() -> None:
    """The store accepts the new kind, reads it as its type, and scales it."""
    rollouts = KINDS["argoproj.io/v1alpha1", "Rollout"]
    selector = {"matchLabels": {"app": "arena"}}
    body = {"metadata": {"name": "arena"}, "spec": {"replicas": 2, "selector": selector}}

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock)
        await cluster.create(rollouts, body, namespace="default")
        await cluster.replace_scale(rollouts, "arena", 5, namespace="default")
        return await cluster.get(rollouts, "arena", namespace="default")

    assert run_virtual(main, start=START).spec.replicas == 5


def metric() -> None:
    """The larger of the series 30 and 12 counts; a failure has upstream's reason."""
    target = {"type": "AverageValue", "averageValue": "10"}
    external = {"metric": {"name": "queue"}, "target": target}
    spec = msgspec.convert({"type": "External", "external": external}, MetricSpec)
    read = read_metric(spec, "default", 36)
    tolerance = Tolerance(0.1, 0.1)
    known = Reading([30_000, 12_000], pods=2, ready=2, replicas=2)
    assert propose(read, known, 2, tolerance).replicas == 3
    failed = propose(read, "no metrics returned from external metrics API", 2, tolerance)
    assert isinstance(failed, MetricFailure)
    assert failed.reason == "FailedGetExternalMetric"


if __name__ == "__main__":
    for name, check in (
        ("expander", expander),
        ("filter", filters),
        ("drain", drain),
        ("demand", demand),
        ("type", api_type),
        ("metric", metric),
    ):
        check()
        print(name)
