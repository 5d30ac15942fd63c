"""A gRPC server of the protocol, over a cloud of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc

from kubetide.clouds.externalgrpc.config import Certificates
from kubetide.clouds.externalgrpc.listening import listening
from kubetide.clouds.externalgrpc.messages import MESSAGES, METHODS, SERVICE, encode
from kubetide.clouds.externalgrpc.service import Answer, ProviderService
from kubetide.clouds.externalgrpc.statuses import status_of
from kubetide.ports.cloud import Cloud
from kubetide.ports.errors import CloudError


@asynccontextmanager
async def serving(cloud: Cloud, address: str, tls: Certificates | None = None) -> AsyncIterator[int]:
    """Serve a cloud as long as the context is open; yields the port.

    Args:
        cloud: The cloud.
        address: ``HOST:PORT``; port 0 takes a free one.
        tls: Our certificate, and the authority of those that clients must show. None serves plain text.

    Raises: CloudConfigError when the address cannot be used.
    """
    handlers = {
        name: _handler(answer, *METHODS[name]) for name, answer in ProviderService(cloud).methods().items()
    }
    async with listening(address, SERVICE, handlers, None if tls is None else _credentials(tls)) as port:
        yield port


def _credentials(tls: Certificates) -> Any:
    return grpc.ssl_server_credentials(
        [(tls.key, tls.certificate)], root_certificates=tls.authority, require_client_auth=True
    )


def _handler(answer: Answer, request: str, _response: str) -> Any:
    async def handle(message: Any, context: Any) -> Any:
        try:
            return await answer(message)
        except CloudError as error:
            await context.abort(grpc.StatusCode[status_of(error)], str(error))

    return grpc.unary_unary_rpc_method_handler(
        handle, request_deserializer=MESSAGES[request].FromString, response_serializer=encode
    )
