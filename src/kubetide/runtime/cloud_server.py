"""A cloud of ours behind upstream's externalgrpc protocol, as a process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from kubetide.clouds.common.ini import CloudConfigError
from kubetide.clouds.externalgrpc.config import Certificates
from kubetide.clouds.registry import missing_package
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.ports.clock import Clock
from kubetide.runtime.clouds import open_cloud
from kubetide.runtime.configuration.config import RunConfig
from kubetide.runtime.timing.clock import run_real

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


def serve_cloud(
    config: RunConfig, address: str, tls: Certificates | None, *, say: Callable[[str], None]
) -> None:
    """Serve the cloud that the settings name until SIGTERM or Ctrl-C.

    Args:
        config: The settings; ``cloud_provider`` and what it needs.
        address: ``HOST:PORT``; port 0 takes a free one.
        tls: Our certificate and the authority of clients'; None serves plain text, on loopback only.
        say: Takes a line for people.

    Raises: CloudConfigError, CloudNotFound, CloudError of the first look at the cloud.
    """
    if tls is None and address.rpartition(":")[0] not in _LOOPBACK:
        raise CloudConfigError(
            f"cloud serve: {address} would let anybody scale the groups; give --cert, --key and --cacert, or listen on "
            "127.0.0.1"
        )
    try:
        from kubetide.clouds.externalgrpc.server import serving  # noqa: PLC0415  # grpcio is an extra
    except ImportError as error:
        raise missing_package("kubetide cloud serve", "grpc") from error

    async def main(clock: Clock) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for one in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(one, ended.set)
        async with open_cloud(config.run, config.loops.of(NodesSettings), clock) as cloud:
            groups = await cloud.refresh()
            async with serving(cloud, address, tls) as port:
                host = address.rpartition(":")[0]
                say(f"{cloud.name}: {len(groups)} node groups served on {host}:{port}")
                await ended.wait()

    run_real(main)
