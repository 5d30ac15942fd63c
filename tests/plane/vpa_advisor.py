"""Our VPA loops beside upstream's programs: each looks at a plane once, or pass by pass, and writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec
from tests.plane.running import Plane
from tests.plane.towns import together

from kubetide.cluster import HttpCluster, HttpMetrics
from kubetide.explain.records import Record
from kubetide.objects.kinds import VPAS
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.ports.clock import Clock
from kubetide.runtime.guard import Advice, guarded_cluster
from kubetide.units.exposition import Registry
from kubetide.units.quantity import Quantity
from kubetide.vertical.admission.controller import AdmissionController
from kubetide.vertical.admission.settings import Settings as AdmissionSettings
from kubetide.vertical.flags import read_flags
from kubetide.vertical.recommender.controller import RecommenderController
from kubetide.vertical.recommender.decide import decide
from kubetide.vertical.recommender.series.quality import QualitySeries
from kubetide.vertical.recommender.settings import Settings as RecommenderSettings
from kubetide.vertical.recommender.targets.statuses import recommendations
from kubetide.vertical.updater.controller import UpdaterController
from kubetide.vertical.updater.decision import Command
from kubetide.vertical.updater.settings import Settings as UpdaterSettings
from kubetide.watching import Caches

Key = tuple[str, str]
Amounts = tuple[tuple[str, str, str, int], ...]
"""Container, bound, resource and thousandths of its unit, of everything that a VPA recommends; sorted."""


class Recorder:
    """Stores the records."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def wants_full(self, _loop):
        return False

    def write(self, record):
        self.records.append(record)


def amounts_of(recommendation) -> Amounts:
    """Return a recommendation so that two that mean the same are equal."""
    found = []
    for one in (recommendation and recommendation.container_recommendations) or ():
        for bound in ("target", "lower_bound", "upper_bound", "uncapped_target"):
            for resource, text in (getattr(one, bound) or {}).items():
                found.append((one.container_name, bound, resource, Quantity.parse(str(text)).milli_value()))
    return tuple(sorted(found))


class Histories:
    """The recommendations for each VPA in order; a repeated one counts once.

    Args:
        said: What was recommended before.
    """

    def __init__(self, said: Mapping[Key, Amounts] | None = None) -> None:
        self.of: dict[Key, list[Amounts]] = {}
        self._said = dict(said or {})

    def note(self, key: Key, amounts: Amounts) -> None:
        known = self.of.get(key)
        if amounts and amounts != (known[-1] if known else self._said.get(key, ())):
            self.of.setdefault(key, []).append(amounts)

    def taken(self) -> dict[Key, list[Amounts]]:
        """Return all of it, and begin anew with what was said last."""
        found, self.of, self._said = (
            self.of,
            {},
            {**self._said, **{key: some[-1] for key, some in self.of.items()}},
        )
        return found

    def observe(self, key, _old, new) -> None:
        """Note the status of a VPA object that has changed."""
        if new is not None:
            self.note(key, amounts_of(new.status.recommendation))


class Advisor:
    """Our recommender; ``histories`` is its result pass by pass, ``registry`` holds the series of its quality."""

    def __init__(
        self, controller: RecommenderController, clock: Clock, vpas: Iterable[VerticalPodAutoscaler]
    ) -> None:
        self._controller, self._clock = controller, clock
        self.registry = Registry()
        self._quality = QualitySeries(self.registry)
        self.histories = Histories(
            {
                (one.metadata.namespace, one.metadata.name): amounts_of(one.status.recommendation)
                for one in vpas
            }
        )

    async def tick(self) -> None:
        """Make a pass. Raises AssertionError where there was no usage."""
        await self._controller.tick()
        assert self._controller.metrics_error == ""
        assert not self._controller.outcomes.failures
        self._quality.count(self._controller)
        state = self._controller.state
        vpas = [state.vpas[key] for key in sorted(state.vpas)]
        for vpa, found in zip(vpas, recommendations(state, vpas), strict=True):
            self.histories.note(vpa.key, amounts_of(found))

    async def would_write(self) -> dict[Key, str]:
        """Return the statuses that differ from those that are there, after one more pass."""
        await self.tick()
        found = decide(self._controller.state, self._clock.now()).statuses
        return {(one.namespace, one.name): bytes(one.status).decode() for one in found}


@asynccontextmanager
async def _client(plane: Plane, clock: Clock, user: str, *, acts: bool = False):
    """Yield the client of a user, guarded unless it acts, and its caches, which run."""
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(
            HttpCluster(plane.connection_of(user, "system:masters"), clock)
        )
        cluster = http if acts else guarded_cluster(http, Advice())
        caches = Caches(cluster, clock)
        await together(stack, [caches.run()])
        yield http, cluster, caches


@asynccontextmanager
async def advisor(plane: Plane, clock: Clock, user: str, flags: Mapping[str, str], *, acts: bool = False):
    """Begin our recommender as that user; checkpoints are read in its first pass."""
    settings = read_flags(RecommenderSettings, flags)
    async with _client(plane, clock, user, acts=acts) as (http, cluster, caches):
        usage = HttpMetrics(http, clock)
        controller = RecommenderController(cluster, usage, clock, Recorder(), settings, caches=caches)
        await controller.synced()
        yield Advisor(controller, clock, caches.of(VPAS).objects.values())


async def chosen(plane: Plane, clock: Clock, flags: Mapping[str, str]) -> list[Command]:
    """Return what our updater would do to pods in its first loop, in order."""
    recorder = Recorder()
    async with _client(plane, clock, "our-updater") as (_, cluster, caches):
        settings = read_flags(UpdaterSettings, flags)
        controller = UpdaterController(cluster, clock, recorder, settings, caches=caches)
        await controller.synced()
        await controller.tick()
    assert controller.result.skipped == ""
    return [
        command
        for record in recorder.records
        for command in msgspec.json.decode(record.commands, type=list[Command])
    ]


@asynccontextmanager
async def answering(plane: Plane, clock: Clock, flags: Mapping[str, str]):
    """Yield a function from the body of a review to the answer of our admission controller."""
    async with _client(plane, clock, "our-webhook") as (_, cluster, caches):
        settings = read_flags(AdmissionSettings, flags)
        controller = AdmissionController(cluster, clock, settings, caches=caches)
        await controller.synced()
        yield lambda body: controller.handler.answer("application/json", body).body
