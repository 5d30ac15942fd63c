"""Watches over HTTP: how their events are read, and how they end."""

from __future__ import annotations

import gc
import json
import socket
import threading
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.answering import asking
from tests.cluster.recorded import END, Recorded, drained, event

from kubetide.cluster import Connection, HttpCluster
from kubetide.cluster.bounds import Lines
from kubetide.cluster.decoding import decode_event
from kubetide.cluster.limits import Limits
from kubetide.objects.kinds import CONFIG_MAPS, PODS
from kubetide.ports.errors import Expired, InternalError
from kubetide.runtime.timing.clock import run_real
from kubetide.serving.certificates import Authority
from kubetide.testing import builders
from kubetide.units.time import seconds


def test_a_silent_watch_is_ended():
    """A watch over which nothing comes for the stall time, not even a bookmark, ends; each event starts the time anew."""

    async def main(clock):
        server = Recorded(streams=[[event("ADDED", "a", "8"), event("BOOKMARK", version="9"), True]])
        async with asking(server, clock, limits=Limits(stall=seconds(2))) as client:
            begun = clock.monotonic()
            received = await drained(client.watch(CONFIG_MAPS, resource_version="7"))
            assert seconds(1) < clock.monotonic() - begun < seconds(30)
        assert [(one.type, one.resource_version) for one in received] == [("ADDED", "8"), ("BOOKMARK", "9")]

    run_real(main)


def test_watches_end_at_different_times():
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
    """The bookmark at the end of a streamed list of pods has null where a pod has its containers."""
    said = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "5", "annotations": END}}}
    said["object"]["spec"] = {"containers": None}
    found, ends = decode_event(json.dumps(said).encode(), PODS)
    assert (found.resource_version, found.object, ends) == ("5", None, True)


def test_a_watch_that_is_closed_leaves_no_connection():
    """Its connection ends at once, even if the server does not answer the close of TLS."""
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
