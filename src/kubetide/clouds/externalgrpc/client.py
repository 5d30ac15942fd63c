"""Calls of the protocol over gRPC."""

from __future__ import annotations

from typing import Any

import grpc
from grpc import aio

from kubetide.clouds.externalgrpc.config import GrpcConfig
from kubetide.clouds.externalgrpc.messages import MESSAGES, METHODS, SERVICE, encode
from kubetide.clouds.externalgrpc.statuses import error_of
from kubetide.units.time import to_seconds


class GrpcClient:
    """A channel to a provider."""

    def __init__(self, config: GrpcConfig) -> None:
        """Nothing is connected before the first call."""
        self._timeout = to_seconds(config.timeout)
        if config.tls is None:
            self._channel = aio.insecure_channel(config.address)
        else:
            credentials = grpc.ssl_channel_credentials(
                root_certificates=config.tls.authority,
                private_key=config.tls.key,
                certificate_chain=config.tls.certificate,
            )
            self._channel = aio.secure_channel(config.address, credentials)
        self._methods = {
            name: self._channel.unary_unary(
                f"/{SERVICE}/{name}",
                request_serializer=encode,
                response_deserializer=MESSAGES[response].FromString,
            )
            for name, (_, response) in METHODS.items()
        }

    async def __call__(self, method: str, request: Any) -> Any:
        """Make a call within the time-out. Raises CloudError."""
        try:
            answer = await self._methods[method](request, timeout=self._timeout)
        except aio.AioRpcError as error:
            raise error_of(method, error.code().name, error.details() or "") from error
        if answer is None:
            # That is what grpc.aio returns for bytes that the deserializer refuses.
            raise error_of(method, "INTERNAL", f"the answer is no {METHODS[method][1]} in protobuf")
        return answer

    async def close(self) -> None:
        """Close the channel."""
        await self._channel.close()
