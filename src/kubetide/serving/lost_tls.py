"""Until Python 3.11.6 asyncio fails where a TLS connection is broken off that was lost already; Debian 12 has 3.11.2."""

from __future__ import annotations

from asyncio import sslproto
from typing import Any


def mend_abort() -> None:
    """Let ``abort`` do nothing for a connection that was lost, as later versions of Python do."""
    transport: Any = sslproto._SSLProtocolTransport  # noqa: SLF001
    abort = transport.abort

    def abort_unless_lost(self: Any) -> None:
        if self._ssl_protocol is not None:
            abort(self)

    transport.abort = abort_unless_lost
