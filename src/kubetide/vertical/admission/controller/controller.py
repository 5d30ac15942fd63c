"""The admission controller: reads caches, answers reviews, and registers at the API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from kubetide.loop import Answers, BaseLoop
from kubetide.plan.board import Board
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, Withheld
from kubetide.serving import Listener
from kubetide.units.time import Duration, before, minutes
from kubetide.vertical.admission.controller.certificates import (
    CertificateError,
    Certificates,
    Given,
    Made,
    Pems,
    check,
    load,
    server_context,
)
from kubetide.vertical.admission.controller.server import ReviewHandler
from kubetide.vertical.admission.controller.state_keeper import StateKeeper
from kubetide.vertical.admission.controller.webhook import Webhook
from kubetide.vertical.admission.decide import Answer
from kubetide.vertical.admission.new_pods import NewPods
from kubetide.vertical.admission.registration import (
    IN_PROCESS,
    read_labels,
    webhook_configuration,
)
from kubetide.vertical.admission.settings import Settings
from kubetide.vertical.controller.lease import (
    PROGRAM,
    is_renewed,
    lease_namespace,
    own_name,
    own_namespace,
    renew_lease,
)
from kubetide.watching import Caches

LOOP = "admission"

_SCALES_EVERY = minutes(1)
_FRESH = 2
"""So many intervals after its last renewal nobody renews the lease any more."""


class AdmissionController(BaseLoop):
    """Applies recommendations to new pods and checks VPA objects, as upstream's admission controller does.

    Reviews are answered as they come; a tick keeps certificate, webhook and lease, and announces what new pods
    will ask for. A cluster whose guard refuses
    writes is only answered: no webhook, no lease.
    """

    name = LOOP

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        settings: Settings,
        *,
        caches: Caches,
        certificates: Certificates | None = None,
        host: str | None = None,
        on_problem: Callable[[str], None] = lambda _: None,
        answers: Answers | None = None,
        board: Board | None = None,
    ) -> None:
        """Prepare the controller; it sends no request before the first tick.

        Args:
            caches: Shared with other loops; the process updates them.
            certificates: None for the files of the flags, or, where these are missing, for certificates made here.
            host: Address to listen on; None for all of the machine.
            on_problem: Called once with each different problem.
            answers: Calls the webhook inside of the process: nothing listens, and there is no certificate.
            board: Where what new pods will ask for is announced; None where no other loop reads it.
        """
        super().__init__()
        self._cluster, self._clock, self._settings = cluster, clock, settings
        self._keeper = StateKeeper(cluster, clock, settings, caches)
        self.state = self._keeper.state
        self._board, self._new_pods = board, NewPods(self.state)
        self._on_problem, self._told = on_problem, set[str]()
        self._failed = set[str]()
        """What was reported since the last tick without a failure."""
        self.handler = ReviewHandler(self.state, clock, on_problem=self._tell_answer)
        self._certificates = certificates
        self._host, self._answers = host, answers
        # A simulated run says the same on every machine.
        self._identity = own_name() if answers is None else PROGRAM
        self._listener: Listener | None = None
        self._context = None if answers is not None else server_context(settings)
        self._pems: Pems | None = None
        self._webhook = Webhook(cluster, self._another_answers, lambda said: on_problem(f"admission: {said}"))
        self._scales_at: int = 0
        self.listening = asyncio.Event()
        """Set while reviews are answered."""
        self.failures = 0
        """Times that the webhook, the lease or the certificates could not be renewed."""
        self.last_failure = ""

    @property
    def period(self) -> Duration:
        """The time between two renewals of the lease."""
        return self._settings.status_lease_update_interval

    @property
    def port(self) -> int:
        """The port of reviews; only while the listener runs."""
        assert self._listener is not None, "nothing listens"
        return self._listener.address[1]

    async def synced(self) -> None:
        """Return once the caches for reviews are synced, or refused."""
        self._keeper.follow()
        await self._keeper.synced()

    async def tick(self) -> None:
        """Maintain listener, certificates, webhook and lease. Raises: CertificateError, OSError."""
        failures = self.failures
        await self._read_scales()
        if not self.listening.is_set():
            await self._listen()
        await self._try(self._renew)
        # The updater evicts pods while the lease is fresh: they must come back through the webhook.
        if await self._try(self._keep_webhook) and self._is_asked():
            await self._try(self._renew_lease)
            self._announce_new_pods()
        if self._failed and self.failures == failures and self._is_asked():
            self._failed.clear()
            self._on_problem("admission: certificates, webhook configuration and lease are renewed again")

    async def _try(self, step: Callable[[], Awaitable[None]]) -> bool:
        """Return whether a step came to its end; what it fails by is counted, and the next tick tries it again."""
        try:
            await step()
        except Withheld:
            return False
        except (ApiError, CertificateError) as error:
            self.failures += 1
            self.last_failure = str(error)
            if self.last_failure not in self._failed:
                self._failed.add(self.last_failure)
                self._on_problem(f"admission: {error}")
            return False
        return True

    async def close(self) -> None:
        """Stop listening."""
        self.listening.clear()
        if self._listener is not None:
            await self._listener.close()

    async def _read_scales(self) -> None:
        """Read the scales of custom targets now and then."""
        now = self._clock.monotonic()
        if now >= self._scales_at:
            self._scales_at = now + _SCALES_EVERY
            await self._keeper.read_scales()

    async def _listen(self) -> None:
        if self._answers is not None:
            self._answers.serve(lambda body: self.handler.answer("application/json", body).body)
        else:
            try:
                self._certificates = self._certificates or _certificates(self._settings)
                self._use(self._certificates.current(self._clock.now()))
                listener = Listener(self.handler.application())
                await listener.listen(self._host, self._settings.port, tls=self._context)
            except (CertificateError, OSError) as error:
                self._tell(f"admission: pods are not answered for: {error}")
                raise
            self._listener = listener
        self.listening.set()

    def _is_asked(self) -> bool:
        """Return whether reviews come to this process, as far as it knows."""
        return self._webhook.leads_here or not self._settings.register_webhook

    def _announce_new_pods(self) -> None:
        if self._board is not None and self._board.asks_new_pods:
            self._new_pods.update()
            self._board.new_pods = self._new_pods.requests

    def _tell_answer(self, answer: Answer) -> None:
        self._on_problem(f"admission: {answer.problem}")

    def _tell(self, problem: str) -> None:
        if problem not in self._told:
            self._told.add(problem)
            self._on_problem(problem)

    # ── what the API server knows ──

    async def _renew(self) -> None:
        """Use new certificates; files only with ``reload-cert``."""
        if self._certificates is None:
            return
        if isinstance(self._certificates, Given) and not self._settings.reload_cert:
            return
        pems = self._certificates.current(self._clock.now())
        if pems == self._pems:
            return
        check(pems)
        # Clients trust the new authority before the first certificate of it is shown.
        if self._pems is None or pems.bundle != self._pems.bundle:
            await self._webhook.write_bundle(pems.bundle)
        self._use(pems)

    def _use(self, pems: Pems) -> None:
        assert self._context is not None, "only where somebody listens"
        load(self._context, pems)
        self._pems = pems

    async def _keep_webhook(self) -> None:
        """Write the webhook configuration once, over whatever was there, and again where somebody has taken it away."""
        in_process = self._answers is not None
        if not self._settings.register_webhook or (in_process and self._webhook.is_written):
            return
        bundle, labels = b"" if self._pems is None else self._pems.bundle, self._webhook_labels()
        if in_process:
            body = webhook_configuration(self._settings, bundle, "", 443, labels)
            body["webhooks"][0]["clientConfig"] = {"url": IN_PROCESS}
        else:
            body = webhook_configuration(self._settings, bundle, own_namespace(), self.port, labels)
        # Bundles of certificates that somebody else makes may be somebody else's, too, as cert-manager's.
        await self._webhook.keep(body, compare_bundle=isinstance(self._certificates, Made))

    def _webhook_labels(self) -> dict[str, str]:
        """Return the labels of the webhook; none where they cannot be read, as with upstream."""
        try:
            return read_labels(self._settings.webhook_labels)
        except ValueError as error:
            self._tell(f"admission: the webhook is registered without labels: {error}")
            return {}

    async def _another_answers(self) -> bool:
        """Return whether the lease is fresh: another renews it, or this process did a moment ago."""
        settings = self._settings
        home = lease_namespace(settings.status_lease_namespace)
        long_ago = before(self._clock.now(), Duration(_FRESH * settings.status_lease_update_interval))
        return await is_renewed(self._cluster, settings.status_lease_name, home, after=long_ago)

    async def _renew_lease(self) -> None:
        """Say that pods are answered for; the updater waits for it."""
        settings = self._settings
        home = lease_namespace(settings.status_lease_namespace)
        await renew_lease(
            self._cluster,
            settings.status_lease_name,
            home,
            identity=self._identity,
            every=settings.status_lease_update_interval,
            now=self._clock.now(),
        )


def _certificates(settings: Settings) -> Certificates:
    given = Given(settings)
    if given.exist():
        return given
    namespace, service = own_namespace(), settings.webhook_service
    hosts = [f"{service}.{namespace}.svc", f"{service}.{namespace}", service]
    if settings.webhook_address:
        hosts.append(settings.webhook_address.partition("://")[2] or settings.webhook_address)
    return Made(hosts)
