"""The body of a watch: bytes as they come, for as long as the server talks."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress

import aiohttp

from kubetide.units.time import Duration, milliseconds, to_seconds

_MOMENT = milliseconds(20)
"""How long bytes may be held back that are too few."""


def give_up(answer: aiohttp.ClientResponse) -> None:
    """End the connection of an answer that was not read to its end: nobody else can use it.

    At once: a farewell of TLS waits for the server's, which may outlast this process.
    """
    transport = answer.connection.transport if answer.connection is not None else None
    answer.close()
    if transport is not None:
        transport.abort()


class Stream:
    """The body of a watch."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self._least = 1
        self._socket: socket.socket | None = None

    @property
    def media_type(self) -> str:
        """Of what the server streams, without its parameters."""
        return self._answer.content_type

    async def read(self, patience: Duration) -> bytes | None:
        """Return the next bytes, none when the stream has ended or broken off, None when it is silent for so long."""
        if self._least > 1:
            piece = await self._read_within(_MOMENT)
            if piece is not None:
                return piece
            # Less has come than was waited for; maybe it was the last for long.
            self._wait_for(1)
            try:
                return await self._read_within(patience)
            finally:
                self._wait_for(self._least)
        return await self._read_within(patience)

    def gather(self, least: int) -> None:
        """Have the system keep what comes until there are so many bytes, or no more for a moment; 1 ends that.

        A server that streams a long list sends it in small pieces, and to be woken for each costs more than to read it.
        End it in any case: when the stream has ended, others go on with its connection.
        """
        if least == self._least:
            return
        self._least = least
        connection = self._answer.connection
        if connection is not None and connection.transport is not None:
            self._socket = connection.transport.get_extra_info("socket")
        self._wait_for(least)

    def _wait_for(self, least: int) -> None:
        if self._socket is not None:
            with suppress(OSError):  # it is closed, or of a system that cannot
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)

    async def _read_within(self, patience: Duration) -> bytes | None:
        try:
            async with asyncio.timeout(to_seconds(patience)):
                return await self._answer.content.readany()
        except TimeoutError:
            return None
        except (aiohttp.ClientError, OSError):
            return b""
