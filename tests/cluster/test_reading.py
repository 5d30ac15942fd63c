"""Lists and watches over HTTP: in a stream, in pages, through every way in which they end."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading
from contextlib import aclosing, asynccontextmanager
from itertools import pairwise

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.answering import asking, config_map, status
from tests.cluster.served import served

from kubetide.cluster import Connection, HttpCluster
from kubetide.cluster.bounds import Lines
from kubetide.cluster.decoding import decode_event
from kubetide.cluster.limits import Limits
from kubetide.objects.kinds import CONFIG_MAPS, PODS
from kubetide.ports.cluster import Listing
from kubetide.ports.errors import BadRequest, Expired, InternalError, Unavailable
from kubetide.runtime.timing.clock import Pace, machine_time, run_paced, run_real
from kubetide.serving.certificates import Authority
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds
from kubetide.watching import Informer

END = {"k8s.io/initial-events-end": "true"}


def event(kind, name="", version="1", **metadata):
    """One line of a watch."""
    body = config_map(name, version)
    body["metadata"] |= metadata
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


def names(items):
    return [item.metadata.name for item in items]


def list_of(*items, version="7", more=""):
    metadata = {"resourceVersion": version} | ({"continue": more} if more else {})
    return web.json_response({"kind": "ConfigMapList", "metadata": metadata, "items": list(items)})


class Recorded:
    """Answers lists and watches as a test specifies; notes every query.

    ``streams`` holds, for each watch in turn, the pieces that are sent and, last, whether it then goes on
    in silence; ``lists`` the answers to lists in turn.
    """

    def __init__(self, *, lists=(), streams=(), refuses=None):
        self.lists, self.streams, self.refuses = list(lists), list(streams), refuses
        self.queries = []

    async def __call__(self, request):
        self.queries.append(dict(request.query))
        if "watch" not in request.query:
            return self.lists.pop(0)
        if "sendInitialEvents" in request.query and self.refuses is not None:
            return self.refuses
        *pieces, silent = self.streams.pop(0) if self.streams else [True]
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if silent:
            await asyncio.Event().wait()
        return response


async def first_of(stream, count):
    """Return the first parts of a stream and closes it."""
    async with aclosing(stream) as parts:
        return [await anext(parts) for _ in range(count)]


# ── lists ───────────────────────────────────────────────────────────────────────────────────────


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


# ── list and watch in one ───────────────────────────────────────────────────────────────────────


def test_a_streaming_list():
    """The list is what a list gives, at a version from which the stream goes on with the changes."""

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
        server = Recorded(lists=[list_of(config_map("a"))] * 2, streams=streams, refuses=refuses)
        server.lists[1] = list_of(config_map("a"))
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
    """Half of the objects are not taken for all of them."""

    async def main(clock):
        server = Recorded(streams=[[event("ADDED", "a"), False]])
        async with asking(server, clock) as client:
            with pytest.raises(Unavailable, match="broke off after 1 objects"):
                await first_of(client.list_and_watch(CONFIG_MAPS), 1)

    run_real(main)


# ── watches ─────────────────────────────────────────────────────────────────────────────────────


async def drained(stream):
    async with aclosing(stream) as batches:
        return [one async for batch in batches for one in batch]


def test_a_silent_watch_is_given_up():
    """Without a word, not even a bookmark, a watch ends; each word gives it more time."""

    async def main(clock):
        server = Recorded(streams=[[event("ADDED", "a", "8"), event("BOOKMARK", version="9"), True]])
        async with asking(server, clock, limits=Limits(stall=seconds(2))) as client:
            begun = clock.monotonic()
            received = await drained(client.watch(CONFIG_MAPS, resource_version="7"))
            assert seconds(1) < clock.monotonic() - begun < seconds(30)
        assert [(one.type, one.resource_version) for one in received] == [("ADDED", "8"), ("BOOKMARK", "9")]

    run_real(main)


def test_watches_end_apart():
    """Each watch requests a length of its own, drawn from the seed."""

    async def lengths(clock, seed):
        server = Recorded(streams=[[False]] * 20)
        async with asking(server, clock, seed=seed) as client:
            for _ in range(20):
                await drained(client.watch(CONFIG_MAPS, resource_version="7"))
        return [int(query["timeoutSeconds"]) for query in server.queries]

    async def main(clock):
        first = await lengths(clock, 1)
        assert first == await lengths(clock, 1) != await lengths(clock, 2)
        assert len(set(first)) > 10
        assert all(300 <= length <= 600 for length in first)

    run_real(main)


def test_errors_in_a_watch():
    """An ERROR event raises what its Status says, after the events before it; garbage is an error too."""

    async def main(clock):
        expired = json.dumps(
            {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
        )
        for line, error in (
            (expired, Expired),
            ('{"type": "ODD", "object": {}}', InternalError),
            ("{", InternalError),
        ):
            server = Recorded(streams=[[event("ADDED", "a"), line.encode() + b"\n", True]])
            async with asking(server, clock) as client:
                with pytest.raises(error):
                    await drained(client.watch(CONFIG_MAPS, resource_version="7"))

    run_real(main)


@given(st.lists(st.binary(max_size=20).map(lambda text: text.replace(b"\n", b"")), max_size=20), st.data())
def test_lines_come_out_as_they_went_in(lines, data):
    """However a stream is cut into pieces, its lines are the same; empty ones are left out."""
    text = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    found, cut = [], Lines("pods")
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        found += cut.take(text[start:end])
    assert found == [line for line in lines if line]


@pytest.mark.parametrize("kind", [PODS, PODS.untyped], ids=["typed", "plain"])
@pytest.mark.parametrize("said", ["ADDED", "MODIFIED", "DELETED"])
def test_an_event_may_be_written_in_any_way(kind, said):
    """As Go writes it, with spaces, or with the object first: it is the same event."""
    body = {"apiVersion": "v1", "kind": "Pod", **builders.pod("one")}
    body["metadata"]["resourceVersion"] = "7"
    whole = {"type": said, "object": body}
    lines = [
        json.dumps(whole, separators=(",", ":")),
        json.dumps(whole),
        json.dumps(dict(reversed(whole.items()))),
    ]
    first, *others = (decode_event(line.encode(), kind) for line in lines)
    assert (first[0].type, first[0].name, first[0].resource_version, first[1]) == (said, "one", "7", False)
    assert others == [first, first]


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"ADDED","object":{"metadata":{"name":7}}}',
        b'{"type":"ADDED","object":{"metadata":{}}}',
        b'{"type":"ADDED","object":"one"}',
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":{"metadata":{"name":"one"}}',
        b'{"type":"ADDED","type":"MOVED","object":{"metadata":{"name":"one"}}}',
        b'{"type":"MOVED","object":{"metadata":{"name":"one"}}}',
    ],
)
def test_events_that_cannot_be_read(line):
    """An event that is none, or without a name or a known type, is reported as such."""
    with pytest.raises(InternalError, match="cannot be read"):
        decode_event(line, PODS)


def test_a_bookmark_may_hold_what_no_object_would():
    """The bookmark behind a streaming list of pods has null where a pod has its containers."""
    said = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5", "annotations": END}}}
    said["object"]["spec"] = {"containers": None}
    found, ends = decode_event(json.dumps(said).encode(), PODS)
    assert (found.resource_version, found.object, ends) == ("5", None, True)


# ── a cache over it ─────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def informing(client, clock):
    informer = Informer(client, CONFIG_MAPS, clock)
    task = asyncio.ensure_future(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(clock, holds):
    deadline = clock.monotonic() + minutes(20)
    while not holds():
        assert clock.monotonic() < deadline
        await clock.sleep(seconds(1))


def test_an_informer_over_http():
    """It lists in a stream, takes a dropped watch up, lists again after an expiry, and ends equal to the cluster."""

    async def main(clock):
        async with served(clock) as (cluster, _, connection), HttpCluster(connection, clock) as client:
            await cluster.create(CONFIG_MAPS, builders.config_map("a"), namespace="default")
            async with informing(client, clock) as informer:
                await informer.synced()
                await cluster.create(CONFIG_MAPS, builders.config_map("b"), namespace="default")
                await until(clock, lambda: len(informer.objects) == 2)
                cluster.drop_watches()
                await cluster.create(CONFIG_MAPS, builders.config_map("c"), namespace="default")
                await until(clock, lambda: len(informer.objects) == 3)
                assert informer.last_relist is None
                cluster.expire_watches()
                await cluster.delete(CONFIG_MAPS, "a", namespace="default")
                await until(clock, lambda: len(informer.objects) == 2)
                assert (informer.last_relist.before, informer.last_relist.lost) == (3, 1)
                held = {
                    (item.metadata.namespace, item.metadata.name): item
                    for item in (await client.list(CONFIG_MAPS)).items
                }
                assert dict(informer.objects) == held

    run_paced(main, start=machine_time(), pace=Pace(10))


def test_many_clients_do_not_come_back_at_once():
    """After 410 each client lists again after a pause of its own; a failing server is asked after growing ones."""

    async def pauses(clock, seed, answer):
        at = []

        async def handler(request):
            at.append(clock.monotonic())
            return answer

        async with asking(handler, clock, seed=seed) as client, informing(client, clock):
            await until(clock, lambda: len(at) >= 4)
        return [then - first for first, then in pairwise(at)][:3]

    async def main(clock):
        expired = status(410, "Expired")
        first, second = await pauses(clock, 1, expired), await pauses(clock, 2, expired)
        assert all(seconds(1) <= pause < seconds(3) for pause in first + second)
        assert len({round(pause / seconds(0.05)) for pause in first + second}) > 2
        failing = await pauses(clock, 1, status(500, "InternalError"))
        for pause, least in zip(failing, (1, 2, 4), strict=True):
            assert seconds(least) <= pause < seconds(2 * least + 1)

    run_paced(main, start=machine_time(), pace=Pace(10))


def test_a_watch_that_is_given_up_leaves_no_connection():
    """Its connection ends at once, also when the server does not answer the farewell of TLS."""
    authority = Authority()
    done = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        taken, _ = listener.accept()
        with authority.server_context(["127.0.0.1"]).wrap_socket(taken, server_side=True) as spoken:
            while b"\r\n\r\n" not in spoken.recv(1 << 16):
                pass
            event = b'{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"2"}}}\n'
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            spoken.sendall(head + b"%x\r\n%s\r\n" % (len(event), event))
            done.wait(30)

    async def run(clock):
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        connection = Connection(url, "t", authority.certificate.decode())
        async with (
            HttpCluster(connection, clock) as client,
            aclosing(client.watch(PODS, resource_version="1")) as batches,
        ):
            await anext(batches)

    with listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            run_real(run)
            gc.collect()  # what was left open is warned of, and warnings are errors
        finally:
            done.set()
            thread.join(30)
