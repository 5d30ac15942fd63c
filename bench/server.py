"""What requests cost the server: it runs in a process of its own, whose CPU time alone is counted.

Prints one JSON line. ``floor`` figures are of a bare aiohttp handler in the same process that sends
the same bytes, so that a slow machine, and the cost of HTTP and TLS in Python, can be reported from slow
code. ``plain`` is without TLS. The child's part is ``python -m bench.server serve``.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from collections.abc import Awaitable, Callable
from time import process_time
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

from kubetide.embedded.apiserver.http import ApiServer, Identities, User
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.objects.kinds import CONFIG_MAPS, PODS
from kubetide.ports.clock import Clock
from kubetide.runtime.process import tune_gc
from kubetide.runtime.timing.clock import run_real
from kubetide.serving.certificates import Authority
from kubetide.testing import builders
from kubetide.units.time import milliseconds

PODS_COUNT = 20_000
REQUESTS = 3_000
AT_ONCE = 8
EVENTS = 3_000
WATCHERS = 5
IDLE_WATCHES = 1_000
PAGE = 500
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
HEADERS = {"Authorization": "Bearer t", "Accept-Encoding": "identity"}
_TICK = milliseconds(1)


def main() -> None:
    if sys.argv[1:] == ["serve"]:
        run_real(serve)
    else:
        print(json.dumps(run_real(measure)))


# ── The child ───────────────────────────────────────────────────────────────────────────────────


async def serve(clock: Clock) -> None:
    """Serve a cluster with and without TLS, and answer questions about itself on standard input."""
    cluster = EmbeddedCluster(Store(), clock, seed=1)
    for index in range(PODS_COUNT):
        await cluster.create(PODS, builders.pod(f"p{index:05d}"), namespace="default")
    await cluster.create(CONFIG_MAPS, builders.config_map("small", data={"k": "v"}), namespace="default")
    authority = Authority()
    identities = Identities({"t": User("bench", ("system:masters",))})
    servers = [
        ApiServer(cluster.rest, clock, identities=identities, tls=tls)
        for tls in (authority.server_context(["127.0.0.1"]), None)
    ]
    for server in servers:
        await server.start()
    small = cluster.rest.store.get(CONFIG_MAPS, ("default", "small"))
    assert small is not None
    floor = await _floor(msgspec.json.encode(small.json) + b"\n", authority)
    tune_gc()
    pause = _Pause()
    ticking = asyncio.ensure_future(pause.watch(clock))
    print(json.dumps([*(server.url for server in servers), floor]), flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while question := (await lines.readline()).strip():
        if question == b"events":
            for index in range(EVENTS):
                body = builders.config_map(f"c{index}")
                await cluster.create(CONFIG_MAPS, body, namespace="default")
        elif question == b"encode":
            found = cluster.rest.store.select(PODS, Selection(PODS))
            start = process_time()
            msgspec.json.encode([revision.json for revision in found])
            print(json.dumps({"cpu_s": process_time() - start}), flush=True)
            continue
        print(json.dumps(pause.usage()), flush=True)
    ticking.cancel()


async def _floor(body: bytes, authority: Authority) -> str:
    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=authority.server_context(["127.0.0.1"])).start()
    return f"https://127.0.0.1:{runner.addresses[0][1]}"


class _Pause:
    """The longest that the loop worked before it gave others a turn, since it was asked last.

    In CPU time, so that what other processes take away does not count.
    """

    def __init__(self) -> None:
        self._longest = 0.0

    async def watch(self, clock: Clock) -> None:
        last = process_time()
        while True:
            await clock.sleep(_TICK)
            now = process_time()
            self._longest = max(self._longest, now - last)
            last = now

    def usage(self) -> dict[str, float]:
        longest, self._longest = self._longest, 0.0
        with open("/proc/self/statm") as file:  # noqa: PTH123
            pages = int(file.read().split()[1])
        return {
            "cpu_s": process_time(),
            "pause_ms": round(longest * 1e3, 1),
            "rss": pages * resource.getpagesize(),
        }


# ── The parent ──────────────────────────────────────────────────────────────────────────────────


class Child:
    """The server's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(await self._process.stdout.readline())

    async def ask(self, question: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{question}\n".encode())
        return await self.read()

    async def spent(self, work: Callable[[], Awaitable[Any]]) -> tuple[float, Any]:
        """Return the CPU seconds that the server spent on some work, and the work's result."""
        before = (await self.ask("usage"))["cpu_s"]
        result = await work()
        return (await self.ask("usage"))["cpu_s"] - before, result

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        await self._process.wait()


async def measure(clock: Clock) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.server", "serve", stdin=-1, stdout=-1, limit=1 << 20
    )
    child = Child(process)
    tls, plain, floor = await child.read()
    connector = aiohttp.TCPConnector(ssl=False, limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=HEADERS) as session:
        result = {
            "bench": "server",
            "pods": PODS_COUNT,
            "get_us": await gets(child, session, tls),
            "get_plain_us": await gets(child, session, plain),
            "get_floor_us": await gets(child, session, floor),
            **await discovery(child, session, tls),
            **await lists(child, session, tls),
            **await tables(child, session, tls),
            **await events(child, session, tls),
            **await idle(child, session, tls, clock),
        }
    await child.stop()
    return result


async def gets(child: Child, session: aiohttp.ClientSession, url: str) -> int:
    """CPU microseconds of a GET of a small object."""

    async def some() -> None:
        for _ in range(REQUESTS // AT_ONCE):
            async with session.get(f"{url}/api/v1/namespaces/default/configmaps/small") as answer:
                await answer.read()

    async def work() -> None:
        await asyncio.gather(*(some() for _ in range(AT_ONCE)))

    await work()
    spent, _ = await child.spent(work)
    return round(spent / (REQUESTS // AT_ONCE * AT_ONCE) * 1e6)


async def discovery(child: Child, session: aiohttp.ClientSession, url: str) -> dict[str, int]:
    """CPU microseconds of what clients ask first, after the first time."""
    result = {}
    for name, path in (("discovery_us", "/apis"), ("openapi_us", "/openapi/v3/apis/apps/v1")):

        async def work(path: str = path) -> None:
            for _ in range(100):
                async with session.get(url + path) as answer:
                    await answer.read()

        await work()
        spent, _ = await child.spent(work)
        result[name] = round(spent / 100 * 1e6)
    return result


async def lists(child: Child, session: aiohttp.ClientSession, url: str) -> dict[str, float]:
    """A list of all pods at one go: MB a CPU second, and of the floor, which encodes them and no more."""

    async def work() -> int:
        size = 0
        async with session.get(f"{url}/api/v1/pods") as answer:
            async for part in answer.content.iter_any():
                size += len(part)
        return size

    await work()
    await child.ask("usage")
    spent, size = await child.spent(work)
    floor = (await child.ask("encode"))["cpu_s"]
    return {
        "list_MB": round(size / 1e6, 1),
        "list_MB_per_s": round(size / 1e6 / spent),
        "list_floor_MB_per_s": round(size / 1e6 / floor),
    }


async def tables(child: Child, session: aiohttp.ClientSession, url: str) -> dict[str, float]:
    """A table of all pods in pages: CPU milliseconds, and the longest time that all else waited."""

    async def work() -> int:
        token, rows = "", 0
        while True:
            query = {"limit": str(PAGE), **({"continue": token} if token else {})}
            async with session.get(f"{url}/api/v1/pods", params=query, headers={"Accept": TABLE}) as answer:
                table = json.loads(await answer.read())
            rows += len(table["rows"])
            token = table["metadata"].get("continue", "")
            if not token:
                return rows

    before = await child.ask("usage")
    rows = await work()
    after = await child.ask("usage")
    assert rows == PODS_COUNT
    return {
        "table_ms": round((after["cpu_s"] - before["cpu_s"]) * 1e3),
        "table_pause_ms": after["pause_ms"],
    }


async def events(child: Child, session: aiohttp.ClientSession, url: str) -> dict[str, int]:
    """CPU microseconds of an event from the write to the last of the watchers."""
    path = f"{url}/api/v1/namespaces/default/configmaps"
    async with session.get(path) as answer:
        version = (await answer.json())["metadata"]["resourceVersion"]
    answers = [
        await session.get(path, params={"watch": "1", "resourceVersion": version}) for _ in range(WATCHERS)
    ]

    async def read(answer: aiohttp.ClientResponse) -> None:
        for _ in range(EVENTS):
            await answer.content.readline()

    async def work() -> None:
        reading = [asyncio.ensure_future(read(answer)) for answer in answers]
        await child.ask("events")
        await asyncio.gather(*reading)

    spent, _ = await child.spent(work)
    for answer in answers:
        answer.close()
    return {"event_us": round(spent / EVENTS * 1e6), "watchers": WATCHERS}


async def idle(child: Child, session: aiohttp.ClientSession, url: str, clock: Clock) -> dict[str, float]:
    """What the server holds for a watch that receives nothing."""
    before = (await child.ask("usage"))["rss"]
    answers = []
    for _ in range(IDLE_WATCHES):
        path = f"{url}/api/v1/namespaces/kube-public/configmaps?watch=1&resourceVersion=0"
        answers.append(await session.get(path))
    await clock.sleep(milliseconds(200))
    after = (await child.ask("usage"))["rss"]
    for answer in answers:
        answer.close()
    return {"idle_watches": IDLE_WATCHES, "idle_watch_kB": round((after - before) / IDLE_WATCHES / 1e3, 1)}


if __name__ == "__main__":
    main()
