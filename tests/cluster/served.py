"""An embedded cluster behind HTTPS on a free port, and a client of it."""

from __future__ import annotations

from contextlib import asynccontextmanager

from kubetide.cluster import Connection, HttpCluster
from kubetide.embedded.apiserver.http import ApiServer, Identities, User
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.runtime.timing.clock import run_real
from kubetide.serving.certificates import Authority

TOKEN = "admin-token"
ADMIN = User("admin", ("system:masters",))

_AUTHORITY = Authority()


@asynccontextmanager
async def served(
    clock, *, store=None, identities=None, metrics=None, custom=None, external=None, webhooks=None
):
    """Yield the embedded cluster, its server, and the connection of an administrator."""
    cluster = EmbeddedCluster(store or Store(), clock, seed=1, webhooks=webhooks)
    server = ApiServer(
        cluster.rest,
        clock,
        identities=identities or Identities({TOKEN: ADMIN}),
        front=cluster.front,
        metrics=metrics,
        custom=custom,
        external=external,
        tls=_AUTHORITY.server_context(["127.0.0.1"]),
    )
    await server.start()
    try:
        yield cluster, server, Connection(server.url, TOKEN, _AUTHORITY.certificate.decode())
    finally:
        await server.stop()


def with_client(main):
    """Run ``main(client, embedded, clock)`` in real time against a served cluster."""

    async def run(clock):
        async with served(clock) as (cluster, _, connection), HttpCluster(connection, clock) as client:
            await main(client, cluster, clock)

    run_real(run)
