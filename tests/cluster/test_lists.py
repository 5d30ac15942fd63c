"""Lists over HTTP: in pages, in a stream, and through every way in which they end."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest
from aiohttp import web
from tests.cluster.answering import asking, config_map, status
from tests.cluster.recorded import END, Recorded, event, first_of, list_of, names
from tests.cluster.served import served

from kubetide.cluster import Connection, HttpCluster
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.cluster import Listing
from kubetide.ports.errors import BadRequest, Expired, Unavailable
from kubetide.runtime.timing.clock import Pace, machine_time, run_paced, run_real
from kubetide.testing import builders

# ── in pages ───────────────────────────────────────────────────────────────────────────────────────


def test_a_long_list_comes_in_pages():
    """All objects, in order, at one version, 500 a request, whatever is written meanwhile."""

    class Writing:
        """Writes whenever a page has been answered."""

        def __init__(self, cluster):
            self.cluster, self.pages = cluster, 0

        def answered(self, method, code, took):
            self.pages += 1
            body = builders.config_map(f"late{self.pages}")
            task = asyncio.ensure_future(self.cluster.create(CONFIG_MAPS, body, namespace="default"))
            task.add_done_callback(lambda done: done.result())

        def waited(self, method, waited): ...
        def repeated(self, method, code): ...

    async def main(clock):
        async with served(clock) as (cluster, _, connection):
            for index in range(1203):
                await cluster.create(CONFIG_MAPS, builders.config_map(f"c{index:04}"), namespace="default")
            version = (await cluster.list(CONFIG_MAPS)).resource_version
            writing = Writing(cluster)
            async with HttpCluster(connection, clock, observer=writing) as client:
                listing = await client.list(CONFIG_MAPS)
            assert names(listing.items) == [f"c{index:04}" for index in range(1203)]
            assert (listing.resource_version, writing.pages) == (version, 3)
            assert listing.items[0].kind == "ConfigMap"

    run_real(main)


def test_a_list_that_expires_in_the_middle_is_read_at_once():
    """The token that comes with 410 would mix versions, so the whole list is requested again, without pages."""

    async def main(clock):
        expired = status(410, "Expired", metadata={"continue": "fresh"})
        server = Recorded(
            lists=[list_of(config_map("a"), version="5", more="next"), expired, list_of(config_map("b"))]
        )
        async with asking(server, clock) as client:
            listing = await client.list(CONFIG_MAPS, labels="x=y")
        assert (names(listing.items), listing.resource_version) == (["b"], "7")
        assert server.queries == [
            {"limit": "500", "labelSelector": "x=y"},
            {"limit": "500", "labelSelector": "x=y", "continue": "next"},
            {"labelSelector": "x=y"},
        ]

    run_real(main)


def test_an_expired_answer_has_its_token():
    """The error of the port holds the token with which a list could go on."""

    async def main(clock):
        server = Recorded(lists=[status(410, "Expired", metadata={"continue": "fresh"})] * 2)
        async with asking(server, clock) as client:
            with pytest.raises(Expired) as error:
                await client.list(CONFIG_MAPS)
        assert error.value.continue_token == "fresh"

    run_real(main)


def test_a_compressed_list():
    """A list may come in gzip; a load balancer's cookies are not sent back."""

    async def main(clock):
        cookies = []

        def named(url):
            return Connection(url.replace("127.0.0.1", "localhost"))

        async def handler(request):
            cookies.append(request.headers.get("Cookie"))
            response = list_of(*(config_map(f"c{number}") for number in range(100)))
            assert "gzip" in request.headers["Accept-Encoding"]
            response.enable_compression(web.ContentCoding.gzip)
            response.set_cookie("place", "1")
            return response

        # A name, as cookies of bare addresses are never stored.
        async with asking(handler, clock, connection=named) as client:
            for _ in range(2):
                assert len((await client.list(CONFIG_MAPS)).items) == 100
        assert cookies == [None, None]

    run_real(main)


# ── in a stream ───────────────────────────────────────────────────────────────────────


def test_a_streaming_list():
    """A streamed list equals a list in pages, and the stream goes on with the changes after its version."""

    async def main(clock):
        async with served(clock) as (cluster, _, connection), HttpCluster(connection, clock) as client:
            for name in "bca":
                await cluster.create(CONFIG_MAPS, builders.config_map(name), namespace="default")
            async with aclosing(client.list_and_watch(CONFIG_MAPS)) as parts:
                listing = await anext(parts)
                assert listing == await client.list(CONFIG_MAPS)
                await cluster.delete(CONFIG_MAPS, "b", namespace="default")
                [deleted] = await anext(parts)
                assert (deleted.type, deleted.namespace, deleted.name) == ("DELETED", "default", "b")

    run_real(main)


def test_projections_take_the_place_of_objects():
    """Streamed lists, lists in pages and events of every type hold the result of ``keep`` in place of the object."""

    def upper(item):
        return item.metadata.name.upper()

    async def taken(stream):
        """Return the list, if one comes first, and what the two events behind it hold."""
        lists, held = [], []
        async with aclosing(stream) as parts:
            while len(held) < 2:
                part = await anext(parts)
                if isinstance(part, Listing):
                    lists.append(part)
                else:
                    held += [one.object for one in part]
        return lists, held

    async def main(clock):
        changes = [event("MODIFIED", "a", "10"), event("DELETED", "a", "11"), True]
        streamed = [event("ADDED", "a") + event("BOOKMARK", version="9", annotations=END), *changes]
        async with asking(Recorded(streams=[streamed, changes]), clock) as client:
            streaming = client.list_and_watch(CONFIG_MAPS, keep=upper)
            assert await taken(streaming) == ([Listing(("A",), "9")], ["A", "A"])
            watch = client.watch(CONFIG_MAPS, resource_version="9", keep=upper)
            assert await taken(watch) == ([], ["A", "A"])
        server = Recorded(
            lists=[list_of(config_map("a"))], streams=[changes], refuses=status(400, "BadRequest")
        )
        async with asking(server, clock) as client:
            in_pages = client.list_and_watch(CONFIG_MAPS, keep=upper)
            assert await taken(in_pages) == ([Listing(("A",), "7")], ["A", "A"])

    run_paced(main, start=machine_time(), pace=Pace(20))


def test_changes_right_behind_the_list():
    """Events that come in one piece with the end of the list are handed on, cut as they may be."""

    async def main(clock):
        lines = (
            event("ADDED", "a")
            + event("BOOKMARK", version="9", annotations=END)
            + event("MODIFIED", "a", "10")
        )
        server = Recorded(streams=[[lines[:-20], lines[-20:] + event("DELETED", "a", "11"), True]])
        async with asking(server, clock) as client:
            listing, *batches = await first_of(client.list_and_watch(CONFIG_MAPS), 2)
        assert (names(listing.items), listing.resource_version) == (["a"], "9")
        assert [(one.type, one.resource_version) for one in batches[0]] == [
            ("MODIFIED", "10"),
            ("DELETED", "11"),
        ]
        [query] = server.queries
        assert 300 <= int(query.pop("timeoutSeconds")) <= 600
        assert query == {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
        }

    run_real(main)


@pytest.mark.parametrize(
    ("refuses", "stream"),
    [
        (status(422, "Invalid"), None),
        (status(400, "BadRequest"), None),
        (None, [event("ADDED", "a"), True]),  # before 1.27: it does not know the question
        (None, [event("MODIFIED", "a"), True]),
        (None, [event("BOOKMARK", version="3"), True]),
    ],
)
def test_servers_without_streaming_lists(refuses, stream):
    """A server that cannot stream a list is asked for pages and a watch, and not for a stream of that kind again."""

    async def main(clock):
        streams = [] if stream is None else [stream]
        streams += [[event("ADDED", "b", "8"), True]] * 2
        server = Recorded(
            lists=[list_of(config_map("a")), list_of(config_map("a"))], streams=streams, refuses=refuses
        )
        async with asking(server, clock) as client:
            for _ in range(2):
                listing, opened, batch = await first_of(client.list_and_watch(CONFIG_MAPS), 3)
                assert (names(listing.items), listing.resource_version, opened) == (["a"], "7", ())
                assert [one.name for one in batch] == ["b"]
        assert ["sendInitialEvents" in query for query in server.queries] == [True] + [False] * 4
        assert server.queries[2]["resourceVersion"] == "7"

    run_paced(main, start=machine_time(), pace=Pace(20))


def test_a_wrong_question_is_not_a_server_without_streams():
    """A selector that the server refuses is an error, and the next list is streamed."""

    async def main(clock):
        async with served(clock) as (_, _, connection), HttpCluster(connection, clock) as client:
            with pytest.raises(BadRequest):
                await first_of(client.list_and_watch(CONFIG_MAPS, labels="!!"), 1)
            assert not client._reader._in_pages
            [listing] = await first_of(client.list_and_watch(CONFIG_MAPS), 1)
            assert isinstance(listing, Listing)

    run_real(main)


def test_a_streaming_list_that_breaks_off_is_no_list():
    """A stream that ends before its list is complete is an error, not a shorter list."""

    async def main(clock):
        server = Recorded(streams=[[event("ADDED", "a"), False]])
        async with asking(server, clock) as client:
            with pytest.raises(Unavailable, match="broke off after 1 objects"):
                await first_of(client.list_and_watch(CONFIG_MAPS), 1)

    run_real(main)
