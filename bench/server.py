"""What requests cost over HTTPS on loopback, the client included: both share one process and one loop.

Prints one JSON line, in CPU time. ``in_process_get_us`` is the same read by the client in the same
process, so that a slow machine can be told from slow code.
"""

from __future__ import annotations

import asyncio
import json
from time import process_time
from typing import Any

from kubetide.cluster import Connection, HttpCluster
from kubetide.embedded.server import ApiServer, Identities, User
from kubetide.embedded.server.tls import Authority
from kubetide.embedded.store import EmbeddedCluster, Store
from kubetide.objects.kinds import CONFIG_MAPS, PODS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.runtime.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import milliseconds

PODS_COUNT = 5_000
REQUESTS = 1_000
WATCHERS = 5


def main() -> None:
    print(json.dumps(run_real(measure)))


async def measure(clock: Clock) -> dict[str, Any]:
    cluster = EmbeddedCluster(Store(), clock, seed=1)
    for index in range(PODS_COUNT):
        await cluster.create(PODS, builders.pod(f"p{index:05d}"), namespace="default")
    authority = Authority()
    server = ApiServer(
        cluster.rest,
        clock,
        identities=Identities({"t": User("bench", ("system:masters",))}),
        tls=authority.server_context(["127.0.0.1"]),
    )
    await server.start()
    connection = Connection(server.url, "t", authority.certificate.decode())
    async with HttpCluster(connection, clock) as client:
        result = {
            "bench": "server",
            "in_process_get_us": await gets(cluster),
            "get_us": await gets(client),
            "patch_us": await patches(client),
            "list_ms": await lists(client),
            "event_us": await events(client, cluster, clock),
            "pods": PODS_COUNT,
            "watchers": WATCHERS,
        }
    await server.stop()
    return result


async def gets(client: Cluster) -> int:
    start = process_time()
    for _ in range(REQUESTS):
        await client.get(PODS, "p00000", namespace="default")
    return round((process_time() - start) / REQUESTS * 1e6)


async def patches(client: Cluster) -> int:
    start = process_time()
    for index in range(REQUESTS):
        body = {"metadata": {"labels": {"n": str(index)}}}
        await client.patch(PODS, "p00000", body, namespace="default")
    return round((process_time() - start) / REQUESTS * 1e6)


async def lists(client: Cluster) -> int:
    start = process_time()
    found = await client.list(PODS)
    assert len(found.items) == PODS_COUNT
    return round((process_time() - start) * 1e3)


async def events(client: Cluster, cluster: Cluster, clock: Clock) -> int:
    """CPU time of an event from the write to the last of the watchers."""
    version = (await client.list(CONFIG_MAPS)).resource_version
    seen = [0] * WATCHERS

    async def watch(number: int) -> None:
        async for batch in client.watch(CONFIG_MAPS, resource_version=version):
            seen[number] += sum(event.type == "ADDED" for event in batch)

    watchers = [asyncio.ensure_future(watch(number)) for number in range(WATCHERS)]
    await clock.sleep(milliseconds(200))
    start = process_time()
    for index in range(REQUESTS):
        await cluster.create(CONFIG_MAPS, builders.config_map(f"c{index}"), namespace="default")
    while min(seen) < REQUESTS:
        await clock.sleep(milliseconds(1))
    spent = process_time() - start
    for watcher in watchers:
        watcher.cancel()
    await asyncio.gather(*watchers, return_exceptions=True)
    return round(spent / REQUESTS * 1e6)


if __name__ == "__main__":
    main()
