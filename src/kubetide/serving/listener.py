"""One way to serve an aiohttp application over TCP, which leaves nothing open behind."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Return False for what aiohttp logs of a malformed request: its sender gets a 400 that says what is wrong.

    Such requests need no token, so anybody could fill the log with tracebacks.
    """
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


_LOG = logging.getLogger(__name__)
_LOG.addFilter(_is_worth_a_line)


class Listener:
    """Serves ``app`` from ``listen`` to ``close``; may listen again after ``deafen``.

    With aiohttp's own sites a connection that comes while they stop can stay open for ever: asyncio
    (3.11) drops one whose transport is half made when its server closes, and aiohttp forgets one whose
    TLS handshake ends after its clean-up. Here both are broken off.

    Args:
        app: what answers.
        grace_s: how long ``close`` waits for requests that are being answered.
        more: further arguments of aiohttp's ``AppRunner``.
    """

    def __init__(self, app: web.Application, *, grace_s: float = 1.0, **more: Any) -> None:
        self._runner = _Runner(
            app, access_log=None, logger=_LOG, handle_signals=False, shutdown_timeout=grace_s, **more
        )
        self._server: asyncio.Server | None = None

    async def listen(self, host: str | None, port: int = 0, *, tls: ssl.SSLContext | None = None) -> None:
        """Take connections; port 0 takes a free one, no host all addresses of the machine.

        Raises: OSError when the address cannot be had.
        """
        if self._runner.server is None:
            await self._runner.setup()
        answering = self._runner.server
        if answering is None:
            raise RuntimeError("aiohttp made no server")
        self._server = await asyncio.get_running_loop().create_server(answering, host, port, ssl=tls)

    @property
    def address(self) -> tuple[str, int]:
        """The host and port that it listens on."""
        if self._server is None:
            raise RuntimeError("address: not listening")
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    @property
    def authority(self) -> str:
        """Where it listens, as it stands in a URL."""
        host, port = self.address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def deafen(self) -> None:
        """Refuse new connections; those there are go on."""
        if self._server is None:
            return
        server, self._server = self._server, None
        loop = asyncio.get_running_loop()
        for sock in server.sockets:
            loop.remove_reader(sock.fileno())
        taken = loop.create_future()  # what was accepted by now gets its transport in the loop's next pass
        loop.call_soon(taken.set_result, None)
        await taken
        server.close()

    async def close(self) -> None:
        """End every connection, also those that are only being made; may be called twice."""
        await self.deafen()
        answering = self._runner.server
        open_ends = [one.transport for one in answering.connections] if answering is not None else []
        await self._runner.cleanup()
        # A closed TLS connection would wait for its client's good-bye, longer than the loop may run.
        for transport in open_ends:
            if transport is not None:
                transport.abort()


class _Runner(web.AppRunner):
    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _Server(made.request_handler, request_factory=made.request_factory, **self._kwargs)


class _Server(web.Server):
    """Breaks off who comes after the end."""

    _ended = False

    def pre_shutdown(self) -> None:
        self._ended = True
        super().pre_shutdown()

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        if self._ended:
            transport.abort()
        else:
            super().connection_made(handler, transport)
