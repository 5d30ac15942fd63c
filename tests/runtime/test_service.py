"""The messages of a service about its own health, and about missing rights."""

from __future__ import annotations

import asyncio

import pytest
from tests.horizontal.running import START, World
from tests.runtime.services import service_of
from tests.tasks import stop

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import (
    HPAS,
    PODS,
)
from kubetide.ports.errors import Forbidden, Unavailable
from kubetide.runtime.timing.clock import run_virtual
from kubetide.runtime.unread_caches import UnreadCaches
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds


class Refusing(EmbeddedCluster):
    """Pods may not be listed."""

    async def list(self, kind, **where):
        if kind is PODS:
            raise Forbidden(
                'pods is forbidden: User "system:serviceaccount:kubetide:kubetide" cannot list resource "pods" '
                'in API group "" at the cluster scope'
            )
        return await super().list(kind, **where)


def health_of(cluster_class):
    """Return the health answers: at first, after ten minutes of waiting, and after forty of running."""

    async def main(clock):
        said = []
        cluster = cluster_class(Store(), clock, seed=1)
        service = service_of(clock, cluster, said)
        ask = lambda: (service.not_ready(), service.not_alive(), service.health_check())  # noqa: E731
        found = [ask()]
        await clock.sleep(minutes(10))
        found.append(ask())
        task = asyncio.create_task(service.run())
        await clock.sleep(minutes(40))
        found.append(ask())
        await stop(task)
        return found, said

    return run_virtual(main, start=START)


def test_who_waits_for_a_turn_is_well():
    """A standby has no caches and ends no ticks, for as long as it takes; it must not be killed for that."""
    found, said = health_of(EmbeddedCluster)
    assert found == [("", "", "")] * 3
    assert said == []


class Outage(EmbeddedCluster):
    """While it is down, nobody says which kinds are served; while it cannot be read at all, lists fail."""

    down = unread = False

    async def list(self, kind, **where):
        if self.unread:
            raise Unavailable("nobody answers")
        return await super().list(kind, **where)

    async def kinds(self):
        while self.down:
            await self.clock.sleep(seconds(1))
        return await super().kinds()


@pytest.mark.parametrize("unread", [True, False])
def test_a_tick_that_hangs_is_held_against_a_loop_unless_nothing_can_be_read(unread):
    """An hour in which a tick waits for an answer: a restart may help only where the caches could be read."""

    async def main(clock):
        world = World(clock)
        cluster = world.cluster = Outage(world.cluster.rest.store, clock, seed=1)
        cluster.clock = clock
        await world.add(replicas=2)
        # A kind that the loop does not know, so that a tick asks for it.
        target = {"apiVersion": "example.com/v1", "kind": "Fleet", "name": "fleet"}
        fleet = builders.hpa("fleet", "fleet", extra={"spec": {"scaleTargetRef": target}})
        await cluster.create(HPAS, fleet, namespace="default")
        world.usage.milli = 400
        service = service_of(clock, cluster, [], world.usage)
        task = asyncio.create_task(service.run())
        cluster.down, alive = True, []
        await clock.sleep(minutes(1))
        cluster.unread = unread
        if unread:
            cluster.expire_watches()
        for _ in range(60):
            await clock.sleep(minutes(1))
            alive.append(service.not_alive())
        checked = service.health_check()
        ready = service.not_ready()
        cluster.down = cluster.unread = False
        await clock.sleep(minutes(2))
        assert (service.not_ready(), service.not_alive(), service.health_check()) == ("", "", "")
        assert await world.replicas() == 8
        await stop(task)
        return alive, ready, checked

    alive, ready, checked = run_virtual(main, start=START)
    assert checked.startswith("Error: last activity more 1h")
    if unread:
        assert alive == [""] * 60
        assert ready.startswith("cannot read ")
    else:
        assert alive[0] == ready == ""
        assert alive[-1].startswith("the horizontal loop has begun and ended no tick for 1h")


class Slow(EmbeddedCluster):
    """A change of a size takes two seconds."""

    async def replace_scale(self, *args, **where):
        self.begun.set()
        await self.clock.sleep(seconds(2))
        return await super().replace_scale(*args, **where)


def test_what_is_being_written_at_the_end_is_recorded():
    """SIGTERM in the middle of a tick: else nobody could find out later who has changed the size, and why."""

    async def main(clock):
        world = World(clock)
        cluster = world.cluster = Slow(world.cluster.rest.store, clock, seed=1)
        cluster.clock, cluster.begun = clock, asyncio.Event()
        await world.add(replicas=2)
        world.usage.milli = 400
        service = service_of(clock, cluster, [], world.usage, recorder=world.recorder)
        task = asyncio.create_task(service.run())
        await cluster.begun.wait()
        begun = clock.monotonic()
        await stop(task)
        return await world.replicas(), world.recorder.lines, clock.monotonic() - begun

    replicas, records, took = run_virtual(main, start=START)
    assert replicas == 4
    assert b"SuccessfulRescale" in records[-1]
    assert took < seconds(3)


def test_an_api_server_that_is_away_is_one_line_and_so_is_its_return():
    """All caches fail for one cause: a line for each kind would hide that."""

    async def main(clock):
        said = []
        cluster = Outage(Store(), clock, seed=1)
        cluster.clock = clock
        task = asyncio.create_task(service_of(clock, cluster, said).run())
        await clock.sleep(minutes(1))
        cluster.unread = True
        cluster.expire_watches()
        await clock.sleep(minutes(5))
        cluster.unread = False
        await clock.sleep(minutes(5))
        await stop(task)
        return said

    first, *more = run_virtual(main, start=START)
    assert first.startswith("cannot read ")
    assert first.endswith(": nobody answers")
    assert " and " in first
    assert len(more) == 1
    assert more[0].endswith("can be read again")


def test_requests_that_fail_alike_are_one_line():
    """The path is another one for each kind; of one kind alone it is said."""
    unread = UnreadCaches()
    away = "cannot connect to 10.0.0.1:443: connection refused"
    kinds = ["pods", "nodes", "jobs.batch", "namespaces", "deployments.apps"]
    errors = [(kind, f"GET https://10.0.0.1:443/api/v1/{kind}: {away}") for kind in kinds]
    assert unread.sentences(errors) == [f"cannot read pods, nodes, jobs.batch and 2 more kinds: {away}"]
    assert unread.sentences(errors) == []
    errors[0] = ("pods", "pods is forbidden")
    assert unread.sentences(errors) == ["cannot read pods: pods is forbidden"]
    assert unread.sentences([(kind, "") for kind in kinds[:2]]) == ["pods and nodes can be read again"]
    assert unread.sentences(errors[1:2]) == [f"cannot read nodes: {errors[1][1]}"]


def test_a_refusal_names_what_is_missing_and_who_grants_it():
    """A cache that may not be read: not ready, no failure that a restart would fix, and one sentence with the role."""
    found, said = health_of(Refusing)
    assert found[:2] == [("", "", "")] * 2
    unwell = "Error: last activity more 40m0s ago, last success more than 40m0s ago"
    assert found[2] == ("no first list yet of pods", "", unwell)
    (sentence,) = said
    assert sentence == (
        'cannot read pods: pods is forbidden: User "system:serviceaccount:kubetide:kubetide" cannot list resource '
        '"pods" in API group "" at the cluster scope; ClusterRole kubetide-horizontal of deploy/ grants it; '
        "the horizontal loop cannot work without them"
    )
