"""What a watch sends, line by line."""

from __future__ import annotations

import asyncio
import json

import aiohttp
from tests.cluster.served import TOKEN, served

from kubetide.embedded.apiserver.store import Store
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector
from kubetide.testing import builders

PATH = "/api/v1/namespaces/default/configmaps"


def lines_of(query, count, *, then=None, store=None, accept="application/json"):
    """Open a watch with two ConfigMaps there, do ``then(cluster)``, and return the first lines."""

    async def main(clock):
        async with served(clock, store=store) as (cluster, server, connection):
            for name in ("a", "b"):
                await cluster.create(CONFIG_MAPS, builders.config_map(name), namespace="default")
            headers = {"Authorization": f"Bearer {TOKEN}", "Accept": accept}
            connector = make_connector(ssl=connection.tls())
            async with (
                aiohttp.ClientSession(connector=connector, headers=headers) as session,
                session.get(f"{server.url}{PATH}?watch=1{query}") as answer,
            ):
                if then is not None:
                    await then(cluster)
                return [json.loads(await answer.content.readline()) for _ in range(count)]

    return run_real(main)


async def create_c(cluster):
    await cluster.create(CONFIG_MAPS, builders.config_map("c"), namespace="default")


def test_initial_events_end_with_a_bookmark():
    """With sendInitialEvents what is there comes first, then a bookmark that says so, then the changes."""
    query = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    events = lines_of(query, 4, then=create_c)
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK", "ADDED"]
    mark = events[2]["object"]
    assert mark["kind"] == "ConfigMap"
    assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert events[3]["object"]["metadata"]["name"] == "c"


def test_a_version_that_is_too_old_is_an_error_event():
    """A watch from a version out of reach is one ERROR event with a Status of 410."""
    (event,) = lines_of("&resourceVersion=99999", 1)
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


def test_a_reader_that_falls_behind_is_reported():
    """A watch whose backlog overflows ends with an ERROR event, so that no memory is held for it."""

    async def flood(cluster):
        for number in range(30):
            cluster.rest._writer.create(CONFIG_MAPS, builders.config_map(f"n{number}"), "default")
        await asyncio.sleep(0)

    events = lines_of("&resourceVersion=0", 3, then=flood, store=Store(backlog=10))
    assert events[-1]["type"] == "ERROR"
    assert events[-1]["object"]["code"] == 410


def test_a_watch_of_one_object():
    """A watch by name sees that object only."""
    events = lines_of("&fieldSelector=metadata.name%3Dc", 1, then=create_c)
    assert [event["object"]["metadata"]["name"] for event in events] == ["c"]


def test_a_table_watch_sends_its_columns_once():
    """Only the first Table of a watch has column definitions."""
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    events = lines_of("", 3, then=create_c, accept=accept)
    assert [bool(event["object"]["columnDefinitions"]) for event in events] == [True, False, False]
