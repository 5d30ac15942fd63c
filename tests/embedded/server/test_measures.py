"""custom.metrics.k8s.io and external.metrics.k8s.io as clients see them."""

from __future__ import annotations

import json
from functools import cache

import aiohttp
import pytest
from tests.cluster.served import TOKEN, served
from tests.embedded.load.worlds import START, World, make_pod, make_service

from kubetide.embedded.apiserver.http import Identities, Rule, User
from kubetide.embedded.load import (
    ConstantTrace,
    EmbeddedCustomMetrics,
    EmbeddedExternalMetrics,
    ExternalSeries,
)
from kubetide.objects.kinds import DEPLOYMENTS
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector
from kubetide.testing import builders
from kubetide.units.time import seconds

CUSTOM = "/apis/custom.metrics.k8s.io"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"
IN_DEFAULT = f"{CUSTOM}/v1beta2/namespaces/default"
AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
NOT_FOUND = "404 page not found\n"
PODS = ("a", "b")


def sources(*services):
    """A minute of a service with two ready pods, and a queue."""
    world = World(*services)
    for name in PODS:
        pod = make_pod(name)
        pod.metadata.labels["pod"] = name
        world.put(pod)
    world.to(60)
    series = [
        ExternalSeries("queue_messages_ready", ConstantTrace(value), {"queue": queue})
        for queue, value in (("orders", 7.5), ("mail", 2.0))
    ]
    external = EmbeddedExternalMetrics(series, world.clock, start=START, step=seconds(15))
    return EmbeddedCustomMetrics(world.model, world.clock), external


def ask(path, *, method="GET", headers=None, identities=None, given=None):
    """Return code and body of one answer, the body as JSON where it is."""
    custom, external = given or sources(make_service(30.0, max_queue_s=60.0), make_service(1.0, name="api"))

    async def main(clock):
        async with served(clock, custom=custom, external=external, identities=identities) as (
            cluster,
            server,
            connection,
        ):
            for name in ("web", "api", "idle"):
                labels = {"tier": "back" if name == "api" else "front"}
                body = builders.deployment(name, extra={"metadata": {"labels": labels}})
                await cluster.create(DEPLOYMENTS, body, namespace="default")
            async with aiohttp.ClientSession(connector=make_connector(ssl=connection.tls())) as session:
                sent = {"Authorization": f"Bearer {TOKEN}", **(headers or {})}
                async with session.request(method, server.url + path, headers=sent) as answer:
                    text = await answer.text()
                    return answer.status, json.loads(text) if "json" in answer.content_type else text

    return run_real(main)


@cache
def read(path):
    code, body = ask(path)
    assert code == 200, body
    return body


def test_values_of_pods():
    """v1beta2 names the metric in an object of its own and the window in seconds."""
    found = read(f"{IN_DEFAULT}/pods/*/http_requests_per_second?labelSelector=pod%3Da")
    assert found == {
        "kind": "MetricValueList",
        "apiVersion": "custom.metrics.k8s.io/v1beta2",
        "metadata": {},
        "items": [
            {
                "describedObject": {"kind": "Pod", "namespace": "default", "name": "a", "apiVersion": "v1"},
                "metric": {"name": "http_requests_per_second", "selector": None},
                "timestamp": "2026-03-02T00:01:00Z",
                "windowSeconds": 15,
                "value": "15",
            }
        ],
    }


def test_values_in_the_older_version():
    """v1beta1 has the metric's name, its selector and the window beside the value."""
    found = read(f"{CUSTOM}/v1beta1/namespaces/default/deployments.apps/web/request_duration_seconds")
    assert found["apiVersion"] == "custom.metrics.k8s.io/v1beta1"
    (item,) = found["items"]
    assert item["value"].endswith("m")
    del item["value"]
    assert item == {
        "describedObject": {
            "kind": "Deployment",
            "namespace": "default",
            "name": "web",
            "apiVersion": "apps/v1",
        },
        "metricName": "request_duration_seconds",
        "timestamp": "2026-03-02T00:01:00Z",
        "window": 15,
        "selector": None,
    }


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("pods/*/http_requests_in_flight", ["a", "b"]),
        ("pods/b/http_requests_per_second", ["b"]),
        ("pods/*/http_requests_per_second?labelSelector=pod+in+(x)", []),
        ("pods/*/http_requests_per_second?metricLabelSelector=verb%3DGET", []),
        ("deployments.apps/*/requests_per_second", ["api", "web"]),
        ("deployments.apps/*/requests_per_second?labelSelector=tier%3Dback", ["api"]),
        ("metrics/requests_per_second", ["default"]),
    ],
)
def test_which_objects_come(path, names):
    """A star means the objects that the selector chooses and that have a value."""
    found = read(f"{IN_DEFAULT}/{path}")
    assert sorted(item["describedObject"]["name"] for item in found["items"]) == names


def test_a_namespace_is_not_in_one():
    """The sum of a namespace describes the Namespace itself."""
    (item,) = read(f"{IN_DEFAULT}/metrics/requests_per_second")["items"]
    assert item["describedObject"] == {"kind": "Namespace", "name": "default", "apiVersion": "v1"}
    assert item["value"] == "31"


def test_a_metric_selector_is_repeated_as_an_object():
    """The answer repeats the selector of the metric's labels."""
    query = "metricLabelSelector=!verb,code+notin+(500)"
    items = read(f"{IN_DEFAULT}/pods/*/http_requests_per_second?{query}")["items"]
    assert len(items) == len(PODS)
    assert items[0]["metric"]["selector"] == {
        "matchExpressions": [
            {"key": "code", "operator": "NotIn", "values": ["500"]},
            {"key": "verb", "operator": "DoesNotExist"},
        ]
    }


def test_series_of_an_external_metric():
    """Each series has its labels; a selector chooses among them."""
    found = read(f"{EXTERNAL}/namespaces/any/queue_messages_ready?labelSelector=queue%3Dorders")
    assert found == {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [
            {
                "metricName": "queue_messages_ready",
                "metricLabels": {"queue": "orders"},
                "timestamp": "2026-03-02T00:01:00Z",
                "window": 15,
                "value": "7500m",
            }
        ],
    }
    assert len(read(f"{EXTERNAL}/namespaces/any/queue_messages_ready")["items"]) == 2
    assert read(f"{EXTERNAL}/namespaces/any/queue_messages_ready?labelSelector=queue%3Dx")["items"] == []


REFUSED = [
    (f"{IN_DEFAULT}/pods/*/nope", 404, "the server could not find the metric nope for pods"),
    (f"{IN_DEFAULT}/services/*/nope", 404, "the server could not find the metric nope for services"),
    (
        f"{IN_DEFAULT}/pods/c/http_requests_per_second",
        404,
        "the server could not find the metric http_requests_per_second for pods c",
    ),
    (
        f"{IN_DEFAULT}/deployments.apps/idle/queue_length",
        404,
        "the server could not find the metric queue_length for deployments.apps idle",
    ),
    (
        f"{IN_DEFAULT}/deployments.apps/web/queue_length?metricLabelSelector=a%3Db",
        404,
        "the server could not find the metric queue_length for deployments.apps web with selector a=b",
    ),
    (f"{CUSTOM}/v1beta2/nodes/n1/load", 404, "the server could not find the metric load for nodes n1"),
    (
        f"{IN_DEFAULT}/metrics/queue_time",
        404,
        "the server could not find the metric queue_time for namespaces default",
    ),
    (f"{EXTERNAL}/namespaces/default/nope", 404, "the server could not find the metric nope for namespaces"),
    (
        f"{IN_DEFAULT}/pods/*/http_requests_per_second?labelSelector=a+in+(",
        400,
        "couldn't parse the selector string",
    ),
    (
        f"{EXTERNAL}/namespaces/default/queue_messages_ready?labelSelector=a+in+(",
        400,
        "couldn't parse the selector string",
    ),
]


@pytest.mark.parametrize(("path", "code", "text"), REFUSED)
def test_what_is_refused(path, code, text):
    """A refusal is a Status in the words of the library that metrics servers are built on."""
    found, body = ask(path)
    assert (found, body["kind"], body["code"]) == (code, "Status", code)
    assert body["reason"] == {404: "NotFound", 400: "BadRequest"}[code]
    assert body["message"].startswith(text) if code == 400 else body["message"] == text


@pytest.mark.parametrize(
    "path",
    [
        f"{IN_DEFAULT}/pods",
        f"{IN_DEFAULT}/pods/a",
        f"{IN_DEFAULT}/pods/a/http_requests_per_second/more",
        f"{CUSTOM}/v1/namespaces/default/pods/a/http_requests_per_second",
        f"{EXTERNAL}/queue_messages_ready",
        f"{EXTERNAL}/namespaces/default/a/b",
    ],
)
def test_paths_that_name_no_metric(path):
    """A path that these APIs do not have is not found."""
    assert ask(path) == (404, NOT_FOUND)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{IN_DEFAULT}/pods/*/http_requests_per_second"),
        ("DELETE", f"{EXTERNAL}/namespaces/default/queue_messages_ready"),
        ("GET", f"{EXTERNAL}/namespaces/default/queue_messages_ready?watch=1"),
    ],
)
def test_values_can_only_be_read(method, path):
    """There is nothing to write or to watch."""
    code, body = ask(path, method=method)
    assert (code, body["reason"]) == (405, "MethodNotAllowed")


def test_without_metrics_the_groups_are_not_there():
    """A world without services and series serves neither group."""
    world = World()
    given = EmbeddedCustomMetrics(world.model, world.clock), None
    assert ask(f"{IN_DEFAULT}/pods/*/http_requests_per_second", given=given) == (404, NOT_FOUND)
    assert ask(f"{EXTERNAL}/namespaces/default/queue_messages_ready", given=given) == (404, NOT_FOUND)
    code, groups = ask("/apis", given=given)
    assert code == 200
    assert not {group["name"] for group in groups["groups"]} & {
        "custom.metrics.k8s.io",
        "external.metrics.k8s.io",
    }


def test_discovery_lists_each_metric():
    """A custom metric is a subresource of what has it, an external one a resource; both can be got."""
    (group,) = [one for one in read("/apis")["groups"] if one["name"] == "custom.metrics.k8s.io"]
    assert [one["version"] for one in group["versions"]] == ["v1beta2", "v1beta1"]
    assert group["preferredVersion"]["version"] == "v1beta2"
    resources = {one["name"]: one for one in read(f"{CUSTOM}/v1beta2")["resources"]}
    assert resources["pods/http_requests_per_second"] == {
        "name": "pods/http_requests_per_second",
        "singularName": "",
        "namespaced": True,
        "kind": "MetricValueList",
        "verbs": ["get"],
    }
    assert resources["namespaces/queue_length"]["namespaced"] is False
    assert "deployments.apps/queue_length" in resources
    assert read(EXTERNAL)["resources"] == [
        {
            "name": "queue_messages_ready",
            "singularName": "",
            "namespaced": True,
            "kind": "ExternalMetricValueList",
            "verbs": ["get"],
        }
    ]


def test_aggregated_discovery_lists_each_metric():
    """The newer form has a resource without a kind of its own above the metrics."""
    _, found = ask("/apis", headers=AGGREGATED)
    groups = {item["metadata"]["name"]: item["versions"] for item in found["items"]}
    (pods,) = [one for one in groups["custom.metrics.k8s.io"][0]["resources"] if one["resource"] == "pods"]
    assert pods["responseKind"] == {"group": "", "version": "", "kind": ""}
    assert {one["subresource"] for one in pods["subresources"]} == {
        "http_requests_per_second",
        "http_request_duration_seconds",
        "http_requests_in_flight",
    }
    (queue,) = groups["external.metrics.k8s.io"][0]["resources"]
    assert (queue["resource"], queue["verbs"]) == ("queue_messages_ready", ["get"])


def test_openapi_describes_the_answers():
    """Every group and version has a document with the fields of its answers, in both forms of OpenAPI."""
    paths = read("/openapi/v3")["paths"]
    for root, kind, field in (
        ("apis/custom.metrics.k8s.io/v1beta2", "custom_metrics.v1beta2.MetricValue", "windowSeconds"),
        ("apis/custom.metrics.k8s.io/v1beta1", "custom_metrics.v1beta1.MetricValue", "metricName"),
        (
            "apis/external.metrics.k8s.io/v1beta1",
            "external_metrics.v1beta1.ExternalMetricValue",
            "metricLabels",
        ),
    ):
        document = read(paths[root]["serverRelativeURL"])
        name = f"io.k8s.metrics.pkg.apis.{kind}"
        assert field in document["components"]["schemas"][name]["properties"]
        assert all(path.startswith(f"/{root}/") for path in document["paths"])
        assert field in read("/openapi/v2")["definitions"][name]["properties"]


READER = Rule(("get",), ("custom.metrics.k8s.io",), ("pods/http_requests_per_second",), ("default",))
ALLOWED = [
    (f"{IN_DEFAULT}/pods/*/http_requests_per_second", READER, 200),
    (f"{IN_DEFAULT}/pods/*/http_requests_in_flight", READER, 403),
    (f"{CUSTOM}/v1beta2/namespaces/far/pods/*/http_requests_per_second", READER, 403),
    (f"{IN_DEFAULT}/metrics/queue_length", READER, 403),
    (f"{IN_DEFAULT}/metrics/queue_length", Rule(("get",), ("custom.metrics.k8s.io",), ("metrics",)), 200),
    (
        f"{EXTERNAL}/namespaces/default/queue_messages_ready",
        Rule(("list",), ("external.metrics.k8s.io",), ("queue_messages_ready",)),
        200,
    ),
    (f"{EXTERNAL}/namespaces/default/queue_messages_ready", READER, 403),
]


@pytest.mark.parametrize(("path", "rule", "code"), ALLOWED)
def test_the_allow_list_holds(path, rule, code):
    """A metric is allowed as the resource that the authorizer of an API server sees."""
    identities = Identities({TOKEN: User("reader", rules=(rule,))})
    found, body = ask(path, identities=identities)
    assert found == code
    if code == 403:
        assert 'is forbidden: User "reader" cannot' in body["message"]
