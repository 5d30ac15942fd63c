"""The body of a watch: bytes that gather before they are read still arrive, and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import aclosing

import pytest
from aiohttp import web
from tests.cluster.answering import asking, config_map

from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.cluster import Listing
from kubetide.ports.errors import Unavailable
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import seconds

END = {"k8s.io/initial-events-end": "true"}
MANY = 3_000


def line(kind, name, version="1", **metadata):
    body = config_map(name, version)
    body["metadata"] |= metadata
    body["data"] = {"text": "x" * 200}
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


class Streams:
    """Streams what it is given, one piece after another, and then what comes into its queue; None ends a stream."""

    def __init__(self, *pieces):
        self.pieces, self.more = pieces, asyncio.Queue()
        self.plain = 0

    async def __call__(self, request):
        if "watch" not in request.query:
            self.plain += 1
            return web.json_response(
                {"kind": "ConfigMapList", "metadata": {"resourceVersion": "9"}, "items": []}
            )
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in self.pieces:
            await response.write(piece)
        while (piece := await self.more.get()) is not None:
            await response.write(piece)
        return response


def lowest(stream):
    """The bytes from which on the system wakes the reader of a stream."""
    one = stream._answer.connection.transport.get_extra_info("socket")
    return one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)


def long_list(last):
    return [line("ADDED", f"c{number:04d}") for number in range(MANY)] + ([last] if last else [])


def test_a_long_list_and_small_changes():
    """A list of more bytes than are waited for comes whole, and so does each small change behind it."""

    async def run(clock):
        answers = Streams(*long_list(line("BOOKMARK", "", "7", annotations=END)))
        async with (
            asking(answers, clock) as client,
            aclosing(client.list_and_watch(CONFIG_MAPS)) as parts,
        ):
            listing = await anext(parts)
            assert isinstance(listing, Listing)
            assert len(listing.items) == MANY
            for version in ("8", "9"):
                answers.more.put_nowait(line("MODIFIED", "c0001", version))
                assert [one.resource_version for one in await anext(parts)] == [version]
            answers.more.put_nowait(None)

    run_real(run)


def test_the_last_bytes_of_a_list_may_be_few():
    """Fewer bytes than are waited for come after a moment, and then the system waits for as many again."""

    async def run(clock):
        answers = Streams(b"a" * 10)
        async with (
            asking(answers, clock) as client,
            client._transport.stream("/api/v1/pods", {"watch": "true"}) as stream,
        ):
            assert await stream.read(seconds(30)) == b"a" * 10
            stream.gather(1 << 16)
            assert lowest(stream) == 1 << 16
            for piece in (b"b", b"c" * 100):
                answers.more.put_nowait(piece)
                assert await stream.read(seconds(30)) == piece
                assert lowest(stream) == 1 << 16
            stream.gather(1)
            assert lowest(stream) == 1
            answers.more.put_nowait(b"d")
            assert await stream.read(seconds(30)) == b"d"
            answers.more.put_nowait(None)
            stream.gather(1 << 16)
            assert await stream.read(seconds(30)) == b""

    run_real(run)


def test_a_connection_is_given_back_as_it_was():
    """When a long list ends before its end, whoever gets the connection next is woken by any answer."""

    async def run(clock):
        answers = Streams(*long_list(None))
        answers.more.put_nowait(None)
        async with asking(answers, clock) as client:
            async with aclosing(client.list_and_watch(CONFIG_MAPS)) as parts:
                with pytest.raises(Unavailable, match=f"broke off after {MANY} objects"):
                    await anext(parts)
            (connections,) = client._transport._session.connector._conns.values()
            (protocol, _), *_ = connections
            one = protocol.transport.get_extra_info("socket")
            assert one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1
            assert (await client.list(CONFIG_MAPS)).resource_version == "9"
        assert answers.plain == 1

    run_real(run)
