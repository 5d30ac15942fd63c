"""Upstream's HPA controller over the metrics of the embedded cluster, and ours over the same ones through HTTP."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, asynccontextmanager
from typing import NamedTuple

import msgspec
import pytest
from tests.cluster.served import served
from tests.embedded.load.worlds import START, World, make_pod, make_service
from tests.loops import run_alone
from tests.plane.running import Programs
from tests.tasks import stop
from tools.plane.build import find

from kubetide.cluster import HttpCluster, HttpCustomMetrics, HttpExternalMetrics, HttpMetrics, plurals_of
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.embedded.load import (
    ConstantTrace,
    EmbeddedCustomMetrics,
    EmbeddedExternalMetrics,
    ExternalSeries,
)
from kubetide.horizontal.controller import HorizontalController
from kubetide.horizontal.settings import Settings
from kubetide.objects.kinds import DEPLOYMENTS, EVENTS, HPAS, NAMESPACES, PODS, STORED_KINDS
from kubetide.plan.board import Board
from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import seconds
from kubetide.watching import Caches

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find("kube-controller-manager") is None,
        reason="not built: kube-controller-manager (make control-plane)",
    ),
]

PODS_SINCE = "2026-03-02T00:00:00Z"
IN_TIME_S = 180


def pods(name, value, **more):
    target = {"type": "AverageValue", "averageValue": value}
    return {"type": "Pods", "pods": {"metric": {"name": name, **more}, "target": target}}


def of_object(name, kind, api_version, about, **target):
    described = {"apiVersion": api_version, "kind": kind, "name": about}
    return {
        "type": "Object",
        "object": {"describedObject": described, "metric": {"name": name}, "target": target},
    }


def external(name, selector=None, **target):
    metric = {"name": name} | ({} if selector is None else {"selector": selector})
    return {"type": "External", "external": {"metric": metric, "target": target}}


def usage(name, **target):
    return {"type": "Resource", "resource": {"name": name, "target": target}}


ORDERS = {"matchLabels": {"queue": "orders"}}
EITHER = {"matchExpressions": [{"key": "queue", "operator": "In", "values": ["mail", "orders"]}]}
NO_SERIES = {"matchLabels": {"queue": "none"}}
UNLABELLED = {"matchExpressions": [{"key": "verb", "operator": "DoesNotExist"}]}

# Each HPA sees two pods that serve 40 requests/s each.
HPAS_TRIED = {
    "usage": [usage("cpu", type="AverageValue", averageValue="500m")],
    "pods": [pods("http_requests_per_second", "25")],
    "pods-selector": [pods("http_requests_in_flight", "100m", selector=UNLABELLED)],
    "pods-unknown": [pods("nope", "25")],
    "pods-no-series": [pods("http_requests_per_second", "25", selector=ORDERS)],
    "deployment-value": [
        of_object("requests_per_second", "Deployment", "apps/v1", "web", type="Value", value="30")
    ],
    "deployment-average": [
        of_object(
            "requests_per_second", "Deployment", "apps/v1", "web", type="AverageValue", averageValue="20"
        )
    ],
    "deployment-unknown": [of_object("nope", "Deployment", "apps/v1", "web", type="Value", value="30")],
    "deployment-missing": [
        of_object("queue_length", "Deployment", "apps/v1", "none", type="Value", value="30")
    ],
    "pod": [of_object("http_requests_per_second", "Pod", "v1", "a", type="Value", value="30")],
    "namespace": [of_object("requests_per_second", "Namespace", "v1", "namespace", type="Value", value="30")],
    "kind-unknown": [of_object("m", "Widget", "example.com/v1", "w", type="Value", value="30")],
    "external-value": [external("waiting", ORDERS, type="Value", value="20")],
    "external-average": [external("waiting", EITHER, type="AverageValue", averageValue="20")],
    "external-all": [external("waiting", type="AverageValue", averageValue="20")],
    "external-no-series": [external("waiting", NO_SERIES, type="AverageValue", averageValue="20")],
    "external-unknown": [external("nope", type="AverageValue", averageValue="20")],
    "several": [
        usage("memory", type="AverageValue", averageValue="1Gi"),
        pods("http_requests_per_second", "25"),
        pods("nope", "25"),
        external("waiting", ORDERS, type="AverageValue", averageValue="20"),
        external("nope", ORDERS, type="Value", value="20"),
    ],
}


class Outcome(NamedTuple):
    """A controller's result for an HPA, without times."""

    replicas: int
    status: dict
    events: list


@asynccontextmanager
async def shops(clock):
    """Serve a namespace for each HPA, with two ready pods of a Deployment, and what is measured of them."""
    world = World(*(make_service(80.0, max_queue_s=60.0, namespace=name) for name in HPAS_TRIED))
    for namespace in HPAS_TRIED:
        for name in "ab":
            world.put(make_pod(name, namespace=namespace))
    world.to(60)
    series = [
        ExternalSeries("waiting", ConstantTrace(value), {"queue": queue})
        for queue, value in (("orders", 70.5), ("mail", 3.25))
    ]
    given = {
        "metrics": world.metrics,
        "custom": EmbeddedCustomMetrics(world.model, world.clock),
        "external": EmbeddedExternalMetrics(series, world.clock, start=START, step=seconds(15)),
    }
    async with served(clock, **given) as (cluster, _, connection):
        for namespace, metrics in HPAS_TRIED.items():
            await open_shop(cluster, namespace, metrics)
        yield cluster, connection


async def open_shop(cluster, namespace, metrics):
    async def put(kind, body, status=None):
        await cluster.create(kind, body, namespace=namespace)
        if status is not None:
            name = body["metadata"]["name"]
            await cluster.patch(kind, name, {"status": status}, namespace=namespace, subresource="status")

    await cluster.create(NAMESPACES, {"metadata": {"name": namespace}})
    await put(DEPLOYMENTS, builders.deployment("web", replicas=2), {"replicas": 2})
    for name in "ab":
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": PODS_SINCE}
        running = {"phase": "Running", "startTime": PODS_SINCE, "conditions": [ready]}
        await put(PODS, builders.pod(name, labels={"app": "web"}), running)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9, "metrics": metrics}
    await put(HPAS, {"metadata": {"name": "hpa"}, "spec": spec})


async def settled(cluster):
    """Return the outcomes of the first reconciles, once all are there; the second ones come 5 s later."""
    found = {}
    async with asyncio.timeout(IN_TIME_S):
        while len(found) < len(HPAS_TRIED):
            await asyncio.sleep(0.05)
            for namespace in HPAS_TRIED.keys() - found.keys():
                outcome = await outcome_of(cluster, namespace)
                if outcome is not None:
                    found[namespace] = outcome
    return found


async def outcome_of(cluster, namespace):
    """Return the outcome, None as long as the status or the last event is missing."""
    hpa = await cluster.get(HPAS, "hpa", namespace=namespace)
    conditions = {one.type: one for one in hpa.status.conditions or ()}
    if "ScalingActive" not in conditions:
        return None
    events = sorted(
        (event.type, event.reason, event.message)
        for event in (await cluster.list(EVENTS, namespace=namespace)).items
    )
    reported = {reason for _, reason, _ in events}
    if conditions["AbleToScale"].reason == "SucceededRescale" and "SuccessfulRescale" not in reported:
        return None
    if conditions["ScalingActive"].status == "False" and "FailedComputeMetricsReplicas" not in reported:
        return None
    status = msgspec.to_builtins(hpa.status)
    status.pop("lastScaleTime", None)
    for condition in status["conditions"]:
        del condition["lastTransitionTime"]
    deployment = await cluster.get(DEPLOYMENTS, "web", namespace=namespace)
    return Outcome(deployment.spec.replicas, status, events)


@pytest.fixture(scope="module")
def upstreams(tmp_path_factory):
    """Upstream's result for each HPA."""
    folder = tmp_path_factory.mktemp("controller-manager")

    async def main(clock):
        async with shops(clock) as (cluster, connection):
            config = folder / "kubeconfig"
            authority = connection.authority.encode()
            write_kubeconfig(config, kubeconfig(connection.url, token=connection.token, authority=authority))
            with ExitStack() as stack:
                Programs(stack, folder).start(
                    "kube-controller-manager",
                    (
                        f"--kubeconfig={config}",
                        "--controllers=horizontal-pod-autoscaler-controller",
                        "--horizontal-pod-autoscaler-sync-period=5s",
                        "--leader-elect=false",
                        "--secure-port=0",
                        "--kube-api-qps=500",
                        "--kube-api-burst=1000",
                    ),
                )
                return await settled(cluster)

    return run_real(main)


@pytest.fixture(scope="module")
def ours():
    """Our result for each HPA, with the cluster and its metrics behind HTTP."""

    async def main(clock):
        async with shops(clock) as (cluster, connection), HttpCluster(connection, clock) as client:
            caches = Caches(client, clock)
            loop = HorizontalController(
                client,
                HttpMetrics(client, clock),
                clock,
                recorder=NullRecorder(),
                board=Board(),
                settings=Settings(sync_period=seconds(5)),
                custom=HttpCustomMetrics(client, clock, plural_of=plurals_of(STORED_KINDS)),
                external=HttpExternalMetrics(client),
                caches=caches,
            )
            running = asyncio.create_task(run_alone(loop, caches, clock))
            try:
                return await settled(cluster)
            finally:
                await stop(running)

    return run_real(main)


READ = {
    "usage": {"averageValue": "800m"},
    "pods": {"averageValue": "40"},
    "deployment-value": {"value": "80"},
    "deployment-average": {"averageValue": "40"},
    "pod": {"value": "40"},
    "namespace": {"value": "80"},
    "external-value": {"value": "70500m"},
    "external-average": {"averageValue": "36875m"},
    "external-all": {"averageValue": "36875m"},
}


@pytest.mark.parametrize(("name", "current"), READ.items())
def test_upstream_reads_every_metric_there_is(upstreams, name, current):
    """Upstream's clients find and understand what the embedded server says of usage, objects and series."""
    (metric,) = upstreams[name].status["currentMetrics"]
    (values,) = (part["current"] for kind, part in metric.items() if kind != "type")
    assert values == current
    assert upstreams[name].replicas in {3, 4}


@pytest.mark.parametrize("name", HPAS_TRIED)
def test_both_controllers_come_to_the_same(upstreams, ours, name):
    """Replicas, status, conditions and events are equal, also where a metric is not there."""
    assert ours[name] == upstreams[name]
