"""The series of clients, from requests to a served cluster."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from tests.cluster.served import served
from tests.runtime.series.reading import read

from kubetide.cluster import HttpCluster
from kubetide.cluster.access.connection import Connection
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.errors import ApiError, NotFound
from kubetide.runtime.series import ClientSeries
from kubetide.runtime.timing.clock import run_real
from kubetide.units.exposition import Registry
from kubetide.units.time import milliseconds


def test_requests_are_counted_by_code_and_method():
    """Each answer counts once, with its duration; the host is the server's with its port."""

    async def main(clock):
        registry = Registry()
        series = ClientSeries(registry)
        async with (
            served(clock) as (_, server, connection),
            HttpCluster(connection, clock, observer=series.of(connection.url)) as cluster,
        ):
            await cluster.create(CONFIG_MAPS, {"metadata": {"name": "one"}}, namespace="default")
            for _ in range(3):
                await cluster.get(CONFIG_MAPS, "one", namespace="default")
            with pytest.raises(NotFound):
                await cluster.get(CONFIG_MAPS, "two", namespace="default")
        found = read(registry, "rest_client_")
        host = urlsplit(server.url).netloc
        assert {key: value for key, value in found.items() if key[0] == "requests_total"} == {
            ("requests_total", "201", host, "POST"): 1,
            ("requests_total", "200", host, "GET"): 3,
            ("requests_total", "404", host, "GET"): 1,
        }
        assert found["request_duration_seconds_count", host, "GET"] == 4
        assert found["request_duration_seconds_sum", host, "GET"] > 0

    run_real(main)


def test_a_server_that_is_not_there_has_a_code_too():
    """A request without an answer counts as <error>, and its repeats as retries."""

    async def main(clock):
        registry = Registry()
        connection = Connection(url="http://127.0.0.1:1")
        observer = ClientSeries(registry).of(connection.url)
        async with HttpCluster(connection, clock, observer=observer) as cluster:
            with pytest.raises(ApiError):
                await cluster.get(CONFIG_MAPS, "one", namespace="default")
        found = read(registry, "rest_client_")
        sent = found["requests_total", "<error>", "127.0.0.1:1", "GET"]
        assert sent >= 1
        assert found.get(("request_retries_total", "<error>", "127.0.0.1:1", "GET"), 0) == sent - 1

    run_real(main)


def test_two_clients_share_the_names():
    """Waits and requests of two servers are side by side."""
    registry = Registry()
    series = ClientSeries(registry)
    series.of("https://a:6443/prefix").waited("GET", milliseconds(1500))
    series.of("https://b").waited("PATCH", milliseconds(250))
    series.of("https://b").repeated("GET", "429")
    assert read(registry, "rest_client_") == {
        ("rate_limiter_duration_seconds_sum", "a:6443", "GET"): 1.5,
        ("rate_limiter_duration_seconds_count", "a:6443", "GET"): 1,
        ("rate_limiter_duration_seconds_sum", "b", "PATCH"): 0.25,
        ("rate_limiter_duration_seconds_count", "b", "PATCH"): 1,
        ("request_retries_total", "429", "b", "GET"): 1,
    }
