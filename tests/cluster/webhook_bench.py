"""A served cluster with a webhook over real sockets, and ways to ask it."""

from __future__ import annotations

import json

import aiohttp
from tests.cluster.hook_server import configuration, hook_server, webhook
from tests.cluster.served import TOKEN, served

from kubetide.cluster import HttpCluster
from kubetide.embedded.apiserver.admission.http import HttpCaller
from kubetide.objects.kinds import (
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
)
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector

KINDS = {"mutating": MUTATING_WEBHOOKS, "validating": VALIDATING_WEBHOOKS}
WHERE = {"namespace": "default"}


class Bench:
    """A served cluster with a webhook, and ways to ask it."""

    def __init__(self, clock, cluster, server, client, session, hooks):
        self.clock, self.cluster, self.server, self.client = clock, cluster, server, client
        self.session, self.hooks = session, hooks

    async def ask(self, method, path, body=None, media_type="application/json"):
        """Return code, JSON and warnings of an answer."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": media_type}
        data = None if body is None else json.dumps(body).encode()
        async with self.session.request(method, self.server.url + path, data=data, headers=headers) as answer:
            return answer.status, await answer.json(), answer.headers.getall("Warning", [])

    async def configure(self, stage, path, *resources, called="hooks", **more):
        """Create a configuration with one webhook that answers as ``path`` says."""
        client_config = more.pop("client_config", None) or self.hooks.client_config(path)
        body = configuration(called, webhook(client_config, *resources, **more))
        await self.client.create(KINDS[stage], body)


def bench(main):
    """Run ``main(bench)`` in real time."""

    async def run(clock):
        async with (
            hook_server() as hooks,
            HttpCaller() as caller,
            served(clock, webhooks=caller) as (cluster, server, connection),
            HttpCluster(connection, clock) as client,
            aiohttp.ClientSession(connector=make_connector(ssl=connection.tls())) as session,
        ):
            await main(Bench(clock, cluster, server, client, session, hooks))

    run_real(run)


CONFIG = "/api/v1/namespaces/default/configmaps"
