"""The admission controller: caches in, reviews out, and what the API server must know of it."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable

from kubetide.objects.base import Json
from kubetide.objects.kinds import MUTATING_WEBHOOKS
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, ApiError, NotFound, Withheld
from kubetide.serving import Listener
from kubetide.units.time import Duration
from kubetide.vertical.admission.controller.certificates import (
    Brought,
    CertificateError,
    Certificates,
    Made,
    Pems,
    load,
    server_context,
)
from kubetide.vertical.admission.controller.keeping import StateKeeper
from kubetide.vertical.admission.controller.server import ReviewHandler
from kubetide.vertical.admission.decide import Answer
from kubetide.vertical.admission.registration import NAME, bundle_patch, webhook_configuration
from kubetide.vertical.admission.settings import Settings
from kubetide.vertical.controller.lease import lease_namespace, own_namespace, renew_lease
from kubetide.watching import Caches

_HOLDER = "vpa-admission-controller"


class AdmissionController:
    """Gives new pods their recommendation and checks VPA objects, as upstream's admission controller does.

    A cluster whose guard refuses writes is only answered: no webhook, no lease.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        settings: Settings,
        *,
        caches: Caches | None = None,
        certificates: Certificates | None = None,
        host: str | None = None,
        identity: str = _HOLDER,
        on_problem: Callable[[Answer], None] | None = None,
    ) -> None:
        """Prepare the controller; nothing is asked before ``run``.

        Args:
            caches: Shared with other loops, and run by whoever made them; None for caches of its own.
            certificates: None for the files of the flags, or, where these are missing, for certificates made here.
            host: Address to listen on; None for all of the machine.
            identity: Who holds the lease.
            on_problem: Called once with each different problem.
        """
        self._cluster, self._clock, self._settings = cluster, clock, settings
        self._own_caches = Caches(cluster, clock) if caches is None else None
        shared = caches or self._own_caches
        assert shared is not None
        self._keeper = StateKeeper(cluster, clock, settings, shared)
        self.state = self._keeper.state
        self.handler = ReviewHandler(self.state, clock, on_problem=on_problem)
        self._certificates = certificates or _certificates(settings)
        self._context = server_context(settings)
        self._host, self._identity = host, identity
        self._listener = Listener(self.handler.application())
        self._pems: Pems | None = None
        self._registered: bytes | None = None
        self.listening = asyncio.Event()
        """Set while reviews are answered."""
        self.failures = 0
        """Times that the webhook, the lease or the certificates could not be renewed."""
        self.last_failure = ""

    @property
    def port(self) -> int:
        """Where reviews are answered; only while it listens."""
        return self._listener.address[1]

    async def run(self) -> None:
        """Answer reviews until cancelled; first when all caches are there. Raises: CertificateError, OSError."""
        async with asyncio.TaskGroup() as tasks:
            if self._own_caches is not None:
                tasks.create_task(self._own_caches.run())
            self._keeper.follow()
            await self._keeper.synced()
            self._use(self._certificates.current(self._clock.now()))
            await self._listener.listen(self._host, self._settings.port, tls=self._context)
            self.listening.set()
            try:
                tasks.create_task(self._keeper.read_scales())
                await self._keep_known()
            finally:
                self.listening.clear()
                await self._listener.close()

    # ── what the API server knows ──

    async def _keep_known(self) -> None:
        """Keep certificates, webhook and lease, every ``status-lease-update-interval``."""
        while True:
            for step in (self._renew, self._register, self._renew_lease):
                try:
                    await step()
                except Withheld:
                    continue
                except (ApiError, CertificateError) as error:
                    self.failures += 1
                    self.last_failure = str(error)
                except Exception:  # noqa: BLE001  # the rim: counted, and the next time is tried
                    self.failures += 1
                    self.last_failure = traceback.format_exc()
            await self._clock.sleep(Duration(self._settings.status_lease_update_interval))

    async def _renew(self) -> None:
        """Use new certificates; files only with ``reload-cert``."""
        if isinstance(self._certificates, Brought) and not self._settings.reload_cert:
            return
        pems = self._certificates.current(self._clock.now())
        if pems == self._pems:
            return
        if self._settings.register_webhook and self._registered is not None:
            # Clients trust the new authority before the first certificate of it is shown.
            await self._write_bundle(pems.bundle)
        self._use(pems)

    def _use(self, pems: Pems) -> None:
        load(self._context, pems)
        self._pems = pems

    async def _register(self) -> None:
        """Write the webhook configuration once, over whatever was there."""
        if not self._settings.register_webhook or self._registered is not None or self._pems is None:
            return
        body = webhook_configuration(self._settings, self._pems.bundle, own_namespace(), self.port)
        try:
            await self._cluster.create(MUTATING_WEBHOOKS, body)
        except AlreadyExists:
            patch: Json = {"metadata": body["metadata"], "webhooks": body["webhooks"]}
            await self._cluster.patch(MUTATING_WEBHOOKS, NAME, patch)
        self._registered = self._pems.bundle

    async def _write_bundle(self, bundle: bytes) -> None:
        if bundle == self._registered:
            return
        try:
            await self._cluster.patch(MUTATING_WEBHOOKS, NAME, bundle_patch(bundle), patch_type="json")
        except NotFound:
            self._registered = None  # somebody has deleted it: it is written anew
        else:
            self._registered = bundle

    async def _renew_lease(self) -> None:
        """Say that pods are answered for; the updater waits for it."""
        settings = self._settings
        home = lease_namespace(settings.status_lease_namespace)
        await renew_lease(self._cluster, settings.status_lease_name, home, self._identity, self._clock.now())


def _certificates(settings: Settings) -> Certificates:
    brought = Brought(settings)
    if brought.exist():
        return brought
    namespace, service = own_namespace(), settings.webhook_service
    hosts = [f"{service}.{namespace}.svc", f"{service}.{namespace}", service]
    if settings.webhook_address:
        hosts.append(settings.webhook_address.partition("://")[2] or settings.webhook_address)
    return Made(hosts)
