"""What is examined: the cluster of a kubeconfig, or the embedded one of a scenario after some time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

from msgspec.structs import replace

from kubetide.cluster import HttpCluster, find_connection
from kubetide.doctor.gather import gather
from kubetide.doctor.snapshot import Snapshot
from kubetide.explain.records import Record
from kubetide.loop import parse_flags
from kubetide.nodes.settings import Settings
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.errors import CloudError
from kubetide.runtime.clouds import open_cloud
from kubetide.runtime.configuration.config import RunConfig
from kubetide.runtime.server_version import version_to_follow
from kubetide.runtime.timing.clock import run_real, run_virtual
from kubetide.scheduling.filters.in_use import use_filters, with_plugins
from kubetide.simulate.scenarios.scenario import Scenario, start_of
from kubetide.simulate.world import World
from kubetide.units.steps import Steps
from kubetide.units.time import Duration, after, before, parse_duration, seconds
from kubetide.vertical.recommender.settings import Settings as RecommenderSettings

_LOOK = seconds(1)
_PATIENCE = seconds(30)
"""So long a provider that watches nodes is given for its first list."""


def snapshot_of_cluster(config: RunConfig, warn: Callable[[str], None]) -> Snapshot:
    """Return the snapshot of a kubeconfig's cluster, with the groups of its cloud where the settings name one.

    Args:
        warn: Called with a sentence where the API server's version cannot be read.

    Raises: the KubetideErrors of what the configuration names wrongly.
    """

    async def main(clock: Clock) -> Snapshot:
        run = config.run
        connection = find_connection(
            os.environ, home=Path.home(), kubeconfig=run.kubeconfig, context=run.context
        )
        async with AsyncExitStack() as stack:
            cluster = await stack.enter_async_context(
                HttpCluster(connection, clock, program="kubetide-doctor")
            )
            version = config.loops.kubernetes_version or await version_to_follow(cluster, warn)
            settings = replace(config.loops.of(Settings), kubernetes_version=version)
            cloud: Cloud | None = None
            if run.cloud_provider:
                cloud = await stack.enter_async_context(open_cloud(run, settings, clock, cluster))
                await _answering(cloud, clock)
            recommender = config.loops.of(RecommenderSettings)
            return await gather(
                cluster, cluster.skew.server_now, cloud=cloud, settings=settings, recommender=recommender
            )

    return run_real(main)


def snapshot_of_scenario(
    scenario: Scenario, *, base: Path, seed: int, played: Duration, warn: Callable[[str], None]
) -> Snapshot:
    """Return the snapshot of a scenario's cluster when it has run for so long in virtual time.

    Args:
        scenario: What is played; ``base`` is the folder that its files lie beside.
        seed: What everything random is drawn from.
        played: How long the loops run before the cluster is read.
        warn: Called with a sentence for what the run leaves out.

    Raises: ScenarioError, FlagError, TraceError.
    """
    loops = parse_flags(scenario.flags)
    settings = loops.of(Settings)
    start = start_of(scenario)
    use_filters(with_plugins(settings.scheduler_plugins))

    async def main(clock: Clock) -> Snapshot:
        # Nothing is recorded: what is asked for is the state at the end.
        world = World(scenario, clock, base=base, end=after(start, played), seed=seed, recorder=_Unrecorded())
        for notice in world.timeline.notices:
            warn(notice)
        try:
            await world.run()
            recommender = loops.of(RecommenderSettings)
            return await gather(
                world.cluster, clock.now, cloud=world.cloud, settings=settings, recommender=recommender
            )
        finally:
            await world.close()

    return run_virtual(main, start=before(start, parse_duration(scenario.warm_up)))


async def _answering(cloud: Cloud, clock: Clock) -> None:
    """Wait until the provider has looked at the nodes; one that goes on failing says so when it is asked again."""
    deadline = clock.monotonic() + _PATIENCE
    while clock.monotonic() < deadline:
        with suppress(CloudError):
            await cloud.refresh()
            return
        await clock.sleep(_LOOK)


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
