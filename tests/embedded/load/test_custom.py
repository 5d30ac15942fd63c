"""Custom metrics of the load model."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.embedded.load.worlds import START, World, answer, make_pod, make_service

from kubetide.embedded.load import EmbeddedCustomMetrics, SeriesTrace
from kubetide.ports.errors import MetricsError
from kubetide.testing.metrics_battery import CUSTOM_CASES, CustomUnderTest
from kubetide.units.time import after, seconds

FETCHING = "unable to fetch metrics from custom metrics API: "


def shop(rate=30.0, **fields):
    """Two pods of a service that takes 20 ms of CPU a request, one that is not ready, one of nobody."""
    world = World(make_service(rate, **fields))
    for pod in (
        make_pod("a"),
        make_pod("b", sidecar=True),
        make_pod("c", ready=False),
        make_pod("x", app="y"),
    ):
        world.put(pod)
    return world, EmbeddedCustomMetrics(world.model, world.clock)


def by_pod(source, metric, **more):
    found = answer(source.pod_values(metric, namespace="default", **more))
    return dict(zip(found.names, found.milli.tolist(), strict=True))


def of(source, metric, name="web", api_version="apps/v1", kind="Deployment", **more):
    return answer(
        source.object_value(
            metric, namespace="default", api_version=api_version, kind=kind, name=name, **more
        )
    )


def refusal(asking):
    with pytest.raises(MetricsError) as caught:
        answer(asking)
    return str(caught.value)


@pytest.mark.parametrize("case", CUSTOM_CASES, ids=lambda case: case.__name__)
def test_the_embedded_source_passes_the_battery(case):
    """The embedded custom metrics do what the port promises."""
    pods = [make_pod("a"), make_pod("b"), make_pod("c", ready=False)]
    pods[1].metadata.labels["tier"] = "front"
    world = World(make_service())
    for pod in (*pods, make_pod("far", namespace="far")):
        world.put(pod)
    world.to(30)
    source = EmbeddedCustomMetrics(world.model, world.clock)
    asyncio.run(
        case(
            CustomUnderTest(
                source,
                "http_requests_per_second",
                pods,
                "requests_per_second",
                "apps/v1",
                "Deployment",
                "web",
            )
        )
    )


def test_ready_pods_share_the_requests():
    """30 requests/s over two ready pods are 15 each; a pod that is not ready serves none; others have no value."""
    world, source = shop()
    world.to(15)
    assert by_pod(source, "http_requests_per_second") == {"a": 15_000, "b": 15_000, "c": 0}


def test_what_a_pod_cannot_serve_it_does_not_count():
    """A pod of one core serves 50 requests/s of 20 ms, whatever is asked of it."""
    world, source = shop(300.0)
    step = world.to(15)
    assert by_pod(source, "http_requests_per_second", pods="app=web") == {"a": 50_000, "b": 50_000, "c": 0}
    assert of(source, "requests_per_second").milli == 300_000
    assert step.served.tolist() == [100.0]


@given(
    rates=st.lists(st.floats(0, 500), min_size=1, max_size=6),
    limits=st.lists(st.sampled_from(["100m", "1", "2500m", None]), min_size=1, max_size=6),
    queue=st.sampled_from([0.0, 5.0, 60.0]),
    cores=st.sampled_from(["1", "4", "64"]),
)
def test_pods_serve_together_what_the_service_serves(rates, limits, queue, cores):
    """Whatever the load, the limits and the capacity of the node, the pods' shares add up to the service's total."""
    trace = SeriesTrace(rates, step=seconds(15), start=START, name="t")
    world = World(make_service(trace=trace, max_queue_s=queue), cpu=cores)
    for number, limit in enumerate(limits):
        world.put(make_pod(f"p{number}", limit=limit, cpu="100m"))
    source = EmbeddedCustomMetrics(world.model, world.clock)
    for number in range(1, len(rates) + 1):
        step = world.to(15 * number)
        shares = by_pod(source, "http_requests_per_second")
        # Each share is rounded to a thousandth.
        assert sum(shares.values()) == pytest.approx(step.served[0] * 1000, abs=len(limits) / 2 + 1e-3)
        assert of(source, "queue_length").milli == round(step.queue[0] * 1000)


def test_durations_and_requests_in_flight_are_those_of_the_model():
    """Serving pods have the service's latency; in flight is what they serve times that."""
    world, source = shop()
    (latency,) = world.to(15).latency.tolist()
    assert by_pod(source, "http_request_duration_seconds") == {name: round(latency * 1000) for name in "ab"}
    in_flight = round(15 * latency * 1000)
    assert by_pod(source, "http_requests_in_flight") == {"a": in_flight, "b": in_flight, "c": 0}
    assert of(source, "request_duration_seconds").milli == round(latency * 1000)


def test_a_deployment_without_pods_has_its_demand_and_its_queue():
    """Arriving and waiting requests are known also where no pod serves, as scaling from zero needs it."""
    world = World(make_service(10.0, max_queue_s=60.0))
    source = EmbeddedCustomMetrics(world.model, world.clock)
    world.to(30)
    assert of(source, "requests_per_second") == (10_000, after(START, seconds(30)))
    assert of(source, "queue_length").milli == 300_000


def test_a_namespace_has_the_sum_of_its_services():
    """Two services of 10 and 20 requests/s make a namespace of 30."""
    world = World(make_service(10.0), make_service(20.0, name="api"), make_service(5.0, namespace="far"))
    source = EmbeddedCustomMetrics(world.model, world.clock)
    world.to(15)
    assert of(source, "requests_per_second", "default", "v1", "Namespace").milli == 30_000
    assert of(source, "requests_per_second", "far", "v1", "Namespace").milli == 5_000


def test_one_pod_is_an_object_too():
    """A metric of a single pod is that of all pods, by its name."""
    world, source = shop()
    world.to(15)
    assert of(source, "http_requests_per_second", "a", "v1", "Pod").milli == 15_000


def test_a_scrape_delay_shows_older_steps():
    """Values carry the end of the step they were measured in."""
    world, _ = shop()
    source = EmbeddedCustomMetrics(world.model, world.clock, scrape_delay=seconds(30))
    world.to(60)
    found = answer(source.pod_values("http_requests_per_second", namespace="default"))
    assert set(found.timestamp_ns.tolist()) == {after(START, seconds(30))}


def test_before_the_first_step_there_are_no_values():
    """Pods have none to return; of objects the metric is not found."""
    _, source = shop()
    asking = source.pod_values("http_requests_per_second", namespace="default")
    assert refusal(asking) == "no metrics returned from custom metrics API"
    with pytest.raises(
        MetricsError, match=r"could not find the metric queue_length for deployments\.apps web"
    ):
        of(source, "queue_length")


REFUSED = [
    ({"metric": "nope"}, "the server could not find the metric nope for deployments.apps web"),
    ({"name": "api"}, "the server could not find the metric queue_length for deployments.apps api"),
    (
        {"selector": "verb=GET"},
        "the server could not find the metric queue_length for deployments.apps web with selector verb=GET",
    ),
    (
        {"api_version": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute"},
        'unable to map kind HTTPRoute.gateway.networking.k8s.io to resource: no matches for kind "HTTPRoute" in group "gateway.networking.k8s.io"',
    ),
    (
        {"api_version": "v1", "kind": "Node"},
        "the server could not find the metric queue_length for nodes web",
    ),
]


@pytest.mark.parametrize(("changed", "text"), REFUSED)
def test_refusals_of_an_object_are_in_the_servers_words(changed, text):
    """A missing object is refused as a metrics server and its client refuse it."""
    world, source = shop()
    world.to(15)
    asked = {
        "metric": "queue_length",
        "name": "web",
        "api_version": "apps/v1",
        "kind": "Deployment",
    } | changed
    assert refusal(source.object_value(namespace="default", **asked)) == FETCHING + text


def test_an_unknown_metric_of_pods_is_refused():
    """The refusal names the metric and the resource."""
    world, source = shop()
    world.to(15)
    asking = source.pod_values("nope", namespace="default")
    assert refusal(asking) == FETCHING + "the server could not find the metric nope for pods"


def test_without_services_there_are_no_metrics():
    """A model without services lists no metric and refuses all."""
    world = World().put(make_pod())
    source = EmbeddedCustomMetrics(world.model, world.clock)
    world.to(15)
    assert source.custom_metrics() == []
    asking = source.pod_values("http_requests_per_second", namespace="default")
    assert refusal(asking).startswith(FETCHING)
