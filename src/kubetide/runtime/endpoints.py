"""Health and metrics over HTTP, for the kubelet and Prometheus.

``/livez`` (also ``/healthz``), ``/readyz``, Cluster Autoscaler's ``/health-check`` and (where it is on)
``/snapshotz``, and ``/metrics``; what loops answer to a POST stands in their entries.
A check answers 200 with ``ok`` (Cluster Autoscaler's ``OK``), or 500 with the reason.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Final, NamedTuple

from aiohttp import web

from kubetide.loop import HttpReply
from kubetide.ports.errors import KubetideError
from kubetide.serving import Listener

Check = Callable[[], str]
"""Return the problem; empty for none."""

_LAST_PORT: Final = 65535


class Checks(NamedTuple):
    """The checks of the process; see ``runtime.health`` for the first and the last."""

    alive: Check
    ready: Check
    health_check: Check


Handler = Callable[[web.Request], Awaitable[web.Response]]


class EndpointError(KubetideError):
    """An address that cannot be served on; the text gives the reason."""


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT``; the host may be empty. Raises EndpointError."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _LAST_PORT:
        raise EndpointError(f"address: {address!r} is no address: write HOST:PORT, such as 127.0.0.1:8085")
    return host, int(port)


@asynccontextmanager
async def serving(
    address: str,
    checks: Checks,
    metrics: Callable[[], bytes],
    *,
    snapshot: Callable[[], tuple[bool, bytes]] | None = None,
    posts: Mapping[str, Callable[[bytes], HttpReply]] = MappingProxyType({}),
) -> AsyncIterator[str]:
    """Serve inside the block; yield the address that it listens on.

    Args:
        address: ``HOST:PORT``; without a host all addresses of the machine, port 0 for a free one.
        checks: What is asked of the process.
        metrics: Returns the series as text.
        snapshot: Returns what ``/snapshotz`` answers, and whether it is a whole answer; None serves none.
        posts: Return what a POST with a body is answered, by path.

    Raises: EndpointError.
    """
    host, port = parse_address(address)

    def answering(check: Check, *, well: str = "ok\n") -> Handler:
        async def answer(_request: web.Request) -> web.Response:
            problem = check()
            return web.Response(status=500 if problem else 200, text=f"{problem}\n" if problem else well)

        return answer

    async def scraped(_request: web.Request) -> web.Response:
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=metrics(), headers=headers)

    async def shown(_request: web.Request) -> web.Response:
        assert snapshot is not None, "it is routed only where there is one"
        whole, body = snapshot()
        return web.Response(status=200 if whole else 500, body=body, content_type="application/json")

    def answering_posts(answer: Callable[[bytes], HttpReply]) -> Handler:
        async def answered(request: web.Request) -> web.Response:
            reply = answer(await request.read())
            return web.Response(status=reply.status, body=reply.body, content_type="application/json")

        return answered

    app = web.Application()
    if snapshot is not None:
        app.router.add_get("/snapshotz", shown)
    for path in ("/livez", "/healthz"):
        app.router.add_get(path, answering(checks.alive))
    app.router.add_get("/readyz", answering(checks.ready))
    app.router.add_get("/health-check", answering(checks.health_check, well="OK"))
    app.router.add_get("/metrics", scraped)
    for path, post in posts.items():
        app.router.add_post(path, answering_posts(post))
    listener = Listener(app)
    try:
        try:
            await listener.listen(host.strip("[]") or None, port)
        except OSError as error:
            raise EndpointError(f"address: cannot listen on {address}: {error.strerror}") from error
        yield listener.authority
    finally:
        await listener.close()
