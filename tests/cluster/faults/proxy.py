"""A proxy on loopback before an API server, with faults that a test switches on and off.

TLS ends at the proxy, by an authority of its own. Each request is an ``Exchange``; the first fault that
takes it decides what becomes of it, and without one it is passed on. The proxy notes every write that
reached the server, so that a test can see whether one was doubled.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import aiohttp
from aiohttp import web

from kubetide.cluster import Connection
from kubetide.serving import Listener, make_connector
from kubetide.serving.certificates import Authority

AUTHORITY = Authority()
HOST = "127.0.0.1"

_PASSED_ON = ("Authorization", "Accept", "Content-Type", "User-Agent")


class Write(NamedTuple):
    """A write that reached the server, and what the server answered; whether that changed anything."""

    method: str
    path: str
    body: bytes
    code: int
    changed: bool = True


class Exchange:
    """One request on its way through the proxy."""

    def __init__(self, proxy: Proxy, request: web.Request) -> None:
        self.proxy = proxy
        self.request = request
        self._counted = False
        self.method = request.method
        self.path = request.path
        self.query = dict(request.query)
        self.watches = self.query.get("watch") == "true"
        self.writes = self.method != "GET"
        self.lists = self.method == "GET" and not self.watches and "limit" in self.query

    def is_about(self, resource: str) -> bool:
        """Whether the path names this resource."""
        return resource in self.path.split("/")

    def count(self) -> None:
        """Notes, once, that a fault has met this request."""
        self.proxy.hits += not self._counted
        self._counted = True

    def hang_up(self) -> web.Response:
        """End the connection without a word more."""
        if self.request.transport is not None:
            self.request.transport.abort()
        return web.Response()

    async def raw(self, data: bytes) -> web.Response:
        """Send bytes past everything that would put them right, and hang up."""
        transport = self.request.transport
        if transport is not None:
            transport.write(data)
            transport.close()
        return web.Response()

    async def say_nothing(self) -> web.Response:
        """Hold the connection open and send nothing until the client hangs up."""
        self.count()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")

    async def pass_on(
        self,
        *,
        body: Callable[[bytes], bytes] | None = None,
        line: Callable[[bytes], list[bytes]] | None = None,
    ) -> web.StreamResponse:
        """Ask the server and return its answer.

        Args:
            body: Changes the body of an answer that is no watch.
            line: Changes a line of a watch into what is sent of it, piece by piece; raises ``HangUp`` to end it.
        """
        if body is not None or line is not None:
            self.count()
        async with self.proxy.ask(self) as answer:
            self.request[_DATE] = answer.headers.get("Date", "")
            if not self.watches or answer.status != 200:
                data = await answer.read()
                if body is not None and answer.status == 200:
                    data = body(data)
                headers = {"Content-Type": answer.headers.get("Content-Type", "")}
                return web.Response(body=data, status=answer.status, headers=headers)
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            await response.prepare(self.request)
            rest = b""
            async for piece in answer.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                for one in lines:
                    whole = one + b"\n"
                    try:
                        for part in [whole] if line is None else line(whole):
                            await response.write(part)
                            # Each piece arrives by itself, as far as a socket preserves boundaries.
                            await asyncio.sleep(0)
                    except HangUp:
                        return self.hang_up()
            return response


_DATE = web.RequestKey("date", str)


async def _date(request: web.Request, answer: web.StreamResponse) -> None:
    """Date an answer as the server did, by the cluster's clock; the proxy's own have no date."""
    answer.headers.popall("Date", None)
    if request.get(_DATE):
        answer.headers["Date"] = request[_DATE]


def _version(body: bytes | None) -> str:
    """Return the resourceVersion that a body names, empty for none."""
    with suppress(ValueError, AttributeError):
        return (json.loads(body or b"{}").get("metadata") or {}).get("resourceVersion") or ""
    return ""


class HangUp(Exception):
    """Raised by a change of lines: the watch ends here."""


Fault = Callable[[Exchange], Awaitable[web.StreamResponse | None]]
"""Decides what becomes of a request; None leaves it to the next fault, or to the server."""


class Proxy:
    """Forwards to ``connection``'s server; clients use ``url``."""

    def __init__(self, connection: Connection) -> None:
        self._server = connection.url
        self._tls = connection.tls()
        self.faults: list[Fault] = []
        self.hits = 0
        """Requests that a fault has taken since the faults were last changed."""
        self.written: list[Write] = []
        self._port = 0
        self._transports: set[asyncio.Transport] = set()

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self._port}"

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext):
        """Listen while the block runs."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        app.on_response_prepare.append(_date)
        self._listener = Listener(app, grace_s=0.01, handler_cancellation=True)
        self._front = tls
        # Compression would hide the lines from the faults.
        self._session = aiohttp.ClientSession(
            headers={"Accept-Encoding": "identity"},
            connector=make_connector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        await self.listen()
        try:
            yield self
        finally:
            self.cut()
            await self._session.close()
            await self._listener.close()

    async def listen(self) -> None:
        """Take connections, always on the same port."""
        await self._listener.listen(HOST, self._port, tls=self._front)
        _, self._port = self._listener.address

    async def be_unreachable(self) -> None:
        """Refuse connections and break off those there are."""
        await self._listener.deafen()
        self.cut()

    def cut(self) -> None:
        """Break off every connection."""
        for transport in tuple(self._transports):
            transport.abort()
        self._transports.clear()

    def set(self, *faults: Fault) -> None:
        """Put these faults in force, in place of those before."""
        self.faults, self.hits = list(faults), 0

    @asynccontextmanager
    async def ask(self, exchange: Exchange):
        """Send a request on to the server."""
        request = exchange.request
        data = await request.read() if exchange.writes else None
        headers = [(name, request.headers[name]) for name in _PASSED_ON if name in request.headers]
        async with self._session.request(
            exchange.method,
            self._server + request.path,
            params=exchange.query,
            data=data,
            headers=headers,
            ssl=self._tls,
        ) as answer:
            if exchange.writes:
                asked, given = _version(data), _version(await answer.read())
                changed = not asked or asked != given
                self.written.append(
                    Write(exchange.method, exchange.path, data or b"", answer.status, changed)
                )
            yield answer

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            self._transports.add(request.transport)
        exchange = Exchange(self, request)
        try:
            for fault in self.faults:
                answer = await fault(exchange)
                if answer is not None:
                    exchange.count()
                    return answer
            return await exchange.pass_on()
        except (ConnectionError, aiohttp.ClientError):
            return exchange.hang_up()

    def done(self, *methods: str) -> list[Write]:
        """Return the writes of these methods (all without one) that the server has carried out."""
        return [one for one in self.written if one.code < 300 and (not methods or one.method in methods)]


@asynccontextmanager
async def proxied(connection: Connection, *, tls: ssl.SSLContext | None = None):
    """Run a proxy before a server; return it and the connection through it."""
    proxy = Proxy(connection)
    async with proxy.running(tls or AUTHORITY.server_context([HOST])):
        yield proxy, Connection(proxy.url, connection.token, AUTHORITY.certificate.decode())


def changed(change: Callable[[dict], None]) -> Callable[[bytes], bytes]:
    """Return a change of bytes by a change of the JSON in them."""

    def apply(data: bytes) -> bytes:
        with suppress(ValueError):
            body = json.loads(data)
            change(body)
            return json.dumps(body, separators=(",", ":")).encode() + (b"\n" if data.endswith(b"\n") else b"")
        return data

    return apply
