"""Objects of custom kinds that cannot be read: all others are cached, and each of these is named."""

from __future__ import annotations

import json

import pytest
from aiohttp import web
from tests.cluster.answering import asking
from tests.cluster.recorded import END, Recorded
from tests.cluster.served import served
from tests.vertical.custom_kinds import definition
from tests.watching.informing import informing

from kubetide.cluster import HttpCluster
from kubetide.embedded.apiserver.store import Store
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, STORED_KINDS, TKESTACK_CRON_HPAS
from kubetide.ports.errors import AlreadyExists, InternalError
from kubetide.runtime.timing.clock import Pace, machine_time, run_paced, run_real
from kubetide.units.time import milliseconds, seconds

TABLES = TKESTACK_CRON_HPAS.untyped
ODD = "spec.crons[0].targetReplicas: expected int, got str"


def table(name, size, version=""):
    meta = {"name": name, "namespace": "default"}
    return {
        "apiVersion": TKESTACK_CRON_HPAS.api_version,
        "kind": TKESTACK_CRON_HPAS.kind,
        "metadata": {**meta, **({"resourceVersion": version} if version else {})},
        "spec": {"crons": [{"schedule": "0 8 * * *", "targetReplicas": size}]},
    }


async def put(cluster, name, size):
    """Write a table, new or not."""
    try:
        await cluster.create(TABLES, table(name, size), namespace="default")
    except AlreadyExists:
        await cluster.patch(TABLES, name, {"spec": table(name, size)["spec"]}, namespace="default")


def sizes(informer):
    return {name: one.spec.crons[0].target_replicas for (_, name), one in informer.objects.items()}


def problems(informer):
    return {name: one.problem for (_, name), one in informer.unread.items()}


def informed(main, *, over_http):
    """Run main(cluster, client, clock); the definition of the kind lets everything through."""

    async def run(clock):
        store = Store((*STORED_KINDS, CUSTOM_RESOURCE_DEFINITIONS))
        async with (
            served(clock, store=store) as (cluster, _, connection),
            HttpCluster(connection, clock) as client,
        ):
            await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition(TABLES))
            await main(cluster, client if over_http else cluster, clock)

    run_paced(run, start=machine_time(), pace=Pace(10))


@pytest.mark.parametrize("over_http", [False, True], ids=["in process", "HTTPS"])
def test_an_object_that_cannot_be_read_hides_no_other(over_http):
    """The others come and change; it is named with field and problem, holds its last good state, and is read once mended."""

    async def main(cluster, client, clock):
        await put(cluster, "good", 1)
        await put(cluster, "odd", "3")
        async with informing(client, clock, TKESTACK_CRON_HPAS) as informer:
            await informer.synced()
            assert (sizes(informer), problems(informer)) == ({"good": 1}, {"odd": ODD})
            listing = await client.list(TKESTACK_CRON_HPAS)
            assert [one.metadata.name for one in listing.items] == ["good"]
            assert [(one.metadata.name, one.problem) for one in listing.unread] == [("odd", ODD)]

            async def until(found, unread):
                for _ in range(500):
                    if (sizes(informer), set(problems(informer))) == (found, unread):
                        return
                    await clock.sleep(milliseconds(20))
                raise AssertionError((sizes(informer), problems(informer)))

            await put(cluster, "good", "2")
            await put(cluster, "odd", 3)
            await put(cluster, "new", 4)
            await until({"good": 1, "odd": 3, "new": 4}, {"good"})
            cluster.expire_watches()
            await clock.sleep(seconds(4))
            await until({"good": 1, "odd": 3, "new": 4}, {"good"})
            await cluster.delete(TKESTACK_CRON_HPAS, "good", namespace="default")
            await until({"odd": 3, "new": 4}, set())
            assert informer.failures == 0

    informed(main, over_http=over_http)


def test_lists_in_pages_and_streams_pass_it_over():
    """A server without streaming lists, one with them, and a watch: each names it."""
    odd, good = table("odd", "3", "5"), table("good", 1, "6")
    mark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7", "annotations": END}}}
    lines = [{"type": "ADDED", "object": odd}, {"type": "ADDED", "object": good}, mark]
    page = {"metadata": {"resourceVersion": "7"}, "items": [odd, good]}

    async def main(clock):
        streamed = Recorded(streams=[[*(json.dumps(one).encode() + b"\n" for one in lines), True]])
        refusing = Recorded(lists=[web.json_response(page)], refuses=web.Response(status=400))
        for server in (streamed, refusing):
            async with asking(server, clock) as client, informing(client, clock, TKESTACK_CRON_HPAS) as one:
                await one.synced()
                assert (sizes(one), problems(one)) == ({"good": 1}, {"odd": ODD})

    run_real(main)


def test_an_object_without_a_name_is_no_object():
    """What cannot even be named fails the whole answer, as before."""
    page = {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {}, "spec": 1}]}

    async def main(clock):
        async with asking(Recorded(lists=[web.json_response(page)]), clock) as client:
            with pytest.raises(InternalError, match="an object has no name"):
                await client.list(TKESTACK_CRON_HPAS)

    run_real(main)
