"""Clients that misbehave: that stop reading, hang up, or never finish what they began."""

from __future__ import annotations

import asyncio
import json
import tracemalloc

import aiohttp
from tests.cluster.served import TOKEN, served

from kubetide.cluster import HttpCluster
from kubetide.embedded.apiserver.store import Store
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector
from kubetide.testing import builders
from kubetide.units.time import milliseconds

CONFIG = "/api/v1/namespaces/default/configmaps"


async def raw(connection, text):
    """Open a connection and send text on it."""
    host, port = connection.url.removeprefix("https://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=connection.tls())
    head = f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    writer.write(text.replace("HEAD", head).encode())
    await writer.drain()
    return reader, writer


async def until(clock, done, what):
    """Wait for a condition, 10 seconds at most."""
    for _ in range(1000):
        if done():
            return
        await clock.sleep(milliseconds(10))
    raise AssertionError(f"not within 10 s: {what}")


def test_a_watcher_that_does_not_read_is_ended_alone():
    """Its backlog is bounded, it gets a 410 when it reads again, and other clients notice nothing."""
    events, backlog, size = 400, 50, 20_000

    async def main(clock):
        async with (
            served(clock, store=Store(backlog=backlog)) as (cluster, _, connection),
            HttpCluster(connection, clock) as client,
        ):
            reader, writer = await raw(
                connection,
                f"GET {CONFIG}?watch=1&resourceVersion=0 HTTP/1.1\r\nHEADConnection: close\r\n\r\n",
            )
            seen = []

            async def watch():
                async for batch in client.watch(CONFIG_MAPS, resource_version="1"):
                    seen.extend(event.name for event in batch)

            other = asyncio.ensure_future(watch())
            assert b"200 OK" in await reader.readline()
            writer.transport.pause_reading()
            table = cluster.rest.store._tables["configmaps"]
            await until(clock, lambda: len(table.watchers) == 2, "both watch")
            for number in range(events):
                body = builders.config_map(f"c{number}", data={"k": "v" * size})
                await cluster.create(CONFIG_MAPS, body, namespace="default")
                await clock.sleep(milliseconds(1))
            await until(clock, lambda: len(table.watchers) == 1, "the one that stopped is ended")
            await until(clock, lambda: len(seen) == events, "the other has seen everything")
            other.cancel()
            writer.transport.resume_reading()
            text = await asyncio.wait_for(reader.read(), 20)
            writer.close()
            return text, len(text)

    text, length = run_real(main)
    last = text.rstrip().rsplit(b"\n", 3)
    assert b'"code":410' in text[-2_000:], last[-1][:200]
    # What was on its way: the socket's buffers of both sides and one write, far from all there was.
    assert length < events * size


def test_clients_that_hang_up_in_the_middle(caplog):
    """A client may hang up inside a list, a body or a header line: the server goes on and logs nothing."""

    async def main(clock):
        async with served(clock) as (cluster, _, connection), HttpCluster(connection, clock) as client:
            for number in range(1500):
                body = builders.config_map(f"c{number}", data={"k": "v" * 3000})
                await cluster.create(CONFIG_MAPS, body, namespace="default")
            for text in (
                f"GET {CONFIG} HTTP/1.1\r\nHEAD\r\n",
                f"POST {CONFIG} HTTP/1.1\r\nHEADContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{{",
                f"POST {CONFIG} HTTP/1.1\r\nHEADTransfer-Encoding: chunked\r\n\r\n5\r\n{{",
                f"GET {CONFIG} HT",
                "",
            ):
                for abrupt in (False, True):
                    reader, writer = await raw(connection, text)
                    if text.startswith("GET") and text.endswith("\r\n\r\n"):
                        await reader.readexactly(1000)
                    if abrupt:
                        writer.transport.abort()
                    else:
                        writer.close()
            # One that stays, half-open, until the server stops.
            half, _ = await raw(connection, "GET /api HTTP/1.1\r\nHost:")
            assert (await client.get(CONFIG_MAPS, "c7", namespace="default")).metadata.name == "c7"
            assert len((await client.list(CONFIG_MAPS)).items) == 1500
        return await asyncio.wait_for(half.read(), 10)

    assert run_real(main) == b""
    assert [record.message for record in caplog.records if record.levelname in {"ERROR", "WARNING"}] == []


def test_noise_is_answered_or_dropped():
    """Bytes that are no HTTP are answered with 400 or a closed connection, and others go on."""

    async def main(clock):
        async with served(clock) as (_, _, connection), HttpCluster(connection, clock) as client:
            answers = []
            for text in (
                "\x00\x01\x02\r\n\r\n",
                "GET\r\n\r\n",
                "GET / HTTP/9.9\r\n\r\n",
                "X" * 20_000 + "\r\n\r\n",
            ):
                reader, writer = await raw(connection, text)
                answers.append(await asyncio.wait_for(reader.read(12), 10))
                writer.close()
            assert (await client.list(CONFIG_MAPS)).items == ()
            return answers

    assert all(answer in {b"", b"HTTP/1.0 400", b"HTTP/1.1 400"} for answer in run_real(main))


def test_what_an_idle_watch_costs():
    """A hundred idle watches hold less than 150 kB each, client and both ends of TLS included."""
    count = 100

    async def main(clock):
        async with served(clock) as (cluster, _, connection):
            table = cluster.rest.store._tables["configmaps"]
            headers = {"Authorization": f"Bearer {TOKEN}"}
            connector = make_connector(ssl=connection.tls(), limit=0)
            async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
                url = f"{connection.url}{CONFIG}?watch=1&resourceVersion=1"
                first = await session.get(url)
                tracemalloc.start()
                before, _ = tracemalloc.get_traced_memory()
                answers = await asyncio.gather(*(session.get(url) for _ in range(count)))
                after, _ = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                assert len(table.watchers) == count + 1
                await cluster.create(CONFIG_MAPS, builders.config_map("a"), namespace="default")
                lines = [await answer.content.readline() for answer in (first, *answers)]
                for answer in (first, *answers):
                    answer.close()
            return (after - before) / count, {
                json.loads(line)["object"]["metadata"]["name"] for line in lines
            }

    bytes_each, names = run_real(main)
    assert names == {"a"}
    assert bytes_each < 150_000
