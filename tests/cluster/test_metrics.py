"""The metric sources' requests over HTTP, and their reading of answers that recordings do not have."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.answering import Later, asking, status

from kubetide.cluster import (
    Connection,
    HttpCluster,
    HttpCustomMetrics,
    HttpExternalMetrics,
    HttpMetrics,
    plurals_of,
)
from kubetide.cluster.refusals import error_of_body
from kubetide.objects.kinds import HPAS, HPAS_V1, PODS
from kubetide.ports.errors import MetricsError
from kubetide.runtime.timing.clock import run_real
from kubetide.units.quantity import Quantity
from kubetide.units.time import ZERO, parse_rfc3339, seconds

CUSTOM = "unable to fetch metrics from custom metrics API: "
EXTERNAL = "unable to fetch metrics from external metrics API: "
TIME = "2026-03-02T00:01:00Z"


class Server:
    """Answers by path, and notes the paths; a path that is not there is no page."""

    def __init__(self):
        self.answers = {}
        self.asked = []

    def add(self, path, answer):
        self.answers[path] = answer
        return self

    async def answer(self, request):
        self.asked.append(request.path)
        answer = self.answers.get(request.path)
        if answer is None:
            return web.Response(status=404, text="404 page not found\n")
        return answer() if callable(answer) else web.json_response(answer)


def group(preferred, *versions):
    return {"preferredVersion": {"version": preferred}, "versions": [{"version": one} for one in versions]}


def values(*milli, **more):
    return {
        "items": [
            {"describedObject": {"name": f"p{n}"}, "value": f"{m}m", **more} for n, m in enumerate(milli)
        ]
    }


def with_client(server, main):
    async def run(clock):
        async with asking(server.answer, clock) as client:
            return await main(client, clock)

    return run_real(run)


def custom_of(client, clock):
    return HttpCustomMetrics(client, clock, plural_of=plurals_of([PODS, HPAS]))


def pods_served(version, **more):
    path = f"/apis/custom.metrics.k8s.io/{version}/namespaces/default/pods/*/m"
    return (
        Server()
        .add("/apis/custom.metrics.k8s.io", more.pop("group", group(version, version)))
        .add(path, values(5, 7, **more))
    )


async def refusal(question):
    with pytest.raises(MetricsError) as caught:
        await question
    return str(caught.value)


# ── which version of custom metrics ──


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (group("v1beta2", "v1beta2", "v1beta1"), "v1beta2"),
        (group("v1beta1", "v1beta2", "v1beta1"), "v1beta1"),
        (group("v9", "v9", "v1beta1"), "v1beta1"),
        ({"versions": [{"version": "v1beta1"}]}, "v1beta1"),
    ],
)
def test_the_version_is_the_servers_choice(offered, chosen):
    """The preferred version is asked, or else the first of the others that is known."""
    server = pods_served(chosen, group=offered)
    found = with_client(
        server, lambda client, clock: custom_of(client, clock).pod_values("m", namespace="default")
    )
    assert found.names == ("p0", "p1")
    assert found.milli.tolist() == [5, 7]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "no custom metrics API (custom.metrics.k8s.io) registered"),
        (group("v2", "v2", "v3"), "no known available metric versions found"),
        (lambda: status(403, "Forbidden"), "code 403"),
    ],
)
def test_without_a_known_version_nothing_is_asked(answer, text):
    """An answer of discovery that is no version is the error."""
    server = Server().add("/apis/custom.metrics.k8s.io", answer)
    asked = with_client(
        server, lambda client, clock: refusal(custom_of(client, clock).pod_values("m", namespace="default"))
    )
    assert asked == CUSTOM + text
    assert server.asked == ["/apis/custom.metrics.k8s.io"]


@pytest.mark.parametrize(
    ("discovery", "text"),
    [
        (lambda: status(503, "ServiceUnavailable"), "no known available metric versions found"),
        ({"kind": "APIResourceList"}, "code 503"),
        (None, "code 503"),
    ],
)
def test_an_adapter_that_cannot_be_reached_serves_no_version(discovery, text):
    """Upstream reports it so from discovery; where discovery answers, the values' own refusal is the error."""
    server = pods_served("v1beta2").add("/apis/custom.metrics.k8s.io/v1beta2", discovery)
    path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/m"
    server.add(path, lambda: status(503, "ServiceUnavailable"))
    asked = with_client(
        server, lambda client, clock: refusal(custom_of(client, clock).pod_values("m", namespace="default"))
    )
    assert asked == CUSTOM + text


def test_the_version_is_looked_up_once_a_sync_period():
    """Questions at the same time share one lookup; after the period there is another, so a new version is seen."""
    server = pods_served("v1beta2")

    async def main(client, clock):
        later = Later(clock)
        custom = custom_of(client, later)
        await asyncio.gather(*(custom.pod_values("m", namespace="default") for _ in range(5)))
        assert server.asked.count("/apis/custom.metrics.k8s.io") == 1
        older = "/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/pods/*/m"
        server.add("/apis/custom.metrics.k8s.io", group("v1beta1", "v1beta1")).add(older, values(9))
        later.by = seconds(14)
        assert (await custom.pod_values("m", namespace="default")).milli.tolist() == [5, 7]
        later.by = seconds(16)
        assert (await custom.pod_values("m", namespace="default")).milli.tolist() == [9]

    with_client(server, main)


# ── answers ──


def test_times_of_values():
    """A value without a time is of year 1, which is further back than nanoseconds reach."""
    server = pods_served("v1beta2", timestamp=TIME)
    found = with_client(
        server, lambda client, clock: custom_of(client, clock).pod_values("m", namespace="default")
    )
    assert found.timestamp_ns.tolist() == [parse_rfc3339(TIME)] * 2
    found = with_client(
        pods_served("v1beta2"),
        lambda client, clock: custom_of(client, clock).pod_values("m", namespace="default"),
    )
    assert found.timestamp_ns.tolist() == [-(1 << 63)] * 2


def test_the_age_of_an_external_metric_is_that_of_its_oldest_series():
    """A stale series makes the sum stale; one without a time says nothing of it."""
    older = "2026-03-02T00:00:00Z"
    path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/m"

    def times(*stamps):
        items = [{"value": "1", **({"timestamp": stamp} if stamp else {})} for stamp in stamps]
        found = with_client(
            Server().add(path, {"items": items}),
            lambda client, _: HttpExternalMetrics(client).external_values("m", namespace="default"),
        )
        return found.timestamp_ns, found.oldest_ns

    assert times(TIME, older, None) == (parse_rfc3339(TIME), parse_rfc3339(older))
    assert times(None) == (-(1 << 63), None)


def test_of_a_pod_that_comes_twice_the_last_value_counts():
    """As in upstream's client, which stores them by name."""
    server = pods_served("v1beta2")
    answer = {"items": [*values(1, 2)["items"], *values(3)["items"]]}
    server.add("/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/m", answer)
    found = with_client(
        server, lambda client, clock: custom_of(client, clock).pod_values("m", namespace="default")
    )
    assert dict(zip(found.names, found.milli.tolist(), strict=True)) == {"p0": 3, "p1": 2}


USAGE = {
    "items": [
        {
            "metadata": {"name": "a", "namespace": "x"},
            "timestamp": TIME,
            "window": "15.5s",
            "containers": [
                {"name": "one", "usage": {"cpu": "1500001n", "memory": "2Ki"}},
                {"name": "two", "usage": {"nvidia.com/gpu": 1}},
            ],
        },
        {"metadata": {"name": "b", "namespace": "y"}, "containers": None},
    ]
}


def test_usage_is_laid_out_by_container():
    """Each resource that occurs is a column; a container that does not report one is not present in it."""
    server = Server().add("/apis/metrics.k8s.io/v1beta1/pods", USAGE)
    found = with_client(server, lambda client, clock: HttpMetrics(client, clock).pod_samples())
    assert (found.namespaces, found.names) == (("x", "y"), ("a", "b"))
    assert (found.first.tolist(), found.containers) == ([0, 2, 2], ("one", "two"))
    assert found.timestamp_ns.tolist() == [parse_rfc3339(TIME), -(1 << 63)]
    assert found.window_ns.tolist() == [seconds(15.5), 0]
    assert {name: (usage.milli.tolist(), usage.present.tolist()) for name, usage in found.usage.items()} == {
        "cpu": ([2, 0], [True, False]),
        "memory": ([2_048_000, 0], [True, False]),
        "nvidia.com/gpu": ([0, 1000], [False, True]),
    }


def usage_of(values):
    """The CPU column of an answer with these values, one container a pod."""
    items = [
        {
            "metadata": {"name": f"p{index}", "namespace": "x"},
            "containers": [{"name": "one", "usage": {"cpu": value, "memory": "1Ki"}}],
        }
        for index, value in enumerate(values)
    ]
    answer = json.dumps({"items": items}).encode()

    class Answering:
        async def get_raw(self, path, query=None, *, hasty=False):
            return answer

    return run_real(lambda clock: HttpMetrics(Answering(), clock).pod_samples())


NUMBERS = st.integers(0, 10**14) | st.integers(0, 3 * 10**9)
USUAL = NUMBERS.map("{}n".format)
VALUES = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "+", "-", "0"]),
    NUMBERS,
    st.sampled_from(["n", "u", "m", "", "k", "Ki", "Gi"]),
)


@given(st.lists(USUAL | VALUES | st.just("0") | st.integers(0, 9), min_size=1, max_size=8))
def test_values_are_read_as_upstream_reads_them(values):
    """The short way for what metrics-server sends gives what the reader of quantities gives."""
    found = usage_of(values)
    assert found.usage["cpu"].milli.tolist() == [Quantity.parse(value).milli_value() for value in values]
    assert found.usage["memory"].milli.tolist() == [1_024_000] * len(values)


@pytest.mark.parametrize("value", ["5n,6n", " 5n", "5 n", "5\tn", "nn", "", "5e1n", "1.5.n", "5nn", "truen"])
@pytest.mark.parametrize("others", [0, 1, 3])
def test_no_column_takes_what_is_no_quantity(value, others):
    """A value that spoils an answer by itself spoils it among usual values too, at every position."""
    for at in range(others + 1):
        values = ["7n"] * others
        values.insert(at, value)
        with pytest.raises(MetricsError):
            usage_of(values)


def test_a_large_answer_leaves_others_their_turn():
    """While the usage of many pods is read, other tasks go on; an unusual pod among them changes nothing."""
    items = [
        {
            "metadata": {"name": f"p{index}", "namespace": "x"},
            "containers": [{"name": "one", "usage": {"cpu": f"{index}000001n", "memory": "1Ki"}}],
        }
        for index in range(25_000)
    ]
    items[12_345]["containers"][0]["usage"] = {"nvidia.com/gpu": 1}
    answer = json.dumps({"items": items}).encode()

    class Answering:
        async def get_raw(self, path, query=None, *, hasty=False):
            return answer

    async def main(clock):
        turns = []

        async def count():
            while True:
                turns.append(1)
                await clock.sleep(ZERO)

        other = asyncio.create_task(count())
        found = await HttpMetrics(Answering(), clock).pod_samples()
        other.cancel()
        return found, len(turns)

    found, turns = run_real(main)
    assert turns >= 2
    assert found.names == tuple(f"p{index}" for index in range(25_000))
    milli, present = found.usage["cpu"].milli.tolist(), found.usage["cpu"].present.tolist()
    assert [index for index, there in enumerate(present) if not there] == [12_345]
    assert milli == [index + 1 if index != 12_345 else 0 for index in range(25_000)]
    gpus = found.usage["nvidia.com/gpu"]
    assert (gpus.milli.sum(), gpus.present.sum(), gpus.milli[12_345]) == (1000, 1, 1000)


BAD_ANSWERS = [
    ({"items": [{"value": "many"}]}, '"many" is not a quantity'),
    ({"items": [{"value": "1", "timestamp": "noon"}]}, '"noon" is not an RFC 3339 time'),
    ({"items": [{}]}, "the server's answer cannot be read"),
    (lambda: web.Response(text="<html>", content_type="text/html"), "the server's answer cannot be read"),
]


@pytest.mark.parametrize(("answer", "text"), BAD_ANSWERS)
def test_an_answer_that_cannot_be_read_is_an_error_of_metrics(answer, text):
    """Whatever a metrics server sends, the loop gets a text that says which API it came from."""
    server = pods_served("v1beta2")
    for path in (
        "custom.metrics.k8s.io/v1beta2/namespaces/default/pods/*/m",
        "custom.metrics.k8s.io/v1beta2/namespaces/default/pods/a/m",
        "external.metrics.k8s.io/v1beta1/namespaces/default/m",
    ):
        server.add(f"/apis/{path}", answer)

    async def main(client, clock):
        custom = custom_of(client, clock)
        about = {"namespace": "default", "api_version": "v1", "kind": "Pod", "name": "a"}
        return [
            await refusal(custom.pod_values("m", namespace="default")),
            await refusal(custom.object_value("m", **about)),
            await refusal(HttpExternalMetrics(client).external_values("m", namespace="default")),
        ]

    for found, start in zip(with_client(server, main), (CUSTOM, CUSTOM, EXTERNAL), strict=True):
        assert found.startswith(start)
        assert text in found


@pytest.mark.parametrize("usage", [{"cpu": "many"}, {"cpu": []}])
def test_usage_that_cannot_be_read_is_an_error_of_metrics(usage):
    """One bad quantity spoils the answer, as it does for upstream's client."""
    item = {"metadata": {"name": "a"}, "containers": [{"name": "one", "usage": usage}]}
    server = Server().add("/apis/metrics.k8s.io/v1beta1/pods", {"items": [item]})
    assert with_client(server, lambda client, clock: refusal(HttpMetrics(client, clock).pod_samples()))


# ── refusals ──


def test_what_fails_is_asked_once():
    """A metrics API that is away is asked again at the next tick and not within this one."""
    server = Server().add(
        "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/m",
        lambda: web.Response(status=503, text="away\n"),
    )
    found = with_client(
        server,
        lambda client, _: refusal(HttpExternalMetrics(client).external_values("m", namespace="default")),
    )
    assert found == (
        f"{EXTERNAL}the server is currently unable to handle the request (get m.external.metrics.k8s.io)"
    )
    assert len(server.asked) == 1


def test_no_server_is_an_error_of_metrics():
    """Where nobody listens the text names the address."""

    async def main(clock):
        async with HttpCluster(Connection("http://127.0.0.1:9"), clock) as client:
            return await refusal(HttpMetrics(client, clock).pod_samples("x"))

    assert run_real(main).startswith("GET http://127.0.0.1:9/apis/metrics.k8s.io/v1beta1/namespaces/x/pods: ")


UNEXPLAINED = [
    (400, "x", "the server rejected our request for an unknown reason"),
    (403, "you may not\n", "you may not"),
    (404, "404 page not found\n", "the server could not find the requested resource"),
    (410, "", "the server responded with the status code 410 but did not return more information"),
    (418, "tea", "the server responded with the status code 418 but did not return more information"),
    (429, "", "the server has received too many requests and has asked us to try again later"),
    (500, 'a "b"\n', r'an error on the server ("a \"b\"") has prevented the request from succeeding'),
    (502, "", 'an error on the server ("unknown") has prevented the request from succeeding'),
    (503, "service unavailable", "the server is currently unable to handle the request"),
]


@pytest.mark.parametrize(("code", "body", "text"), UNEXPLAINED)
def test_answers_without_a_status_are_reported_in_client_gos_words(code, body, text):
    """The code decides the message, and the body where the code has none."""
    assert str(error_of_body(code, body.encode())) == text


def test_kinds_are_known_by_group_whatever_their_version():
    """Metrics are requested by group and kind; a kind that is not known has no plural."""
    plural_of = plurals_of([PODS, HPAS, HPAS_V1])
    assert plural_of("v1", "Pod") == "pods"
    assert plural_of("autoscaling/v2beta2", "HorizontalPodAutoscaler") == "horizontalpodautoscalers"
    assert plural_of("apps/v1", "Pod") is None
