"""``--cloud-provider=externalgrpc``: from upstream's configuration file to the provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubetide.clouds.common.files import config_text
from kubetide.clouds.common.ini import CloudConfigError
from kubetide.clouds.externalgrpc.joined_nodes import joined_nodes
from kubetide.clouds.registry import CloudContext, missing_package
from kubetide.ports.cloud import Cloud


@asynccontextmanager
async def connect(context: CloudContext) -> AsyncIterator[Cloud]:
    """Open the provider. Raises CloudNotFound without grpcio or protobuf, CloudConfigError for a bad file."""
    try:
        from kubetide.clouds.externalgrpc.client import GrpcClient  # noqa: PLC0415  # grpcio is an extra
        from kubetide.clouds.externalgrpc.cloud import open_cloud  # noqa: PLC0415  # so is protobuf
    except ImportError as error:
        raise missing_package("--cloud-provider=externalgrpc", "grpc") from error
    from kubetide.clouds.externalgrpc.config import grpc_config  # noqa: PLC0415  # after the packages it is for

    if not context.flags.cloud_config:
        raise CloudConfigError(
            "externalgrpc: no configuration; give --cloud-config=FILE with address: HOST:PORT"
        )
    config = await asyncio.to_thread(grpc_config, await config_text(context.flags.cloud_config))
    client = GrpcClient(config)
    try:
        async with joined_nodes(context.cluster, context.clock) as nodes:
            yield await open_cloud(
                client, config.address, context.defaults, nodes=nodes, now=context.clock.now
            )
    finally:
        await client.close()
