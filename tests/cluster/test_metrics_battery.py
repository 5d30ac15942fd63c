"""The metric sources over HTTP against the served embedded cluster pass the batteries."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
from tests.cluster.served import served
from tests.embedded.load.worlds import START, World, make_pod, make_service

from kubetide.cluster import HttpCluster, HttpCustomMetrics, HttpExternalMetrics, HttpMetrics, plurals_of
from kubetide.embedded.load import (
    ConstantTrace,
    EmbeddedCustomMetrics,
    EmbeddedExternalMetrics,
    EmbeddedMetrics,
    ExternalSeries,
)
from kubetide.objects.kinds import STORED_KINDS
from kubetide.runtime.timing.clock import run_real
from kubetide.testing.metrics_battery import (
    CASES,
    CUSTOM_CASES,
    EXTERNAL_CASES,
    CustomUnderTest,
    ExternalUnderTest,
    SourceUnderTest,
)
from kubetide.units.time import seconds

PODS = [make_pod("a"), make_pod("b", sidecar=True), make_pod("c", ready=False)]
OTHERS = [make_pod("d", app="other"), make_pod("e", namespace="far"), make_pod("f", namespace="far", app="")]
SERIES = [
    ExternalSeries("waiting", ConstantTrace(value), labels, namespace)
    for value, labels, namespace in (
        (7.25, {"queue": "orders", "zone": "a"}, ""),
        (2.0, {"queue": "mail"}, "default"),
        (9.0, {"queue": "mail"}, "far"),
        (0.0, {}, ""),
    )
]


class Sources(NamedTuple):
    """The sources over HTTPS, and beside them those of the server's process."""

    client: HttpCluster
    usage: HttpMetrics
    custom: HttpCustomMetrics
    external: HttpExternalMetrics
    near_usage: EmbeddedMetrics
    near_custom: EmbeddedCustomMetrics
    near_external: EmbeddedExternalMetrics


@asynccontextmanager
async def sources(clock):
    """Serve a minute of a service and of two queues."""
    PODS[1].metadata.labels["tier"] = "front"
    world = World(make_service(33.3, max_queue_s=5.0))
    for pod in (*PODS, *OTHERS):
        world.put(pod)
    world.to(60)
    near = (
        world.metrics,
        EmbeddedCustomMetrics(world.model, world.clock),
        EmbeddedExternalMetrics(SERIES, world.clock, start=START, step=seconds(15)),
    )
    metrics, custom, external = near
    async with (
        served(clock, metrics=metrics, custom=custom, external=external) as (_, _, connection),
        HttpCluster(connection, clock) as client,
    ):
        yield Sources(
            client,
            HttpMetrics(client, clock),
            HttpCustomMetrics(client, clock, plural_of=plurals_of(STORED_KINDS)),
            HttpExternalMetrics(client),
            *near,
        )


def with_sources(main):
    async def run(clock):
        async with sources(clock) as found:
            await main(found)

    run_real(run)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_usage(case):
    """Usage over HTTPS is what the MetricSource port promises."""
    with_sources(lambda found: case(SourceUnderTest(found.usage, [*PODS, *OTHERS])))


@pytest.mark.parametrize("case", CUSTOM_CASES, ids=lambda case: case.__name__)
def test_custom(case):
    """Custom metrics over HTTPS are what their port promises."""
    with_sources(
        lambda found: case(
            CustomUnderTest(
                source=found.custom,
                metric="http_requests_per_second",
                pods=PODS,
                object_metric="requests_per_second",
                api_version="apps/v1",
                kind="Deployment",
                name="web",
            )
        )
    )


@pytest.mark.parametrize("case", EXTERNAL_CASES, ids=lambda case: case.__name__)
def test_external(case):
    """External metrics over HTTPS are what their port promises."""
    labels = [series.labels for series in SERIES if series.namespace in {"", "default"}]
    with_sources(lambda found: case(ExternalUnderTest(found.external, "waiting", "default", labels)))


def test_the_numbers_are_those_of_the_sources_in_the_process():
    """Values, times and errors are the same on both ways."""

    async def main(found):
        for metric in ("http_requests_per_second", "http_request_duration_seconds", "nope"):
            asked = {"metric": metric, "namespace": "default", "pods": "app=web"}
            near = await outcome(found.near_custom.pod_values(**asked))
            assert await outcome(found.custom.pod_values(**asked)) == near
        for api_version, kind, name, metric in (
            ("apps/v1", "Deployment", "web", "request_duration_seconds"),
            ("v1", "Namespace", "default", "requests_per_second"),
            ("v1", "Pod", "a", "http_requests_per_second"),
            ("apps/v1", "Deployment", "api", "queue_length"),
            ("batch/v1", "Job", "web", "queue_length"),
            ("example.com/v1", "Widget", "web", "queue_length"),
        ):
            asked = {"namespace": "default", "api_version": api_version, "kind": kind, "name": name}
            near = await outcome(found.near_custom.object_value(metric, **asked))
            assert await outcome(found.custom.object_value(metric, **asked)) == near
        for metric, selector in (("waiting", ""), ("waiting", "queue=mail"), ("waiting", "x"), ("nope", "")):
            asked = {"metric": metric, "namespace": "default", "selector": selector}
            near = await outcome(found.near_external.external_values(**asked))
            assert await outcome(found.external.external_values(**asked)) == near
        near, far = await found.near_usage.pod_samples(), await found.usage.pod_samples()
        assert sorted(zip(far.namespaces, far.names, strict=True)) == sorted(
            zip(near.namespaces, near.names, strict=True)
        )
        for name in ("cpu", "memory"):
            assert far.usage[name].milli.sum() == near.usage[name].milli.sum()
            assert far.usage[name].present.all()
        assert set(far.timestamp_ns.tolist()) == set(near.timestamp_ns.tolist())
        assert set(far.window_ns.tolist()) == set(near.window_ns.tolist())

    with_sources(main)


def test_metrics_are_no_kinds():
    """Discovery of what can be listed is not led astray by the groups of metrics."""

    async def main(found):
        groups = {kind.group for kind in await found.client.kinds()}
        assert "apps" in groups
        assert not groups & {"custom.metrics.k8s.io", "external.metrics.k8s.io"}

    with_sources(main)


async def outcome(asking):
    """The outcome of a question, as plain values."""
    try:
        found = await asking
    except Exception as error:  # noqa: BLE001  the kind of error is compared too
        return type(error).__name__, str(error)
    if hasattr(found, "names"):
        return sorted(zip(found.names, found.milli.tolist(), found.timestamp_ns.tolist(), strict=True))
    return found
