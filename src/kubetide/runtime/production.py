"""A process that runs the loops on a real cluster, from its configuration to its end."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol

from kubetide.acting import Elector, Fence, LeaseLost, LeaseTimes
from kubetide.clouds.registry import find_cloud
from kubetide.cluster import (
    Connection,
    HttpCluster,
    HttpCustomMetrics,
    HttpExternalMetrics,
    HttpMetrics,
    find_connection,
    plurals_of,
)
from kubetide.cluster.limits import Limits
from kubetide.cluster.metric_ports.metrics import PluralOf
from kubetide.cluster.metric_ports.prometheus import PrometheusClient, PrometheusMetrics
from kubetide.cluster.observing import RequestObserver
from kubetide.explain.records import Recorder
from kubetide.loop import Sources, loop_entries, loop_entry
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.objects.kinds import STORED_KINDS
from kubetide.objects.protobuf import MEDIA_TYPE
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.errors import ApiError
from kubetide.ports.metrics import ExternalMetricSource, SeriesSource
from kubetide.ports.plugins import Plugin
from kubetide.runtime.clouds import open_cloud
from kubetide.runtime.configuration.config import RunConfig
from kubetide.runtime.endpoints import Checks, serving
from kubetide.runtime.guard import Advice, AllOf, Guard
from kubetide.runtime.handover.tracker import HpaOwners
from kubetide.runtime.leases import Electors, LeaseThread
from kubetide.runtime.metric_sources import NamedOpener, NamedSources, load_sources, open_sources
from kubetide.runtime.notify import Notifier
from kubetide.runtime.permissions import with_hint
from kubetide.runtime.process import trim_freed_memory, tune_gc
from kubetide.runtime.prometheus import prometheus_access
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.series import ClientSeries, show_dropped, show_leases, show_process
from kubetide.runtime.server_version import with_server_version
from kubetide.runtime.service import Service
from kubetide.runtime.timing.clock import run_real
from kubetide.scheduling.filters.in_use import plugins_sentence, use_filters, with_plugins
from kubetide.units.exposition import Registry
from kubetide.units.time import minutes, seconds
from kubetide.vertical.recommender.settings import DEFAULT_ADDRESS
from kubetide.vertical.recommender.settings import Settings as RecommenderSettings

COMPONENT = "kubetide"

_DISCOVERY_PERIOD = minutes(1)
_LOOK = seconds(1)


class Log(Protocol):
    """The output of the process about its actions."""

    def begin(self, clock: Clock) -> None:
        """Set the clock of the run."""
        ...

    def recording(self, inner: Recorder) -> Recorder:
        """Return a recorder that prints each decision and passes all records on."""
        ...

    def tell(self, text: str) -> None:
        """Print information for a person."""
        ...

    def warn(self, text: str) -> None:
        """Print a warning for a person."""
        ...


def run_service(config: RunConfig, out: Path | None, log: Log) -> None:
    """Run until SIGTERM or Ctrl-C; returns when everything has ended. ``out`` is where records go; None for none.

    Raises: the KubetideErrors of what the configuration names wrongly; LeaseLost.
    """
    tune_gc()
    trim_freed_memory()
    run_real(_Process(config, out, log).main)


class _Process:
    def __init__(self, config: RunConfig, out: Path | None, log: Log) -> None:
        self._config = config
        self._log = log
        self._out = out
        self._told_to_end = False

    async def main(self, clock: Clock) -> None:
        """Open what is needed, runs the loops, and closes what it opened in the opposite order."""
        self._log.begin(clock)
        task = asyncio.current_task()
        assert task is not None, "run_real runs it as a task"
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._end, task)
        try:
            async with AsyncExitStack() as stack:
                await self._run(clock, stack)
        except (asyncio.CancelledError, LeaseLost):
            if not self._told_to_end:
                raise

    def _end(self, task: asyncio.Task[None]) -> None:
        # A second signal must not cut off the end that the first one began.
        if not self._told_to_end:
            self._told_to_end = True
            task.cancel()

    def _plugins(self) -> list[Plugin]:
        """Load what the configuration names of other packages, and return which they are. Raises: PluginNotUsable."""
        run = self._config.run
        entries = loop_entries(run.controllers)
        plugins = self._config.loops.plugins(entries)
        if not any(entry.needs_cloud for entry in entries):
            return plugins
        filters = with_plugins(self._config.loops.of(NodesSettings).scheduler_plugins)
        use_filters(filters)
        if filters.plugins:
            self._log.tell(plugins_sentence(filters))
        cloud, _ = find_cloud(run.cloud_provider)
        return [*filters.plugins, *([] if cloud is None else [cloud]), *plugins]

    async def _external(
        self, served: HttpExternalMetrics, clock: Clock, stack: AsyncExitStack, sources: Sequence[NamedOpener]
    ) -> ExternalMetricSource:
        """Return the external metrics API, with Prometheus and the sources of other packages before it."""
        others = await self._prometheus(served, clock, stack)
        if not sources:
            return others
        return NamedSources(await open_sources(sources, clock, stack), others, clock)

    async def _prometheus(
        self, served: HttpExternalMetrics, clock: Clock, stack: AsyncExitStack
    ) -> ExternalMetricSource:
        run = self._config.run
        if not run.prometheus_url:
            return served
        connection, basic = prometheus_access(run)
        client = await stack.enter_async_context(PrometheusClient(connection, clock, basic=basic))
        return PrometheusMetrics(client, clock, served)

    async def _series(self, clock: Clock, stack: AsyncExitStack) -> SeriesSource | None:
        """Return Prometheus as a source of history, where the recommender is to ask it."""
        run = self._config.run
        if (
            "recommender" not in run.controllers
            or self._config.loops.of(RecommenderSettings).uses_checkpoints
        ):
            return None
        connection, basic = prometheus_access(run, otherwise=DEFAULT_ADDRESS)
        client = PrometheusClient(connection, clock, basic=basic, patience=run.prometheus_query_timeout)
        return await stack.enter_async_context(client)

    async def _run(self, clock: Clock, stack: AsyncExitStack) -> None:
        run, log = self._config.run, self._log
        connection = find_connection(
            os.environ,
            home=Path.home(),
            kubeconfig=run.kubeconfig,
            context=run.context,
            only_own_pod=self._config.only_own_pod,
        )
        # What an earlier process recorded of this cluster is gone on behind, so that it can still be explained.
        metric_sources = load_sources(run.metric_sources)
        plugins = [*self._plugins(), *(one.plugin for one in metric_sources)]
        registry = Registry()
        recorder = log.recording(self._recorder(f"run on {connection.url}", plugins, registry, stack))
        sent = ClientSeries(registry)
        requests = sent.of(connection.url)
        leases: LeaseThread | None = None
        if run.act and run.leader_elect:
            leases = LeaseThread(partial(self._electors, connection, requests), clock)
            await stack.enter_async_context(leases)
        electors: Electors = {} if leases is None else leases.electors
        show_leases(registry, electors)
        show_process(registry)
        guard: Guard = (
            AllOf([elector.fence for elector in electors.values()])
            if run.act
            else Advice(self._config.why_advice)
        )
        cluster = await stack.enter_async_context(self._cluster(connection, clock, guard, requests))
        cloud = await self._cloud(cluster, clock, guard, stack)
        plurals = _Plurals(cluster, clock)
        owners = self._owners(cluster, clock)
        notifier = self._notifier(connection, clock, registry)
        config = await with_server_version(self._config, cluster, clock, log.warn)
        service = Service(
            config,
            cluster,
            clock,
            sources=Sources(
                HttpMetrics(cluster, clock),
                HttpCustomMetrics(cluster, clock, plural_of=plurals),
                await self._external(HttpExternalMetrics(cluster), clock, stack, metric_sources),
                await self._series(clock, stack),
            ),
            cloud=cloud,
            guard=guard,
            recorder=recorder if notifier is None else notifier.recording(recorder),
            registry=registry,
            warn=log.warn,
            seed=clock.now(),
            ahead=lambda: cluster.skew.ahead,
            owners=owners,
            requests=lambda: sent.total,
        )
        version = config.loops.kubernetes_version
        follows = f", rules of Kubernetes {version}" if version else ""
        log.tell(
            f"cluster {connection.url}{follows}; {', '.join(run.controllers)}; {guard.refusal() or 'acting'}"
        )
        await self._serve(service, registry, stack)
        # The loops end before the rest is cancelled: a lease is let go of only when nobody acts by it any more.
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(plurals.run())
                if notifier is not None:
                    tasks.create_task(notifier.run())
                if leases is not None:
                    tasks.create_task(leases.run())

                async def until_leading() -> None:
                    for lease, elector in electors.items():
                        await self._until_leading(lease, elector, clock)
                    service.begin()
                    if owners is not None:
                        tasks.create_task(owners.run())
                        await owners.known()

                await service.run(until_leading)
        except* LeaseLost as lost:
            raise lost.exceptions[0] from None

    def _recorder(
        self, origin: str, plugins: Sequence[Plugin], registry: Registry, stack: AsyncExitStack
    ) -> Recorder:
        if self._out is None:
            return NullRecorder()
        writer = RecordWriter(self._out, warn=self._log.warn, max_bytes=self._config.run.max_records_size)
        writer.start(origin=origin, plugins=plugins)
        stack.callback(writer.close)
        show_dropped(registry, lambda: writer.dropped)
        return writer

    async def _cloud(
        self, cluster: HttpCluster, clock: Clock, guard: Guard, stack: AsyncExitStack
    ) -> Cloud | None:
        """Return the cloud, None where no loop needs one."""
        run = self._config.run
        if not any(entry.needs_cloud for entry in loop_entries(run.controllers)):
            return None
        nodes = self._config.loops.of(NodesSettings)
        opened = open_cloud(run, nodes, clock, cluster, warn=self._log.warn, refusal=guard.refusal)
        return await stack.enter_async_context(opened)

    async def _serve(self, service: Service, registry: Registry, stack: AsyncExitStack) -> None:
        """Serve health checks and metrics, where an address is set."""
        run = self._config.run
        if not run.address:
            return
        checks = Checks(service.not_alive, service.not_ready, service.health_check)
        shown = service.snapshot if run.debugging_snapshot_enabled else None
        served = serving(run.address, checks, registry.text, snapshot=shown, posts=service.posts())
        address = await stack.enter_async_context(served)
        self._log.tell(f"health and metrics on http://{address}")

    def _cluster(
        self, connection: Connection, clock: Clock, guard: Guard, requests: RequestObserver
    ) -> HttpCluster:
        """Return the cluster, whose writes ask the guard once more when they have waited for their turn."""
        run = self._config.run
        limits = Limits(
            qps=run.kube_api_qps,
            burst=run.kube_api_burst,
            answer_bytes=run.max_answer_size,
            objects=run.max_list_objects,
        )
        return HttpCluster(
            connection,
            clock,
            limits=limits,
            refusal=guard.refusal,
            observer=requests,
            protobuf=run.kube_api_content_type == MEDIA_TYPE,
        )

    def _owners(self, cluster: HttpCluster, clock: Clock) -> HpaOwners | None:
        """Return who knows which HPAs are ours; None where only advice is given, also for those that others serve."""
        run, warn = self._config.run, self._log.warn
        if not run.act or "horizontal" not in run.controllers:
            return None
        return HpaOwners(
            cluster,
            clock,
            lambda text: warn(with_hint(text, run.controllers)),
            server_now=cluster.skew.server_now,
            adopt_after=run.adopt_hpas_after,
        )

    def _notifier(self, connection: Connection, clock: Clock, registry: Registry) -> Notifier | None:
        """Return what sends decisions to a webhook; None without an address."""
        run = self._config.run
        if not run.notify_url:
            return None
        return Notifier(
            run.notify_url,
            run.notify_format,
            run.notify_reasons,
            source=connection.url,
            clock=clock,
            registry=registry,
            warn=self._log.warn,
        )

    @asynccontextmanager
    async def _electors(
        self, connection: Connection, requests: RequestObserver, clock: Clock
    ) -> AsyncIterator[Electors]:
        """Yield who gets each lease, by a client of their own: nobody else's requests hold them up."""
        run = self._config.run
        times = LeaseTimes(
            run.leader_elect_lease_duration, run.leader_elect_renew_deadline, run.leader_elect_retry_period
        )
        identity = f"{socket.gethostname()}_{secrets.token_hex(16)}"
        electors: dict[str, Elector] = {}
        before: Fence | None = None
        own = run.leader_elect_resource_name
        leases = dict.fromkeys(own or loop_entry(name).lease for name in sorted(run.controllers))
        async with HttpCluster(connection, clock, observer=requests) as cluster:
            for lease in filter(None, leases):
                electors[lease] = Elector(
                    cluster,
                    clock,
                    namespace=self._config.loops.of(NodesSettings).namespace,
                    name=lease,
                    identity=identity,
                    component=COMPONENT,
                    times=times,
                    seed=clock.now(),
                    after=before,
                )
                before = electors[lease].fence
            yield electors

    async def _until_leading(self, lease: str, elector: Elector, clock: Clock) -> None:
        """Wait for a lease, and says who has it or why it cannot be had."""
        said = ""
        while not elector.fence.still_leading():
            found = f"waiting for lease {lease}"
            if elector.last_error:
                found += f": {with_hint(elector.last_error, ())}"
            elif elector.holder:
                found += f", which {elector.holder} holds"
            if found != said:
                said = found
                self._log.tell(found)
            await clock.sleep(_LOOK)
        self._log.tell(f"leading by lease {lease}")


class _Plurals:
    """How kinds are called in paths, as the server says; asked anew once in a while."""

    def __init__(self, cluster: HttpCluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._known: PluralOf = plurals_of(STORED_KINDS)

    def __call__(self, api_version: str, kind: str) -> str | None:
        return self._known(api_version, kind)

    async def run(self) -> None:
        while True:
            with suppress(ApiError):  # the caches report a server that does not answer
                self._known = plurals_of([*STORED_KINDS, *await self._cluster.kinds()])
            await self._clock.sleep(_DISCOVERY_PERIOD)
