"""A plane with VPA objects, their pods and played usage, on which both recommenders make the same passes."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random

from tests.plane.played_usage import Play, playing
from tests.plane.running import Plane
from tests.plane.towns import together
from tests.plane.vpa_advisor import Advisor, Histories
from tests.plane.vpa_objects import killed, put_all

from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, PODS, VPA_CHECKPOINTS, VPAS
from kubetide.ports.clock import Clock
from kubetide.ports.errors import NotFound
from kubetide.units.time import Instant, milliseconds, minutes, parse_rfc3339, seconds
from kubetide.vertical.definitions import definitions
from kubetide.watching import Informer

UPSTREAM, OURS = "vpa-recommender", "ours"
_PATIENCE = seconds(180)
_POLL = milliseconds(20)


class Stage:
    """The part of a stage that a test sees.

    Attributes:
        cluster: The administrator's client.
        pods, vpas, checkpoints: Up-to-date caches of all of them.
        written: The contents of the statuses of VPA objects.
        play: The usage.
    """

    def __init__(self, plane: Plane, clock: Clock, cluster: HttpCluster) -> None:
        self.plane, self.clock, self.cluster = plane, clock, cluster
        self.pods = Informer(cluster, PODS, clock)
        self.vpas = Informer(cluster, VPAS, clock)
        self.checkpoints = Informer(cluster, VPA_CHECKPOINTS, clock)
        self.written = Histories()
        self.vpas.on_change(self.written.observe)
        self.play: Play

    async def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds. Raises AssertionError when time is up."""
        deadline = self.clock.monotonic() + _PATIENCE
        while not holds():
            assert self.clock.monotonic() < deadline, f"waited in vain: {what}; asked: {self.play.asked}"
            await self.clock.sleep(_POLL)

    async def play_on(self, ours: Advisor, first: int, last: int) -> None:
        """Let both see these steps: upstream pass by pass in its own time, ours as fast as it can."""
        self.play.last = last
        for user in (UPSTREAM, OURS):
            self.play.asked[user] = first
        while self.play.asked[OURS] <= last:
            await ours.tick()
        await self.passes(last + 1 - self.play.asked[UPSTREAM] + 1)

    async def passes(self, count: int) -> None:
        """Wait until upstream has ended that many passes that begin from now on."""
        # The first question may be on its way, and the one after the last says that the last pass is over.
        asked = self.play.asked[UPSTREAM] + count
        await self.until("upstream makes its passes", lambda: self.play.asked[UPSTREAM] > asked)

    async def kill(self, rng: Random, count: int, step: int) -> None:
        """Let containers of random pods be killed for their memory, in the last second of a step's minute.

        Upstream receives all of them in one pass: it waits for its usage meanwhile.
        """
        self.play.held.clear()
        await self.until("upstream asks", lambda: UPSTREAM in self.play.waiting)
        at = Instant(self.play.time_of(step) + seconds(59))
        for pod in rng.sample(self.play.pods, count):
            meta = pod.metadata
            status = killed(pod, rng.choice(pod.spec.containers).name, at)
            where = {"namespace": meta.namespace, "subresource": "status"}
            await self.cluster.patch(PODS, meta.name, {"status": status}, **where)
        await self.clock.sleep(milliseconds(300))
        self.play.held.set()

    async def checkpointed(self) -> None:
        """Wait until each checkpoint has been written again."""
        now = Instant(self.clock.now() + seconds(1))
        await self.until(
            "checkpoints are written",
            lambda: all(
                parse_rfc3339(one.status.last_update_time) >= now for one in self.checkpoints.objects.values()
            ),
        )


@asynccontextmanager
async def stage_on(plane: Plane, clock: Clock, *, seed: int, count: int, steps: int):
    """Put that many VPA objects, drawn from the seed, on a plane on which nobody works, and let usage be played."""
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(HttpCluster(plane.connection, clock))
        stage = Stage(plane, clock, cluster)
        for body in definitions():
            await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
        for kind in (VPAS, VPA_CHECKPOINTS):
            await _served(stage, kind)
        await put_all(cluster, Random(seed), count, clock.now())
        informers = (stage.pods, stage.vpas, stage.checkpoints)
        await together(stack, [one.run() for one in informers])
        for one in informers:
            await one.synced()
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(plane.folder / "server.crt", plane.folder / "server.key")
        pods = [stage.pods.objects[key] for key in sorted(stage.pods.objects)]
        stage.play = Play(pods, Instant(clock.now() - minutes(steps + 2)), seed)
        await stack.enter_async_context(playing(cluster, clock, tls, stage.play))
        yield stage


async def _served(stage: Stage, kind) -> None:
    while True:
        try:
            await stage.cluster.list(kind)
        except NotFound:
            await stage.clock.sleep(_POLL)
        else:
            return
