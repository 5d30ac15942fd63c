"""The subject of a report: the cluster of a kubeconfig, or the embedded one of a scenario."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from kubetide.advise.prices import Prices
from kubetide.advise.report import Report, report
from kubetide.advise.usage import UsageLog
from kubetide.advise.workloads import Workloads
from kubetide.cluster import Connection, HttpCluster, HttpMetrics, find_connection
from kubetide.cluster.metric_ports.prometheus import PrometheusClient
from kubetide.explain.records import Record
from kubetide.loop import parse_flags
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.kinds import (
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    HPAS,
    JOBS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Kind,
)
from kubetide.objects.meta import ObjectMeta
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, KubetideError, MetricsError, NotFound
from kubetide.ports.metrics import MetricSource
from kubetide.runtime.configuration.config import RunConfig
from kubetide.runtime.prometheus import prometheus_access
from kubetide.runtime.timing.clock import run_real, run_virtual
from kubetide.scheduling.filters.in_use import use_filters, with_plugins
from kubetide.simulate.scenarios.scenario import Scenario, start_of
from kubetide.simulate.world import World
from kubetide.units.steps import Steps
from kubetide.units.time import Duration, Instant, after, before, format_duration, parse_duration, seconds
from kubetide.vertical.recommender.controller.history import HistoryReader
from kubetide.vertical.recommender.facts.history import HistoryError
from kubetide.vertical.recommender.facts.views import History
from kubetide.vertical.recommender.settings import Settings

_OWNERS: Final[tuple[Kind[Any], ...]] = (
    *(DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS, CRON_JOBS, REPLICATION_CONTROLLERS),
)
_STEP: Final = seconds(15)
"""Between two questions to the metrics API of a real cluster: as often as metrics-server scrapes."""

_SCENARIO_STEP: Final = seconds(60)


class Terms(NamedTuple):
    """Settings of a report.

    Attributes:
        namespace: Only this one; empty for all.
        tell: Takes a sentence about what is being waited for.
    """

    prices: Prices
    namespace: str
    tell: Callable[[str], None]


def report_of_cluster(config: RunConfig, terms: Terms, watched: Duration) -> Report:
    """Return the report of a kubeconfig's cluster, with usage from Prometheus if the settings name one.

    Args:
        watched: Else for so long the metrics API is asked.

    Raises: the KubetideErrors of what the configuration names wrongly, and of what does not answer.
    """
    run = config.run
    connection = find_connection(os.environ, home=Path.home(), kubeconfig=run.kubeconfig, context=run.context)
    return run_real(lambda clock: report_of_connection(clock, connection, config, terms, watched))


async def report_of_connection(
    clock: Clock, connection: Connection, config: RunConfig, terms: Terms, watched: Duration
) -> Report:
    """Return the report of the cluster behind a connection. Raises: as ``report_of_cluster``."""
    run, settings = config.run, config.loops.of(Settings)
    log = UsageLog()
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(HttpCluster(connection, clock, program="kubetide-advise"))
        if run.prometheus_url:
            access, basic = prometheus_access(run)
            client = await stack.enter_async_context(
                PrometheusClient(access, clock, basic=basic, patience=run.prometheus_query_timeout)
            )
            reader = HistoryReader(client, clock, settings, terms.namespace)
            log.add_history(await _history(reader))
            source = f"Prometheus, {settings.history_length} in steps of {settings.history_resolution}"
        else:
            terms.tell(f"asking the metrics API for {format_duration(watched)}")
            await _watch(HttpMetrics(cluster, clock), clock, log, watched)
            source = f"metrics API, {format_duration(watched)}"
        found = await _Found.of(cluster, terms.namespace)
    return found.report(log, settings, terms, clock.now(), source)


async def _history(reader: HistoryReader) -> Sequence[History]:
    try:
        return await reader.read_usage()
    except HistoryError as error:
        raise KubetideError(
            f"Prometheus: {error}; name the labels with --container-namespace-label, --container-pod-name-label and "
            "--container-name-label"
        ) from error


def report_of_scenario(scenario: Scenario, terms: Terms, *, base: Path, seed: int) -> Report:
    """Return the report of a scenario's cluster after its whole duration in virtual time.

    Args:
        base: The folder that the scenario's files lie beside.
        seed: What everything random is drawn from.

    Raises: ScenarioError, FlagError, TraceError.
    """
    loops = parse_flags(scenario.flags)
    start, duration = start_of(scenario), parse_duration(scenario.duration)
    use_filters(with_plugins(loops.of(NodesSettings).scheduler_plugins))
    log = UsageLog()

    async def main(clock: Clock) -> Report:
        end = after(start, duration)
        world = World(scenario, clock, base=base, end=end, seed=seed, recorder=_Unrecorded())
        for notice in world.timeline.notices:
            terms.tell(notice)
        watching = asyncio.create_task(_watch_scenario(world.metrics, clock, log, start))
        try:
            await world.run()
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            await world.close()
        found = await _Found.of(world.cluster, terms.namespace)
        source = f"scenario {scenario.name}, {format_duration(duration)}, seed {seed}"
        return found.report(log, loops.of(Settings), terms, clock.now(), source)

    return run_virtual(main, start=before(start, parse_duration(scenario.warm_up)))


async def _watch(source: MetricSource, clock: Clock, log: UsageLog, watched: Duration) -> None:
    """Ask again and again; the first question must have an answer, a later one may fail. Raises: MetricsError."""
    end = clock.monotonic() + watched
    log.add(await source.pod_samples())
    while clock.monotonic() + _STEP <= end:
        await clock.sleep(_STEP)
        with suppress(MetricsError):
            log.add(await source.pod_samples())


async def _watch_scenario(source: MetricSource, clock: Clock, log: UsageLog, start: Instant) -> None:
    """Ask every minute; what the warm-up shows does not count."""
    while True:
        await clock.sleep(_SCENARIO_STEP)
        if clock.now() > start:
            with suppress(MetricsError):
                log.add(await source.pod_samples())


class _Found(NamedTuple):
    workloads: Workloads
    hpas: tuple[HorizontalPodAutoscaler, ...]
    notices: tuple[str, ...]

    @staticmethod
    async def of(cluster: Cluster, namespace: str) -> _Found:
        """List pods, their controllers and HPAs; only pods must be readable. Raises: ApiError."""
        pods = (await cluster.list(PODS)).items
        controllers: list[tuple[str, ObjectMeta]] = []
        notices: list[str] = []
        hpas: tuple[HorizontalPodAutoscaler, ...] = ()
        for kind in (*_OWNERS, HPAS):
            try:
                items = (await cluster.list(kind)).items
            except NotFound:
                continue  # an API that is not installed has no objects
            except ApiError as error:
                notices.append(f"{kind.plural} cannot be read: {error}")
                continue
            if kind is HPAS:
                hpas = tuple(items)
            else:
                controllers += [(kind.kind, one.metadata) for one in items]
        return _Found(Workloads(controllers, pods, namespace), hpas, tuple(notices))

    def report(self, log: UsageLog, settings: Settings, terms: Terms, now: Instant, source: str) -> Report:
        return report(
            self.workloads,
            log,
            self.hpas,
            settings=settings,
            prices=terms.prices,
            now=now,
            source=source,
            notices=self.notices,
        )


class _Unrecorded:
    """Takes records and keeps none."""

    def wants_full(self, loop: str) -> bool:
        del loop
        return False

    def write(self, record: Record) -> None:
        """Drop the record."""

    def write_in_pieces(self, record: Record, state: Iterable[bytes]) -> Steps[None]:
        """Drop the record."""
        del record, state
        yield from ()
