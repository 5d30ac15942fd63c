"""A server that answers as a test says, for the faults that a healthy API server does not show."""

from __future__ import annotations

from contextlib import asynccontextmanager

from aiohttp import web

from kubetide.cluster import Connection, HttpCluster
from kubetide.serving import Listener
from kubetide.units.time import Instant


@asynccontextmanager
async def answering(handler, *, tls=None):
    """Run a server of that handler on a free port and return its URL."""

    async def handle(request):
        answer = await handler(request)
        if isinstance(answer, web.Response) and answer.prepared:
            # An answer that is given again is sent as a new one.
            answer = web.Response(body=answer.body, status=answer.status, headers=answer.headers)
        return answer

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    listener = Listener(app, grace_s=0.1)
    await listener.listen("127.0.0.1", tls=tls)
    try:
        yield f"http{'s' if tls else ''}://{listener.authority}"
    finally:
        await listener.close()


@asynccontextmanager
async def asking(handler, clock, *, connection=None, **more):
    """Yield a client of such a server; ``connection`` makes the Connection of its URL."""
    make = connection or Connection
    async with answering(handler) as url, HttpCluster(make(url), clock, **more) as client:
        yield client


class Later:
    """A clock that a test puts forward."""

    def __init__(self, clock):
        self.clock, self.by = clock, 0

    def now(self):
        return self.clock.now() + self.by

    def monotonic(self):
        return self.clock.monotonic() + self.by

    async def sleep(self, duration):
        await self.clock.sleep(duration)


class Skewed:
    """A clock whose wall time is wrong by that much; elapsed time is right."""

    def __init__(self, clock, by):
        self.clock, self.by = clock, by

    def now(self):
        return Instant(self.clock.now() + self.by)

    def monotonic(self):
        return self.clock.monotonic()

    async def sleep(self, duration):
        await self.clock.sleep(duration)


def status(code, reason="", *, retry_after=None, **more):
    """Answer with a Status, as an API server refuses."""
    body = {
        "kind": "Status",
        "status": "Failure",
        "message": f"code {code}",
        "reason": reason,
        "code": code,
        **more,
    }
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return web.json_response(body, status=code, headers=headers)


def config_map(name="a", version="1"):
    metadata = {"name": name, "namespace": "default", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
