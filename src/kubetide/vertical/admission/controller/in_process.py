"""The admission controller inside the process of an embedded cluster: no socket, no certificate, virtual time.

What it answers is what the controller over HTTPS answers; so a simulated pod is changed as a real one would be.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from kubetide.objects.kinds import MUTATING_WEBHOOKS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists
from kubetide.units.time import Duration
from kubetide.vertical.admission.controller.keeping import StateKeeper
from kubetide.vertical.admission.controller.server import ReviewHandler
from kubetide.vertical.admission.registration import webhook_configuration
from kubetide.vertical.admission.settings import Settings
from kubetide.vertical.controller.lease import lease_namespace, renew_lease
from kubetide.watching import Caches

_HOLDER = "vpa-admission-controller"


class InProcessCaller:
    """Answers the API server's calls directly; the embedded cluster takes it as its caller of webhooks.

    ``serve`` gives it the controller, which needs the cluster, which needs the caller.
    """

    def __init__(self) -> None:
        self._handler: ReviewHandler | None = None

    def serve(self, handler: ReviewHandler) -> None:
        """Answer with this handler from now on."""
        self._handler = handler

    async def call(self, address: object, body: bytes) -> bytes:  # noqa: ARG002  # there is one webhook only
        """Return the body of the answer. Raises: RuntimeError before ``serve``."""
        if self._handler is None:
            raise RuntimeError("the admission controller does not answer yet")
        return self._handler.answer("application/json", body).body


class InProcessAdmission:
    """Keeps the state, registers the webhook, renews the lease."""

    def __init__(
        self, cluster: Cluster, clock: Clock, settings: Settings, caller: InProcessCaller, caches: Caches
    ) -> None:
        self._cluster, self._clock, self._settings = cluster, clock, settings
        self._keeper = StateKeeper(cluster, clock, settings, caches)
        self.handler = ReviewHandler(self._keeper.state, clock)
        caller.serve(self.handler)

    async def run(self) -> None:
        """Answer until cancelled; the caches are run by whoever made them."""
        self._keeper.follow()
        await self._keeper.synced()
        body = webhook_configuration(self._settings, b"", "", 443)
        body["webhooks"][0]["clientConfig"] = {"url": "https://vpa-webhook.in-process"}
        with suppress(AlreadyExists):
            await self._cluster.create(MUTATING_WEBHOOKS, body)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keeper.read_scales())
            while True:
                home = lease_namespace(self._settings.status_lease_namespace)
                name = self._settings.status_lease_name
                await renew_lease(self._cluster, name, home, _HOLDER, self._clock.now())
                await self._clock.sleep(Duration(self._settings.status_lease_update_interval))
