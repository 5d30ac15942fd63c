"""The controller on an embedded cluster in virtual time."""

from __future__ import annotations

import asyncio

import pytest
from tests.loops import run_alone
from tests.schedules.worlds import START, cron
from tests.tasks import stop

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.loop import Parts
from kubetide.objects.kinds import (
    CRON_HPAS,
    DEPLOYMENTS,
    EVENTS,
    HPAS,
    HPCS,
    SCALED_OBJECTS,
    STORED_KINDS,
    TIME_TABLE_KINDS,
    TKESTACK_CRON_HPAS,
    Kind,
)
from kubetide.plan.board import Board, Workload
from kubetide.ports.errors import Unavailable
from kubetide.runtime.timing.clock import run_virtual
from kubetide.schedules.core import ALGORITHM
from kubetide.schedules.entry import ENTRY
from kubetide.schedules.settings import Settings
from kubetide.testing import builders
from kubetide.units.time import hours, seconds
from kubetide.watching import Caches

ROLLOUTS = Kind(
    "argoproj.io", "v1alpha1", "Rollout", "rollouts", DEPLOYMENTS.model, subresources=("status", "scale")
)
REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


class Records:
    """All records, one in forty with the whole state."""

    def __init__(self):
        self.lines = []

    def wants_full(self, loop):
        return len(self.lines) % 40 == 0

    def write(self, record):
        self.lines.append(record)


class SlowCluster(EmbeddedCluster):
    """Takes a second to say which kinds are served, and says it only from the second time on."""

    def __init__(self, store, clock, **more):
        super().__init__(store, clock, **more)
        self.asked, self.clock = 0, clock

    async def kinds(self):
        self.asked += 1
        await self.clock.sleep(seconds(1))
        if self.asked == 1:
            raise Unavailable("try again")
        return await super().kinds()


class DownCluster(EmbeddedCluster):
    """Refuses to write statuses of HorizontalPodCronscalers while it is down."""

    down = True

    async def patch(self, kind, name, patch, **how):
        if self.down and kind is HPCS:
            raise Unavailable("try again")
        return await super().patch(kind, name, patch, **how)


class World:
    def __init__(self, clock, cluster=EmbeddedCluster):
        self.clock, self.board, self.records = clock, Board(), Records()
        self.cluster = cluster(Store((*STORED_KINDS, *TIME_TABLE_KINDS, ROLLOUTS)), clock, seed=1)
        self.caches = Caches(self.cluster, clock)
        parts = Parts(
            cluster=self.cluster, clock=clock, recorder=self.records, caches=self.caches, board=self.board
        )
        self.loop = ENTRY.make(parts, Settings(schedules_zone="Europe/Berlin"))

    async def add(self, kind, name, **spec):
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}
        await self.cluster.create(kind, body, namespace="default")

    async def add_web(self, replicas=1):
        body = builders.deployment("web", replicas=replicas)
        await self.cluster.create(DEPLOYMENTS, body, namespace="default")

    async def replicas(self):
        return (await self.cluster.get(DEPLOYMENTS, "web", namespace="default")).spec.replicas

    async def events(self):
        found = (await self.cluster.list(EVENTS, namespace="default")).items
        return [(one.involved_object.name, one.type, one.reason) for one in found]

    async def run(self, until):
        task = asyncio.create_task(run_alone(self.loop, self.caches, self.clock))
        await self.clock.sleep(until - (self.clock.now() - START))
        await stop(task)
        assert self.loop.health.bugs == 0, self.loop.health.last_failure


def play(story, **how):
    return run_virtual(lambda clock: story(World(clock, **how)), start=START)


@pytest.mark.parametrize("kind", ["Deployment", "HorizontalPodAutoscaler"])
def test_what_is_announced_has_the_kind_that_the_cluster_writes(kind):
    """A table may write its target's kind in lower case; the node loop looks for owners of pods, which do not."""

    async def story(world):
        await world.add_web()
        await world.cluster.create(HPAS, builders.hpa("web", "web"), namespace="default")
        target = {**REFERENCE, "kind": kind.lower()}
        if kind != "Deployment":
            target["apiVersion"] = "autoscaling/v2"
        crons = [{"name": "day", "schedule": "0 0 8 * * *", "minSize": 3, "maxSize": 9, "targetSize": 6}]
        await world.add(HPCS, "day", scaleTarget=target, crons=crons)
        await world.run(hours(6))
        assert [one.workload for one in world.board.intents()] == [Workload("default", kind, "web")]

    play(story)


def test_a_deployment_and_an_hpa_follow_their_tables():
    """At 08:00 in Berlin the Deployment has its size and the HPA its bounds, with events and a status; replay agrees."""

    async def story(world):
        await world.add_web()
        await world.cluster.create(
            HPAS, builders.hpa("web", "web", min_replicas=1, max_replicas=5), namespace="default"
        )
        jobs = [{"name": "up", "schedule": "0 0 8 * * *", "targetSize": 6}]
        await world.add(CRON_HPAS, "sizes", scaleTargetRef=REFERENCE, jobs=jobs)
        target = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "web"}
        bounds = [{"name": "day", "schedule": "0 0 8 * * *", "minSize": 3, "maxSize": 9}]
        await world.add(HPCS, "bounds", scaleTarget=target, crons=bounds)
        await world.run(hours(6))
        assert await world.replicas() == 1
        of_deployment, of_hpa = world.board.intents()
        assert (of_deployment.workload, of_deployment.replicas) == (
            Workload("default", "Deployment", "web"),
            6,
        )
        assert (of_hpa.workload.kind, of_hpa.replicas) == ("HorizontalPodAutoscaler", 3)
        assert of_deployment.due == of_hpa.due == START + hours(7)
        await world.run(hours(8))
        assert await world.replicas() == 6
        hpa = await world.cluster.get(HPAS, "web", namespace="default")
        assert (hpa.spec.min_replicas, hpa.spec.max_replicas) == (3, 9)
        [condition] = (await world.cluster.get(CRON_HPAS, "sizes", namespace="default")).status.conditions
        assert (condition.state, condition.last_probe_time) == ("Succeed", "2026-03-02T07:00:00Z")
        status = (await world.cluster.get(HPCS, "bounds", namespace="default")).status
        assert status.last_schedule_time == "2026-03-02T07:00:00Z"
        assert ("sizes", "Normal", "Succeed") in await world.events()
        return world.records.lines

    lines = play(story)
    core = ALGORITHM.core()
    for record in lines:
        core.apply(bytes(record.state), full=record.full)
        assert core.decide(record.now) == bytes(record.commands)
        assert core.absorb(bytes(record.outcomes), record.now) == bytes(record.result)


def test_a_loop_that_starts_anew_reads_what_happened_from_the_statuses():
    """After a restart nothing is done twice, and what was missed is done at once."""

    async def story(world):
        await world.add_web()
        crons = [
            {"schedule": "0 8 * * *", "targetReplicas": 6},
            {"schedule": "0 20 * * *", "targetReplicas": 2},
        ]
        await world.add(TKESTACK_CRON_HPAS, "web", scaleTargetRef=REFERENCE, crons=crons)
        await world.run(hours(8))
        await world.cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 4}}, namespace="default")
        world.loop.start_anew()
        await world.run(hours(9))
        assert await world.replicas() == 4
        await world.clock.sleep(hours(12))
        world.loop.start_anew()
        await world.run(hours(21) + seconds(20))
        assert await world.replicas() == 2

    play(story)


def test_a_target_that_is_not_there_is_said_and_stops_no_other():
    """An object whose target is missing gets events; the ScaledObject beside it is followed."""

    async def story(world):
        await world.add_web()
        missing = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "gone", "namespace": "default"}
        await world.add(HPCS, "gone", scaleTarget=missing, crons=[cron("up", "0 0 2 * * *", 3)])
        window = {"timezone": "UTC", "start": "0 1 * * *", "end": "0 3 * * *", "desiredReplicas": "5"}
        triggers = [{"type": "cron", "metadata": window}]
        await world.add(
            SCALED_OBJECTS, "web", scaleTargetRef={"name": "web"}, minReplicaCount=1, triggers=triggers
        )
        await world.run(hours(2))
        assert await world.replicas() == 5
        assert ("gone", "Warning", "FailedRescale") in await world.events()
        found = await world.cluster.get(SCALED_OBJECTS.untyped, "web", namespace="default")
        assert found["status"]["externalMetricNames"] == ["s0-cron-UTC-01xxx-03xxx"]
        await world.run(hours(4))
        assert await world.replicas() == 1

    play(story)


def test_rules_that_are_due_together_are_made_at_once():
    """The later listed of two holds from the same second on, and neither fails on account of the other's write."""

    async def story(world):
        await world.add_web()
        crons = [cron("a", "0 0 2 * * *", 9), cron("b", "0 0 2 * * *", 3)]
        await world.add(HPCS, "both", scaleTarget={**REFERENCE, "namespace": "default"}, crons=crons)
        await world.run(hours(1) + seconds(5))
        assert await world.replicas() == 3
        found = await world.events()
        assert [one for one in found if one[2] == "FailedRescale"] == []
        assert [one for one in found if one[2] == "SuccessfulRescale"]

    play(story)


def test_an_hpa_that_scales_an_hpa_is_said_and_stops_no_other():
    """An HPA may name itself as its target: the table of it gets an event, that of the Deployment is followed."""

    async def story(world):
        await world.add_web()
        body = builders.hpa("odd", "odd", min_replicas=1, max_replicas=5)
        target = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "odd"}
        body["spec"]["scaleTargetRef"] = target
        await world.cluster.create(HPAS, body, namespace="default")
        bounds = [{"name": "day", "schedule": "0 0 2 * * *", "minSize": 3, "maxSize": 9}]
        await world.add(HPCS, "odd", scaleTarget=target, crons=bounds)
        sizes = [cron("up", "0 0 2 * * *", 6)]
        await world.add(HPCS, "web", scaleTarget={**REFERENCE, "namespace": "default"}, crons=sizes)
        await world.run(hours(2))
        assert await world.replicas() == 6
        assert ("odd", "Warning", "FailedRescale") in await world.events()

    play(story)


def test_kinds_that_are_found_late_are_found_for_all_who_wait():
    """Two targets of a kind that has to be looked up, at first in vain, are changed within two tries."""

    async def story(world):
        for name in ("one", "two"):
            target = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": name}
            body = {
                **builders.deployment(name, replicas=1),
                "apiVersion": target["apiVersion"],
                "kind": "Rollout",
            }
            await world.cluster.create(ROLLOUTS, body, namespace="default")
            await world.add(HPCS, name, scaleTarget=target, crons=[cron("up", "0 0 2 * * *", 6)])
        await world.run(hours(1) + seconds(14))
        for name in ("one", "two"):
            found = await world.cluster.get(ROLLOUTS, name, namespace="default")
            assert found.spec.replicas == 6

    play(story, cluster=SlowCluster)


def test_a_status_that_could_not_be_written_goes_to_no_other_object_of_the_name():
    """An object that is deleted and made anew says nothing of what the first one did."""

    async def story(world):
        await world.add_web()
        target = {**REFERENCE, "namespace": "default"}
        for hour in (7, 8):
            await world.add(HPCS, "sizes", scaleTarget=target, crons=[cron("up", "0 0 8 * * *", 6)])
            await world.run(hours(hour) + seconds(61))
            found = await world.cluster.get(HPCS, "sizes", namespace="default")
            assert (await world.replicas(), found.status.last_schedule_time) == (6, None)
            await world.cluster.delete(HPCS, "sizes", namespace="default")
            world.cluster.down = False

    play(story, cluster=DownCluster)
