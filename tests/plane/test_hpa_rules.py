"""A real API server and the embedded one answer alike about an HPA: its spec, and in autoscaling/v1."""

from __future__ import annotations

import json

import pytest
from tests.conftest import skip_without_plane
from tests.horizontal import worlds
from tests.plane.running import running_plane

from kubetide.cluster import HttpCluster
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import HPAS, HPAS_V1
from kubetide.ports.errors import ApiError
from kubetide.runtime.timing.clock import run_real

pytestmark = pytest.mark.slow

GOOD = {"value": "5"}


def target(**fields):
    """A Pods, Object and External metric with this target each."""
    metrics = [worlds.of_pods("1"), worlds.of_object(GOOD), worlds.external(GOOD)]
    for metric, source in zip(metrics, ("pods", "object", "external"), strict=True):
        metric[source]["target"] = fields
    return metrics


def identifier(**fields):
    """The same with this identifier of the metric each."""
    metrics = [worlds.of_pods("1"), worlds.of_object(GOOD), worlds.external(GOOD)]
    for metric, source in zip(metrics, ("pods", "object", "external"), strict=True):
        metric[source]["metric"] = fields
    return metrics


def about(**fields):
    metric = worlds.of_object(GOOD)
    metric["object"]["describedObject"] = fields
    return [metric]


METRICS = {
    "good": [worlds.of_pods("1"), worlds.of_object(GOOD), worlds.external(GOOD)],
    "no target type": target(value="5"),
    "unknown target type": target(type="Most", value="5"),
    "only a type": target(type="Value"),
    "both targets": target(type="Value", value="5", averageValue="3"),
    "utilization": target(type="Utilization", averageUtilization=50),
    "utilization beside": target(type="AverageValue", averageValue="3", averageUtilization=0),
    "zero": target(type="Value", value="0", averageValue="0"),
    "negative": target(type="AverageValue", averageValue="-1"),
    "no name": identifier(),
    "slash": identifier(name="a/b"),
    "percent and slash": identifier(name="%a/b"),
    "dot": identifier(name="."),
    "selector": identifier(name="a", selector={"matchLabels": {"x": "y"}}),
    "bad operator": identifier(
        name="a", selector={"matchExpressions": [{"key": "x", "operator": "Is", "values": ["1"]}]}
    ),
    "no values": identifier(name="a", selector={"matchExpressions": [{"key": "x", "operator": "In"}]}),
    "bad label": identifier(name="a", selector={"matchLabels": {"-x": "y y"}}),
    "no object": about(),
    "odd object": about(kind="a/b", name=".."),
    "object without a version": about(kind="Service", name="x"),
    "odd version": about(apiVersion="a/b/c", kind="Service", name="x"),
    "no type": [{"external": worlds.external(GOOD)["external"]}],
    "unknown type": [{"type": "CheddarCheese"}],
    "no source": [{"type": "Pods"}, {"type": "Object"}, {"type": "External"}],
    "other source": [{**worlds.external(GOOD), "pods": worlds.of_pods("1")["pods"]}],
    "empty sources": [
        {"type": "Pods", "external": {}},
        {"type": "External", "external": {}, "pods": {}},
        {"type": "Pods", "object": {}, "pods": {}, "resource": {}},
        {"type": "Resource", "containerResource": {}, "resource": {}},
    ],
    "wrong source": [{"type": "Pods", "external": worlds.external(GOOD)["external"]}],
}


def resource(source="resource", name="cpu", **goal):
    kind = source[0].upper() + source[1:]
    return {"metrics": [{"type": kind, source: {"name": name, "target": goal}}]}


def both_ways(**rules):
    return {"behavior": {"scaleUp": rules, "scaleDown": rules}}


def policy(**fields):
    return both_ways(policies=[fields])


SPECS = {
    "resource": resource(type="Utilization", averageUtilization=50),
    "resource without a name": resource(name="", type="Utilization", averageUtilization=50),
    "resource without a target": resource(type="Value", value="1"),
    "resource with two targets": resource(type="Utilization", averageUtilization=0, averageValue="0"),
    "container without a name": resource("containerResource", type="AverageValue", averageValue="1"),
    **{
        f"container with the resource {name}": {
            "metrics": [
                {
                    "type": "ContainerResource",
                    "containerResource": {"name": name, "container": container, "target": average},
                }
                for average in [{"type": "AverageValue", "averageValue": "1"}]
            ]
        }
        for name, container in (
            ("memory", "app"),
            ("hugepages-2Mi", "app"),
            ("example.com/gpu", "App_1"),
            ("gpu", "-app"),
            ("-", "app"),
            ("requests.example.com/gpu", "a.b"),
        )
    },
    "window": both_ways(stabilizationWindowSeconds=3601),
    "negative window": both_ways(stabilizationWindowSeconds=-1),
    "select": both_ways(selectPolicy="Fast"),
    "no policies": both_ways(policies=[]),
    "tolerance": both_ways(tolerance="0.05"),
    "negative tolerance": both_ways(tolerance="-0.05"),
    "policy": policy(type="Pods", value=1, periodSeconds=1800),
    "policy of an odd type": policy(type="Many", value=1, periodSeconds=1),
    "policy without a type": policy(value=1, periodSeconds=1),
    "policy of nothing": policy(type="Percent", value=0, periodSeconds=0),
    "policy for long": policy(type="Percent", value=-1, periodSeconds=1801),
    **{name: {"metrics": metrics} for name, metrics in METRICS.items()},
    "zero with external": {"minReplicas": 0, "metrics": [worlds.external(GOOD)]},
    "zero with pods": {"minReplicas": 0, "metrics": [worlds.of_pods("1")]},
    "zero without metrics": {"minReplicas": 0},
}


def said(error):
    if error is None:
        return None
    status = error.status()
    causes = (status.get("details") or {}).get("causes") or []
    # Upstream says some of them twice.
    return status["reason"], {(c.get("field"), c.get("reason"), c.get("message")) for c in causes}


async def answer(client, name, spec):
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    body = {"metadata": {"name": name}, "spec": {"scaleTargetRef": ref, "maxReplicas": 9, **spec}}
    try:
        await client.create(HPAS, body, namespace="default")
    except ApiError as error:
        return said(error)
    await client.delete(HPAS, name, namespace="default")
    return None


@pytest.fixture(scope="module")
def plane_with_zero(tmp_path_factory):
    """An API server with the gate that the embedded one always has on."""
    skip_without_plane()
    folder = tmp_path_factory.mktemp("zero-plane")
    gates = ("--feature-gates=HPAScaleToZero=true",)
    with running_plane(folder, controllers=False, api_flags=gates) as running:
        yield running


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_spec_is_judged_alike(spec, plane_with_zero):
    """Both take it, or both refuse it for the same fields with the same words."""

    async def run(clock):
        async with HttpCluster(plane_with_zero.connection, clock) as client:
            real = await answer(client, "judged", spec)
        assert await answer(EmbeddedCluster(Store(), clock), "judged", spec) == real

    run_real(run)


INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}
MEASURED = [
    {"type": "Pods", "pods": {"metric": {"name": "rps"}, "current": {"averageValue": "150m"}}},
    *(
        {"type": "Object", "object": {"describedObject": INGRESS, "metric": {"name": "hits"}, "current": now}}
        for now in ({"value": "5"}, {"averageValue": "5"})
    ),
    *(
        {"type": "External", "external": {"metric": {"name": "queue"}, "current": now}}
        for now in ({"value": "5"}, {"averageValue": "5"})
    ),
    {"type": ""},
]


async def annotations(client):
    """An HPA with all metrics, as autoscaling/v1 shows it."""
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    labels = {"matchLabels": {"lane": "fast"}}
    metrics = [
        worlds.of_pods("1"),
        *(worlds.of_object(goal) for goal in (GOOD, {"averageValue": "3"})),
        *(worlds.external(goal, selector=labels) for goal in (GOOD, {"averageValue": "3"})),
    ]
    body = {
        "metadata": {"name": "old"},
        "spec": {"scaleTargetRef": ref, "maxReplicas": 9, "metrics": metrics},
    }
    await client.create(HPAS, body, namespace="default")
    status = {"currentReplicas": 1, "desiredReplicas": 1, "currentMetrics": MEASURED}
    await client.patch(HPAS, "old", {"status": status}, namespace="default", subresource="status")
    shown = await client.get(HPAS_V1, "old", namespace="default")
    await client.delete(HPAS, "old", namespace="default")
    return {name: json.loads(text) for name, text in shown.metadata.annotations.items()}


def test_the_older_version_shows_the_same_metrics(plane_with_zero):
    """Spec and status of metrics that v1 has no field for are in its annotations, shaped alike."""

    async def run(clock):
        async with HttpCluster(plane_with_zero.connection, clock) as client:
            real = await annotations(client)
        assert await annotations(EmbeddedCluster(Store(), clock)) == real

    run_real(run)
