"""External metrics from Prometheus: questions, answers, identities and failures, against a server of its API."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from contextlib import asynccontextmanager

import pytest
import trustme
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from kubetide.cluster import Connection
from kubetide.cluster.metric_ports.prometheus import BasicAuth, PrometheusClient, PrometheusMetrics
from kubetide.cluster.metric_ports.promql import AVERAGE_OVER, SOURCE, prometheus_question, quoted
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import ExternalValues
from kubetide.runtime.configuration.config import ConfigError
from kubetide.runtime.configuration.run_settings import RunSettings
from kubetide.runtime.prometheus import prometheus_access
from kubetide.serving import Listener
from kubetide.units.time import parse_rfc3339

NOW = parse_rfc3339("2026-03-02T08:00:00Z")
OURS = f"{SOURCE}=prometheus"
SCRAPED = NOW // 10**9 - 7


def vector(*values):
    result = [{"metric": {"i": str(i)}, "value": [NOW / 1e9, value]} for i, value in enumerate(values)]
    return {"resultType": "vector", "result": result}


def matrix(*series):
    return {
        "resultType": "matrix",
        "result": [{"metric": {}, "values": [[NOW / 1e9, value] for value in values]} for values in series],
    }


class Prometheus:
    """A server of the API: the same answer to every question but that for times of scrapes."""

    def __init__(self, data=None, *, error=None, raw=None, status=200, scraped=SCRAPED, leads_to=""):
        self.data, self.error, self.raw, self.status, self.scraped = data, error, raw, status, scraped
        self.leads_to = leads_to
        self.asked, self.identities = [], []

    async def handle(self, request):
        form = dict(await request.post())
        self.asked.append((request.path, form))
        self.identities.append(request.headers.get("Authorization", ""))
        if self.raw is not None:
            headers = {"Location": self.leads_to} if self.leads_to else {}
            return web.Response(body=self.raw, status=self.status, content_type="text/html", headers=headers)
        if self.error:
            return web.json_response(
                {"status": "error", "errorType": "bad_data", "error": self.error}, status=self.status
            )
        is_time = form["query"].startswith("timestamp(")
        return web.json_response(
            {"status": "success", "data": vector(str(self.scraped)) if is_time else self.data}
        )

    @asynccontextmanager
    async def serving(self, tls=None):
        app = web.Application()
        app.router.add_post("/prom/api/v1/{what}", self.handle)
        listener = Listener(app)
        await listener.listen("127.0.0.1", tls=tls)
        try:
            yield f"{'https' if tls else 'http'}://{listener.authority}/prom/"
        finally:
            await listener.close()


class Elsewhere:
    """The source of all other metrics."""

    async def external_values(self, metric, *, namespace, selector=""):
        return ExternalValues([len(metric)], 1)


class Fixed:
    """A clock whose time does not advance."""

    def now(self):
        return NOW

    def monotonic(self):
        return 0


def values(server, metric="queue", selector=OURS, *, tls=None, basic=None, **access):
    async def ask():
        clock = Fixed()
        async with server.serving(tls) as url:
            connection = Connection(url, **access)
            async with PrometheusClient(connection, clock, basic=basic) as client:
                source = PrometheusMetrics(client, clock, Elsewhere())
                return await source.external_values(metric, namespace="default", selector=selector)

    return asyncio.run(ask())


def refusal(server, **how):
    with pytest.raises(MetricsError) as caught:
        values(server, **how)
    return str(caught.value)


# ── questions ──


@pytest.mark.parametrize(
    ("selector", "query"),
    [
        (OURS, '{__name__="queue"}'),
        (f"{OURS},app=web", '{__name__="queue",app="web"}'),
        (f"{OURS},app!=web", '{__name__="queue",app!="web"}'),
        (f"{OURS},app in (b.c,a)", '{__name__="queue",app=~"a|b\\\\.c"}'),
        (f"{OURS},app notin (a)", '{__name__="queue",app!~"a"}'),
        (f"{OURS},app", '{__name__="queue",app!=""}'),
        (f"{OURS},!app", '{__name__="queue",app=""}'),
        (f"{OURS},app,app notin (a)", '{__name__="queue",app!="",app!~"a"}'),
        (f"{OURS},app.kubernetes.io/name=web", '{__name__="queue","app.kubernetes.io/name"="web"}'),
    ],
)
def test_a_selector_is_matchers(selector, query):
    """Each operator has its matcher, names that old servers do not know are quoted."""
    assert prometheus_question("queue", selector) == (query, None)


def test_only_selectors_that_say_so_ask_prometheus():
    """Without the label, or with another source in it, the metric is another's."""
    assert prometheus_question("queue", "") is None
    assert prometheus_question("queue", "app=web") is None
    assert prometheus_question("queue", f"{SOURCE}=other") is None
    assert values(Prometheus(), selector="app=web").milli == [5]


def test_a_selector_without_a_form_is_said_to_have_none():
    """Comparing labels as numbers and an invalid period are errors."""
    assert "has no form in PromQL" in refusal(Prometheus(), selector=f"{OURS},size>3")
    assert "write a duration up to 24h" in refusal(Prometheus(), selector=f"{OURS},{AVERAGE_OVER}=soon")


@given(name=st.text(max_size=20))
def test_no_name_ends_its_literal(name):
    """Whatever the name, what PromQL reads back is the name."""
    text = quoted(name)
    assert text[0] == text[-1] == '"'
    assert "\n" not in text
    read, at = "", 1
    while at < len(text) - 1:
        assert text[at] != '"'
        step = 2 if text[at] == "\\" else 1
        read += {"n": "\n", "r": "\r"}.get(text[at + 1], text[at + 1]) if step == 2 else text[at]
        at += step
    assert (read, at) == (name, len(text) - 1)


# ── answers ──


@pytest.mark.parametrize(
    ("data", "milli"),
    [
        (vector("3"), [3000]),
        (vector("1.5", "0.0001", "-0.0001"), [1500, 1, -1]),
        (vector("1e3"), [1_000_000]),
        ({"resultType": "scalar", "result": [1, "7"]}, [7000]),
    ],
)
def test_values_are_rounded_up_to_thousandths(data, milli):
    """A vector gives each series, a scalar its value; the time is that of the oldest sample, not of the request."""
    server = Prometheus(data)
    assert values(server)[:2] == (milli, SCRAPED * 10**9)
    assert {path for path, _ in server.asked} == {"/prom/api/v1/query"}
    assert {form["time"] for _, form in server.asked} == {"1772438400.000000000"}


def test_a_period_is_a_range_query_and_an_average():
    """Sixty steps at most; steps without a number are left out."""
    server = Prometheus(matrix(["1", "NaN", "4"], ["10"]))
    selector = f"{OURS},{AVERAGE_OVER}=5m"
    assert values(server, selector=selector).milli == [2500, 10_000]
    [form] = [form for path, form in server.asked if path.endswith("/query_range")]
    assert form == {
        "query": '{__name__="queue"}',
        "start": "1772438100.000000000",
        "end": "1772438400.000000000",
        "step": "5.000000000",
    }


@pytest.mark.parametrize(
    ("server", "text"),
    [
        (Prometheus(vector("NaN")), "the value is NaN"),
        (Prometheus(vector("+Inf")), "the value is +Inf"),
        (Prometheus(vector("1e40")), "beyond what a quantity can hold"),
        (Prometheus(vector("many")), "many is no number"),
        (Prometheus(vector()), "no series; is it scraped"),
        (Prometheus(matrix(["NaN", "NaN"])), "no value in that time is a number"),
        (Prometheus({"resultType": "string", "result": [1, "x"]}), "a result of type string has no value"),
        (Prometheus({"resultType": "vector"}), "the answer is not one of Prometheus' API"),
        (Prometheus({"resultType": "vector", "result": [{"value": [1, 2]}]}), "2 is no text of a number"),
        (Prometheus(None), "the answer is not one of Prometheus' API"),
        (Prometheus(error="parse error", status=400), "bad_data: parse error"),
        (Prometheus(raw=b"<html>", status=502), "502 Bad Gateway"),
        (
            Prometheus(raw=b"", status=302, leads_to="https://login.example/start?state=secret"),
            "which leads to https://login.example/start; give the address of the API itself",
        ),
        (Prometheus(raw=b"<html>"), "the answer is not one of Prometheus' API"),
        (Prometheus(raw=json.dumps([1]).encode()), "the answer is not one of Prometheus' API"),
    ],
)
def test_what_is_no_value_is_an_error_that_names_the_query(server, text):
    """Errors of every kind are texts for the HPA's condition."""
    said = refusal(server)
    assert said.startswith('unable to fetch metrics from Prometheus: {__name__="queue"}: ')
    assert text in said


# ── identities ──


def test_a_token_and_a_password_are_shown(tmp_path):
    """A bearer token from its file, or a user with the password of a file."""
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    server = Prometheus(vector("1"))
    values(server, token_file=secret)
    assert set(server.identities) == {"Bearer s3cret"}
    server = Prometheus(vector("1"))
    values(server, basic=BasicAuth("ann", secret))
    assert set(server.identities) == {"Basic " + base64.b64encode(b"ann:s3cret").decode()}
    assert "cannot be read" in refusal(server, basic=BasicAuth("ann", tmp_path / "none"))


def test_tls_requires_a_known_authority():
    """With the authority the answer comes, without it the connection is refused."""
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    pem = authority.cert_pem.bytes().decode()
    assert values(Prometheus(vector("1")), tls=tls, authority=pem).milli == [1000]
    assert "certificate verify failed" in refusal(Prometheus(vector("1")), tls=tls)


def test_a_server_that_is_not_there():
    """No connection is an error like any other."""

    async def ask():
        clock = Fixed()
        async with PrometheusClient(Connection("http://127.0.0.1:1"), clock) as client:
            with pytest.raises(MetricsError, match=r"http://127\.0\.0\.1:1/api/v1/query: "):
                await client.instant("up", NOW)

    asyncio.run(ask())


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"prometheus_url": "prometheus:9090"}, "prometheus-url"),
        ({"prometheus_user": "ann"}, "belong together"),
        ({"prometheus_user": "a", "prometheus_password_file": "b", "prometheus_token_file": "c"}, "exclude"),
        ({"prometheus_ca_file": "/nowhere/ca.pem"}, "prometheus-ca-file: /nowhere/ca.pem cannot be read"),
    ],
)
def test_settings_that_cannot_work_are_named(settings, text):
    """The setting and the fix."""
    with pytest.raises(ConfigError, match=text):
        prometheus_access(RunSettings(**{"prometheus_url": "http://p:9090", **settings}))


def test_settings_lead_to_the_server(tmp_path):
    """URL, token file and authorities."""
    ca = tmp_path / "ca.pem"
    ca.write_text("PEM")
    run = RunSettings(prometheus_url="https://p", prometheus_token_file="/t", prometheus_ca_file=str(ca))
    connection, basic = prometheus_access(run)
    assert (connection.url, str(connection.token_file), connection.authority, basic) == (
        "https://p",
        "/t",
        "PEM",
        None,
    )
