"""A gRPC server of the expander's protocol, over whatever chooses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc

from kubetide.clouds.externalgrpc.expander.messages import (
    CHANNEL_OPTIONS,
    MESSAGES,
    METHOD,
    METHODS,
    SERVICE,
    node_of,
    pod_of,
)
from kubetide.clouds.externalgrpc.listening import listening
from kubetide.clouds.externalgrpc.messages import encode
from kubetide.objects.node import Node
from kubetide.ports.errors import CloudError
from kubetide.ports.expander import Offer

Choose = Callable[[Sequence[Offer], Mapping[str, Node]], Sequence[str]]
"""Returns the groups of the best offers."""


@asynccontextmanager
async def serving(
    choose: Choose, address: str, *, certificate: tuple[bytes, bytes] | None = None
) -> AsyncIterator[int]:
    """Serve an expander as long as the context is open; yields the port.

    Args:
        choose: Chooses.
        address: ``HOST:PORT``; port 0 takes a free one.
        certificate: Our certificate and its key, PEM. None serves plain text.

    Raises: CloudConfigError when the address cannot be used.
    """

    async def best_options(request: Any, context: Any) -> Any:
        try:
            offers = [
                Offer(one.nodeGroupId, one.nodeCount, tuple(pod_of(raw) for raw in one.podBytes))
                for one in request.options
            ]
            nodes = {group: node_of(raw) for group, raw in request.nodeBytesMap.items()}
        except CloudError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        best = dict.fromkeys(choose(offers, nodes)) if offers else {}
        left = [one for one in request.options if one.nodeGroupId in best]
        for one in left:
            # The client goes by the id, and an older one takes no more than 4 MiB.
            one.ClearField("podBytes")
        return MESSAGES[METHODS[METHOD][1]](options=left)

    handler = grpc.unary_unary_rpc_method_handler(
        best_options,
        request_deserializer=MESSAGES[METHODS[METHOD][0]].FromString,
        response_serializer=encode,
    )
    credentials = None
    if certificate is not None:
        given, key = certificate
        credentials = grpc.ssl_server_credentials([(key, given)])
    async with listening(address, SERVICE, {METHOD: handler}, credentials, options=CHANNEL_OPTIONS) as port:
        yield port
