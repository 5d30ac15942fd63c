"""External metrics from an installed Prometheus: it answers as the fake of ``test_prometheus`` does."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from tests.cluster.prometheus_server import (
    PASSWORD,
    USER,
    exporter,
    find_prometheus,
    running_prometheus,
)

from kubetide.cluster.metric_ports.prometheus import PrometheusClient, PrometheusMetrics
from kubetide.cluster.metric_ports.promql import AVERAGE_OVER, SOURCE
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import ExternalValues
from kubetide.runtime.configuration.run_settings import RunSettings
from kubetide.runtime.prometheus import prometheus_access
from kubetide.runtime.timing.clock import run_real
from kubetide.testing.cluster_cases.ground import eventually
from kubetide.units.time import minutes, seconds

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_prometheus() is None, reason="not there: prometheus (KUBETIDE_PROMETHEUS)"),
]

OURS = f"{SOURCE}=prometheus"
SERIES = {
    'depth{queue="orders",zone="a"}': 70,
    'depth{queue="orders",zone="b"}': 0.5,
    'depth{queue="a.c"}': 1,
    'depth{queue="abc"}': 2,
    "lonely": 7,
    "odd": "NaN",
    "endless": "+Inf",
    "huge": 1e40,
}


class Elsewhere:
    """The source of all other metrics."""

    async def external_values(self, metric, *, namespace, selector=""):
        return ExternalValues([len(metric)], 1)


@pytest.fixture(scope="module")
def scraped():
    with exporter(**SERIES) as running:
        yield running


@pytest.fixture(scope="module")
def servers(scraped, tmp_path_factory):
    """An open one and a guarded one, started together: their first scrapes come after five seconds."""
    with (
        running_prometheus(tmp_path_factory.mktemp("prometheus"), scraped) as prometheus,
        running_prometheus(tmp_path_factory.mktemp("guarded"), scraped, guarded=True) as guarded,
    ):
        yield prometheus, guarded


@pytest.fixture
def prometheus(servers):
    return servers[0]


@pytest.fixture
def guarded(servers):
    """A server that speaks TLS and requires a password."""
    return servers[1]


@asynccontextmanager
async def source(clock, server, **settings):
    """Yield the client and the source, reached as ``kubetide run`` reaches them."""
    connection, basic = prometheus_access(RunSettings(prometheus_url=server.url, **settings))
    async with PrometheusClient(connection, clock, basic=basic) as client:
        yield client, PrometheusMetrics(client, clock, Elsewhere())


async def known_for(client, clock, series, steps):
    """Wait until a series has values at that many of the last seconds."""

    async def is_known():
        now = clock.now()
        found = await client.range(series, now - minutes(1), now, seconds(1))
        return bool(found) and len(found[0].values) >= steps

    await eventually(clock, f"{series} has been scraped for a while", is_known)


def asked(server, metric, selector=OURS, **settings):
    """The values of a metric once it has been scraped."""

    async def run(clock):
        async with source(clock, server, **settings) as (client, metrics):
            await known_for(client, clock, "lonely", 2)
            found = await metrics.external_values(metric, namespace="default", selector=selector)
            assert 0 <= clock.now() - found.timestamp_ns < minutes(1)
            return found.milli

    return run_real(run)


@pytest.mark.parametrize(
    ("metric", "selector", "milli"),
    [
        ("lonely", OURS, [7000]),
        ("depth", f"{OURS},queue=orders", [500, 70_000]),
        ("depth", f"{OURS},queue=orders,zone!=a", [500]),
        ("depth", f"{OURS},queue in (a.c,none)", [1000]),
        ("depth", f"{OURS},queue notin (orders,abc)", [1000]),
        ("depth", f"{OURS},zone", [500, 70_000]),
        ("depth", f"{OURS},!zone", [1000, 2000]),
        ("depth", f"{OURS},{AVERAGE_OVER}=1m,queue=orders", [500, 70_000]),
    ],
)
def test_selectors_find_what_they_say(prometheus, metric, selector, milli):
    """Every operator, names with dots, and averages of series that do not change."""
    assert sorted(asked(prometheus, metric, selector)) == milli


@pytest.mark.parametrize(
    ("metric", "selector", "text"),
    [
        ("nothing", OURS, "no series; is it scraped"),
        ('lonely"} or {__name__="depth', OURS, "no series; is it scraped"),
        ("odd", OURS, "the value is NaN"),
        ("odd", f"{OURS},{AVERAGE_OVER}=1m", "no value in that time is a number"),
        ("endless", OURS, "the value is +Inf"),
        ("huge", OURS, "beyond what a quantity can hold"),
    ],
)
def test_what_is_no_value_is_an_error_in_words(prometheus, metric, selector, text):
    """Nothing scraped, nothing to be scaled by; a name is never more than a name."""
    with pytest.raises(MetricsError) as caught:
        asked(prometheus, metric, selector)
    assert str(caught.value).startswith("unable to fetch metrics from Prometheus: {__name__=")
    assert text in str(caught.value)


def test_an_average_covers_earlier_values(prometheus, scraped):
    """After a jump the newest value is the new one, and the average lies between the two."""

    async def run(clock):
        async with source(clock, prometheus) as (client, metrics):

            async def value(selector=OURS):
                found = await metrics.external_values("jumping", namespace="default", selector=selector)
                return found.milli

            async def jumped():
                return await value() == [30_000]

            scraped.series["jumping"] = 10
            await known_for(client, clock, "jumping", 3)
            scraped.series["jumping"] = 30
            await eventually(clock, "the jump is seen", jumped)
            (average,) = await value(f"{OURS},{AVERAGE_OVER}=1m")
            assert 10_000 < average < 30_000

    run_real(run)


def test_a_series_that_ends_is_no_series(prometheus, scraped):
    """One that the exporter shows no more is a failed metric with the next scrape, not a last value."""

    async def run(clock):
        async with source(clock, prometheus) as (_, metrics):

            async def value():
                return (await metrics.external_values("ending", namespace="", selector=OURS)).milli

            async def comes():
                try:
                    return await value() == [1000]
                except MetricsError:
                    return False

            async def goes():
                try:
                    return not await value()
                except MetricsError as error:
                    return "no series" in str(error)

            scraped.series["ending"] = 1
            await eventually(clock, "it is there", comes)
            del scraped.series["ending"]
            await eventually(clock, "it disappears", goes)

    run_real(run)


def test_an_older_server_refuses_names_that_it_does_not_know(prometheus):
    """Label names with dots and slashes came with Prometheus 3; before it says where it cannot read on."""
    if prometheus.version >= (3,):
        assert asked(prometheus, "lonely", f"{OURS},!app.kubernetes.io/name") == [7000]
        return
    with pytest.raises(MetricsError, match=r"bad_data: .*parse error"):
        asked(prometheus, "lonely", f"{OURS},!app.kubernetes.io/name")


def test_behind_tls_and_a_password(guarded, tmp_path):
    """With the authority and the password it answers; without either the error says which is missing."""
    authority, password = tmp_path / "ca.pem", tmp_path / "password"
    authority.write_text(guarded.authority)
    password.write_text(f"{PASSWORD}\n")
    shown = {"prometheus_user": USER, "prometheus_password_file": str(password)}
    trusted = {"prometheus_ca_file": str(authority)}
    assert asked(guarded, "lonely", **shown, **trusted) == [7000]
    with pytest.raises(MetricsError, match="401 Unauthorized"):
        asked(guarded, "lonely", **trusted)
    with pytest.raises(MetricsError, match="certificate verify failed"):
        asked(guarded, "lonely", **shown)
    password.write_text("another")
    with pytest.raises(MetricsError, match="401 Unauthorized"):
        asked(guarded, "lonely", **shown, **trusted)
