"""A gRPC server that listens as long as its context is open."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import grpc
from grpc import aio

from kubetide.clouds.common.ini import CloudConfigError

_GRACE_S: Final = 5.0


@asynccontextmanager
async def listening(
    address: str,
    service: str,
    handlers: Mapping[str, Any],
    credentials: Any = None,
    *,
    options: Sequence[tuple[str, int]] = (),
) -> AsyncIterator[int]:
    """Serve the methods of a service; yields the port.

    Args:
        address: ``HOST:PORT``; port 0 takes a free one.
        handlers: By the name of the method.
        credentials: Of the server; None serves plain text.
        options: Of gRPC, by their names there.

    Raises: CloudConfigError when the address cannot be used.
    """
    if not address.rpartition(":")[2].isdecimal():
        raise CloudConfigError(f"cannot listen on {address}: it has no port; give HOST:PORT")
    server = aio.server(options=options)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    try:
        if credentials is None:
            port: int = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise CloudConfigError(f"cannot listen on {address}: {error}") from error
    await server.start()
    try:
        yield port
    finally:
        await server.stop(_GRACE_S)
