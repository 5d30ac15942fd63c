"""Answers that do not end: as much is read as the bounds allow, and the error names the request and the fix."""

from __future__ import annotations

import asyncio
import gzip
import json
from contextlib import aclosing

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from tests.cluster.answering import answering, asking, config_map

from kubetide.cluster import Connection, HttpMetrics
from kubetide.cluster.bounds import LONGEST_LINE, Lines, TooMuch, read_bounded
from kubetide.cluster.limits import Limits
from kubetide.cluster.metric_ports.prometheus import PrometheusClient
from kubetide.objects.kinds import CONFIG_MAPS, PODS
from kubetide.ports.errors import InternalError, MetricsError, NotFound
from kubetide.runtime.timing.clock import run_real

MIB = 1 << 20
PIECE = b"x" * (64 << 10)
LIMITS = Limits(answer_bytes=2 * MIB, objects=1000)
UNDER_WAY = 16 * MIB
"""What sockets and buffers of both sides may hold of an answer that nobody reads any more."""


class Endless:
    """A server that answers everything with bytes until its client hangs up; counts them."""

    def __init__(self, begin=b"", *, code=200, watch=b"", piece=PIECE):
        self.begin, self.code, self.watch, self.piece = begin, code, watch, piece
        self.sent, self.requests = 0, 0
        self.left = asyncio.Event()

    async def __call__(self, request):
        self.requests += 1
        response = web.StreamResponse(status=self.code, headers={"Content-Type": "application/json"})
        try:
            await response.prepare(request)
            await response.write(self.begin)
            while True:
                await response.write(self.piece)
                self.sent += len(self.piece)
        except ConnectionError:
            self.left.set()
        return response


def event(name):
    return json.dumps({"type": "ADDED", "object": config_map(name)}).encode() + b"\n"


async def ends(server, most):
    """The client has hung up, and was sent no more than that."""
    async with asyncio.timeout(300):
        await server.left.wait()
    assert server.requests == 1, "an answer that is too large is not requested again"
    assert server.sent <= most + UNDER_WAY


async def read(client):
    await client.get(CONFIG_MAPS, "a", namespace="default")


async def read_all(client):
    await client.list(CONFIG_MAPS)


async def write(client):
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, namespace="default")


@pytest.mark.parametrize("ask", [read, read_all, write])
def test_an_answer_without_end(ask):
    """Two MiB are read of an endless object, page of a list or answer to a write, and the error names the request."""

    async def main(clock):
        server = Endless(b'{"items":[')
        async with asking(server, clock, limits=LIMITS) as client:
            said = r"(GET|POST) http://.*/configmaps.*: the answer is larger than 2Mi \(max-answer-size\)"
            with pytest.raises(InternalError, match=said):
                await ask(client)
            await ends(server, 2 * MIB)

    run_real(main)


def test_a_length_on_the_wire_is_no_length_in_memory():
    """Compressed answers are counted by their unpacked length."""

    async def main(clock):
        packed = gzip.compress(b" " * (64 * MIB))
        assert len(packed) < MIB

        async def handler(_request):
            return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

        async with asking(handler, clock, limits=LIMITS) as client:
            with pytest.raises(InternalError, match="larger than 2Mi"):
                await read(client)

    run_real(main)


def test_what_fits_is_read():
    """To the byte."""

    async def main(clock):
        body = json.dumps(config_map()).encode().ljust(2 * MIB)
        sizes = [2 * MIB, 2 * MIB + 1]

        async def handler(_request):
            return web.Response(body=body.ljust(sizes.pop(0)), content_type="application/json")

        async with asking(handler, clock, limits=LIMITS) as client:
            await read(client)
            with pytest.raises(InternalError, match="larger than 2Mi"):
                await read(client)

    run_real(main)


def test_a_refusal_without_end():
    """Its code counts; of its text the beginning is read."""

    async def main(clock):
        server = Endless(code=404)
        async with asking(server, clock, limits=LIMITS) as client:
            with pytest.raises(NotFound):
                await read(client)
            await ends(server, MIB)

    run_real(main)


def test_the_metrics_of_pods_without_end():
    """The loop receives a MetricsError that names the request and the setting."""

    async def main(clock):
        server = Endless(b'{"items":[')
        async with asking(server, clock, limits=LIMITS) as client:
            with pytest.raises(MetricsError, match=r"/apis/metrics.k8s.io/v1beta1/pods: .*max-answer-size"):
                await HttpMetrics(client, clock).pod_samples()
            await ends(server, 2 * MIB)

    run_real(main)


def test_pages_without_end():
    """A server that always has one page more is left after a maximum of objects."""

    async def main(clock):
        pages = []

        async def handler(request):
            if "sendInitialEvents" in request.query:
                return web.Response(status=400)
            pages.append(request.query.get("continue"))
            items = [config_map(f"c-{len(pages)}-{number}") for number in range(300)]
            body = {"metadata": {"resourceVersion": "1", "continue": str(len(pages))}, "items": items}
            return web.json_response(body)

        async with asking(handler, clock, limits=LIMITS) as client:
            with pytest.raises(
                InternalError, match=r"configmaps has more than 1000 objects \(max-list-objects\)"
            ):
                async with aclosing(client.list_and_watch(CONFIG_MAPS)) as parts:
                    await anext(parts)
        assert pages == [None, "1", "2", "3"]

    run_real(main)


def test_a_server_that_ignores_the_limit():
    """One answer with more objects than a list may have is no list."""

    async def main(clock):
        async def handler(_request):
            items = [config_map(f"c-{number}") for number in range(1001)]
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})

        async with asking(handler, clock, limits=LIMITS) as client:
            with pytest.raises(InternalError, match="more than 1000 objects"):
                await client.list(CONFIG_MAPS)

    run_real(main)


def test_a_streamed_list_without_end():
    """An endless stream of objects is left after a maximum of objects."""

    async def main(clock):
        server = Endless(piece=b"".join(event(f"c-{number}") for number in range(100)))
        async with asking(server, clock, limits=LIMITS) as client:
            with pytest.raises(InternalError, match="more than 1000 objects"):
                async with aclosing(client.list_and_watch(CONFIG_MAPS)) as parts:
                    await anext(parts)
            await ends(server, 11 * len(server.piece))

    run_real(main)


def test_an_event_without_end():
    """A line of a watch that does not break is left after 16 MiB."""

    async def main(clock):
        server = Endless(event("a") + b'{"type":"ADDED","object":')
        async with asking(server, clock, limits=LIMITS) as client:
            with pytest.raises(InternalError, match="event of the watch of pods is longer than 16Mi"):
                async with aclosing(client.watch(PODS, resource_version="1")) as batches:
                    async for _ in batches:
                        pass
            await ends(server, LONGEST_LINE)

    run_real(main)


def test_prometheus_without_end():
    """16 MiB of an answer are read; the error names the query's fix."""

    async def main(clock):
        server = Endless(b'{"status":"success","data":')
        async with answering(server) as url, PrometheusClient(Connection(url), clock) as client:
            with pytest.raises(MetricsError, match=r"/api/v1/query is larger than 16Mi .* fewer series"):
                await client.instant("up", clock.now())
            await ends(server, 16 * MIB)

    run_real(main)


@given(st.lists(st.binary(max_size=50)), st.integers(0, 200))
def test_bytes_are_all_there_or_too_many(pieces, most):
    """Whatever the pieces: the whole where it fits, else no more than the bound."""

    class Content:
        async def iter_any(self):
            for piece in pieces:
                yield piece

    whole = b"".join(pieces)
    if len(whole) <= most:
        assert asyncio.run(read_bounded(Content(), most)) == whole
    else:
        with pytest.raises(TooMuch) as error:
            asyncio.run(read_bounded(Content(), most))
        assert whole.startswith(error.value.begun)
        assert len(error.value.begun) <= most


@given(st.lists(st.integers(1, 30), min_size=1, max_size=20))
def test_a_line_is_refused_exactly_when_it_is_too_long(sizes):
    """Counted over all pieces that it comes in, and anew for each line."""
    cut = Lines("pods", longest=20)
    for size in sizes:
        if size > 20:
            with pytest.raises(InternalError):
                cut.take(b"x" * size)
            return
        assert cut.take(b"x" * (size // 2)) == ()
        assert cut.take(b"x" * (size - size // 2) + b"\n") == [b"x" * size]
