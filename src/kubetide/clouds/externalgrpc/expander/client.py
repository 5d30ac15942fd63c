"""Asking an expander in a process of its own. Source: Cluster Autoscaler, grpcplugin: one call, five seconds."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import grpc
from grpc import aio

from kubetide.clouds.common.ini import CloudConfigError
from kubetide.clouds.externalgrpc.expander.messages import (
    CHANNEL_OPTIONS,
    MESSAGES,
    METHOD,
    METHODS,
    SERVICE,
    node_bytes,
    pod_bytes,
)
from kubetide.clouds.externalgrpc.messages import encode
from kubetide.objects.node import Node
from kubetide.ports.errors import CloudError
from kubetide.ports.expander import Offer

_TIMEOUT_S: Final = 5.0


class GrpcExpander:
    """A channel to an expander: an ``ExpanderService``."""

    def __init__(self, url: str, certificate: str = "") -> None:
        """Nothing is connected before the first call.

        Args:
            url: ``HOST:PORT``.
            certificate: File with the authority of the expander's certificate, PEM; empty for plain text.

        Raises: CloudConfigError for a file that cannot be read, or holds no certificate.
        """
        self._url, self._certificate = url, certificate
        self._channel: aio.Channel | None = None
        if certificate:
            self._authority = _authority_in(certificate)

    async def best_options(self, offers: Sequence[Offer], nodes: Mapping[str, Node]) -> tuple[str, ...]:
        """Return the groups that the expander names. Raises CloudError when there is no answer in time."""
        if self._channel is None:
            self._channel = self._open()
        option = MESSAGES["Option"]
        request = MESSAGES["BestOptionsRequest"](
            options=[
                option(
                    nodeGroupId=one.group,
                    nodeCount=one.nodes,
                    debug=f"{one.group}: {one.nodes} nodes for {len(one.pods)} pods",
                    podBytes=[pod_bytes(pod) for pod in one.pods],
                )
                for one in offers
            ],
            nodeBytesMap={group: node_bytes(node) for group, node in nodes.items()},
        )
        call = self._channel.unary_unary(
            f"/{SERVICE}/{METHOD}",
            request_serializer=encode,
            response_deserializer=MESSAGES[METHODS[METHOD][1]].FromString,
        )
        try:
            answer = await call(request, timeout=_TIMEOUT_S)
        except aio.AioRpcError as error:
            said = f"{error.code().name}: {error.details() or ''}"
            raise CloudError(f"the expander at {self._url} does not answer: {said}") from error
        if answer is None:
            # That is what grpc.aio returns for bytes that the deserializer refuses.
            raise CloudError(
                f"the expander at {self._url} answers what is no {METHODS[METHOD][1]} in protobuf"
            )
        return tuple(one.nodeGroupId for one in answer.options)

    def _open(self) -> aio.Channel:
        if not self._certificate:
            return aio.insecure_channel(self._url, options=CHANNEL_OPTIONS)
        credentials = grpc.ssl_channel_credentials(root_certificates=self._authority)
        return aio.secure_channel(self._url, credentials, options=CHANNEL_OPTIONS)

    async def close(self) -> None:
        """Close the channel."""
        if self._channel is not None:
            await self._channel.close()
            self._channel = None


def _authority_in(path: str) -> bytes:
    """Return what the file holds, which gRPC looks at no sooner than at the first call, and then says little of."""
    try:
        held = Path(path).read_bytes()
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=held.decode("ascii", "replace"))
    except (OSError, ValueError) as error:  # also ssl.SSLError
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CloudConfigError(
            f"--grpc-expander-cert={path}: cannot be read: {why}; give a PEM file with the authority's certificate"
        ) from error
    return held
