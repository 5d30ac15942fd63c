"""ElasticWorkloads on an embedded cluster in virtual time: the loops act on their sections, conditions say what is wrong."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

import msgspec
import pytest
from tests.horizontal.running import Usage

from kubetide.elastic.definitions import definitions
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.loop import Parts, Sources, loop_entries, parse_flags
from kubetide.loop.wiring import wire
from kubetide.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    ELASTIC_WORKLOADS,
    EVENTS,
    HPAS,
    PODS,
    STORED_KINDS,
    VPA_CHECKPOINTS,
    VPAS,
)
from kubetide.plan.board import Board
from kubetide.ports.errors import Invalid
from kubetide.runtime.guard import Advice, guarded_cluster
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import format_rfc3339, minutes, parse_rfc3339, seconds
from kubetide.vertical.definitions import definitions as vpa_definitions
from kubetide.watching import Caches

START = parse_rfc3339("2026-03-02T08:00:00Z")
HOME = "default"
WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
}
HORIZONTAL = {
    "minReplicas": 1,
    "maxReplicas": 10,
    "metrics": [CPU],
    "behavior": {"scaleUp": {"stabilizationWindowSeconds": 0}},
}


class Records:
    """All records by loop, every third with the whole state."""

    def __init__(self):
        self.lines = []

    def wants_full(self, loop):
        return sum(one.loop == loop for one in self.lines) % 3 == 0

    def write(self, record, state=None):
        if state is not None:
            record = msgspec.structs.replace(record, state=msgspec.Raw(b"".join(state)))
        self.lines.append(record)


class World:
    """A Deployment of 200m pods with that much usage, and the loops that a release with ElasticWorkloads runs."""

    def __init__(self, clock, loops, guard=None):
        self.guard = guard
        self.clock, self.records, self.board = clock, Records(), Board()
        self.cluster = EmbeddedCluster(Store((*STORED_KINDS, CUSTOM_RESOURCE_DEFINITIONS)), clock, seed=1)
        self.usage = Usage(self.cluster, clock, 100)
        self.entries = loop_entries(loops)

    async def begin(self):
        for body in (*definitions(), *vpa_definitions()):
            await self.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
        await self.add_deployment("web", 2)

    async def add_deployment(self, name, replicas):
        body = builders.deployment(name, replicas=replicas, cpu="200m")
        await self.cluster.create(DEPLOYMENTS, body, namespace=HOME)
        await self.cluster.patch(
            DEPLOYMENTS, name, {"status": {"replicas": replicas}}, namespace=HOME, subresource="status"
        )
        since = format_rfc3339(START - minutes(60))
        ready = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
        for index in range(replicas):
            await self.cluster.create(
                PODS, builders.pod(f"{name}-{index}", labels={"app": name}, cpu="200m"), namespace=HOME
            )
            status = {"phase": "Running", "startTime": since, "conditions": ready}
            await self.cluster.patch(
                PODS, f"{name}-{index}", {"status": status}, namespace=HOME, subresource="status"
            )

    async def add(self, name="web", target="web", **sections):
        body = {
            "apiVersion": ELASTIC_WORKLOADS.api_version,
            "kind": ELASTIC_WORKLOADS.kind,
            "metadata": {"name": name},
            "spec": {"targetRef": {**WEB, "name": target}, **sections},
        }
        await self.cluster.create(ELASTIC_WORKLOADS, body, namespace=HOME)

    async def get(self, name="web"):
        return await self.cluster.get(ELASTIC_WORKLOADS, name, namespace=HOME)

    async def accepted(self, name="web"):
        found = {one.type: one for one in (await self.get(name)).status.conditions or ()}
        return found["Accepted"].status, found["Accepted"].reason, found["Accepted"].message

    async def replicas(self, name="web"):
        return (await self.cluster.get(DEPLOYMENTS, name, namespace=HOME)).spec.replicas

    async def events(self):
        found = (await self.cluster.list(EVENTS, namespace=HOME)).items
        return {(one.involved_object.kind, one.involved_object.name, one.reason) for one in found}

    @asynccontextmanager
    async def running(self):
        caches = Caches(self.cluster, self.clock)
        parts = Parts(
            cluster=self.cluster if self.guard is None else guarded_cluster(self.cluster, self.guard),
            clock=self.clock,
            recorder=self.records,
            caches=caches,
            board=self.board,
            sources=Sources(self.usage),
        )
        loops = wire(self.entries, parts, parse_flags({}, self.entries))

        async def run():
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(caches.run())
                for one in loops:
                    tasks.create_task(one.runner.run())

        task = asyncio.create_task(run())
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        for one in loops:
            assert one.loop.health.bugs == 0, one.loop.health.last_failure


def play(story, loops=("elastic", "schedules", "horizontal", "recommender"), guard=None):
    async def main(clock):
        world = World(clock, loops, guard)
        await world.begin()
        await story(world)
        return world

    return run_virtual(main, start=START)


def replay(world):
    """Decide again from the records, and hold the decisions against theirs."""
    for entry in world.entries:
        core = entry.core()
        for record in (one for one in world.records.lines if one.loop == entry.name):
            core.apply(bytes(record.state), full=record.full)
            assert core.decide(record.now) == bytes(record.commands)
            core.absorb(bytes(record.outcomes), record.now)


def test_all_sections_act_and_replay_agrees():
    """The load and the clock scale the target, usage makes a recommendation; the spec stays as its author wrote it."""
    rules = [{"name": "nine", "start": "0 9 * * *", "end": "0 18 * * *", "minReplicas": 7, "maxReplicas": 8}]

    async def story(world):
        world.usage.milli = 160
        vertical = {"updatePolicy": {"updateMode": "Off"}}
        sections = {"horizontal": HORIZONTAL, "vertical": vertical, "schedule": {"rules": rules}}
        await world.add(**sections, forecast={"timeZone": "Europe/Berlin"})
        written = (await world.get()).spec
        async with world.running():
            await world.clock.sleep(minutes(40))
            assert await world.replicas() == 4  # two pods at 80 % of their requests, 50 % is the target
            assert await world.accepted() == (
                "True",
                "Accepted",
                "the sections horizontal, vertical, schedule, forecast are followed",
            )
            await world.clock.sleep(minutes(25))
            assert await world.replicas() == 7
        found = await world.get()
        assert found.spec == written
        status = found.status
        assert (status.horizontal.current_replicas, status.horizontal.desired_replicas) == (7, 7)
        assert [one.type for one in status.horizontal.conditions] == [
            "AbleToScale",
            "ScalingActive",
            "ScalingLimited",
        ]
        assert status.vertical.recommendation.container_recommendations[0].container_name
        assert (status.schedule.min_replicas, status.schedule.max_replicas) == (7, 8)
        assert (status.schedule.rules, status.schedule.next_change) == (("nine",), "2026-03-02T18:00:00Z")
        assert ("ElasticWorkload", "web", "SuccessfulRescale") in await world.events()
        assert not any(kind == "HorizontalPodAutoscaler" for kind, _, _ in await world.events())
        [checkpoint] = (await world.cluster.list(VPA_CHECKPOINTS)).items
        assert checkpoint.spec.vpa_object_name == "web"
        assert not (await world.cluster.list(HPAS)).items
        assert not (await world.cluster.list(VPAS)).items

    replay(play(story))


def test_the_schedule_goes_on_where_it_was_after_an_outage():
    """A process that starts anew within a window has the floor at once; at its end the horizontal bounds are back."""
    rules = [{"name": "busy", "start": "30 8 * * *", "end": "0 9 * * *", "minReplicas": 6}]

    async def story(world):
        await world.add(horizontal={**HORIZONTAL, "maxReplicas": 4}, schedule={"rules": rules})
        await world.clock.sleep(minutes(40))
        async with world.running():
            await world.clock.sleep(minutes(1))
            assert await world.replicas() == 6
            await world.clock.sleep(minutes(20))
            assert (await world.get()).status.schedule.min_replicas is None
            assert await world.replicas() <= 4

    play(story)


def asked_sizes(world, loop):
    """The sizes that a loop requests, without repetitions in a row."""
    found = []
    for record in world.records.lines:
        if record.loop == loop:
            commands = msgspec.json.decode(bytes(record.commands))
            runs = commands if loop == "horizontal" else [one["change"] for one in commands["runs"]]
            for one in runs:
                if one.get("replicas") is not None and found[-1:] != [one["replicas"]]:
                    found.append(one["replicas"])
    return found


BUSY = {"name": "busy", "start": "30 8 * * *", "end": "0 9 * * *", "minReplicas": 6, "maxReplicas": 9}


@pytest.mark.parametrize("guard", [None, Advice()], ids=["acts", "advises"])
def test_advice_follows_the_schedule_as_acting_does(guard):
    """A run that writes nothing announces the hour's bounds for as long as they hold, and so does its replay."""

    async def story(world):
        world.usage.milli = 100
        await world.add(horizontal={**HORIZONTAL, "maxReplicas": 4}, schedule={"rules": [BUSY]})
        await world.add_deployment("night", 3)
        night = {"name": "night", "at": "20 8 * * *", "replicas": 1}
        await world.add("night", target="night", schedule={"rules": [night]})
        before = [await world.get(name) for name in ("web", "night")]
        async with world.running():
            await world.clock.sleep(minutes(25))
            early = asked_sizes(world, "horizontal"), asked_sizes(world, "schedules")
            await world.clock.sleep(minutes(34))
            busy = asked_sizes(world, "horizontal"), asked_sizes(world, "schedules")
            await world.clock.sleep(minutes(11))
        assert (early, busy) == (([], [1]), ([6], [1]))
        if guard is not None:
            assert [await world.get(name) for name in ("web", "night")] == before
            assert (await world.replicas(), await world.replicas("night")) == (2, 3)

    world = play(story, guard=guard)
    last = max(record.now for record in world.records.lines if b'"replicas":6' in bytes(record.commands))
    assert last < parse_rfc3339("2026-03-02T09:01:00Z")
    statuses = [
        one for one in world.records.lines if one.loop == "elastic" and b'"status"' in bytes(one.commands)
    ]
    assert len(statuses) <= 4, "what has been decided once is not decided again"
    replay(world)


def test_nobody_is_left_at_night():
    """Replicas 0 are the schedule's: the autoscaler rests, and takes over again from the morning's floor."""
    rules = [
        {"name": "off", "at": "10 8 * * *", "replicas": 0},
        {"name": "on", "at": "0 9 * * *", "minReplicas": 3, "maxReplicas": 9},
    ]

    async def story(world):
        await world.add(horizontal=HORIZONTAL, schedule={"rules": rules})
        async with world.running():
            await world.clock.sleep(minutes(30))
            assert await world.replicas() == 0
            await world.clock.sleep(minutes(31))
            assert await world.replicas() >= 3

    play(story)


def test_a_real_autoscaler_in_the_way_is_said_and_the_object_steps_back():
    """While an HPA scales the target, the sections do nothing; when it is deleted, they are followed."""

    async def story(world):
        world.usage.milli = 160
        await world.cluster.create(HPAS, builders.hpa("other", "web", max_replicas=3), namespace=HOME)
        await world.add(
            horizontal=HORIZONTAL, schedule={"rules": [{"name": "x", "at": "5 8 * * *", "minReplicas": 9}]}
        )
        async with world.running():
            await world.clock.sleep(minutes(10))
            status, reason, message = await world.accepted()
            assert (status, reason) == ("False", "Conflict")
            assert message.startswith("HorizontalPodAutoscaler other is in the way of Deployment web")
            assert await world.replicas() == 3
            assert (await world.get()).status.horizontal is None
            await world.cluster.delete(HPAS, "other", namespace=HOME)
            await world.clock.sleep(minutes(1))
            assert (await world.accepted())[0] == "True"
            assert await world.replicas() == 9
        assert ("ElasticWorkload", "web", "Conflict") in await world.events()

    play(story)


@pytest.mark.parametrize(
    ("kind", "sections", "follows"),
    [
        (HPAS, {"vertical": {}}, "True"),
        (HPAS, {"schedule": {"rules": [{"name": "x", "at": "5 8 * * *", "replicas": 9}]}}, "False"),
        (VPAS, {"vertical": {}}, "False"),
        (VPAS, {"horizontal": HORIZONTAL}, "True"),
    ],
)
def test_an_autoscaler_is_in_the_way_of_what_it_does_itself(kind, sections, follows):
    """A VPA beside a horizontal section, or an HPA beside a vertical one, is no conflict."""

    async def story(world):
        if kind is HPAS:
            body = builders.hpa("other", "web")
        else:
            body = {"metadata": {"name": "other"}, "spec": {"targetRef": WEB}}
        await world.cluster.create(kind, body, namespace=HOME)
        await world.add(**sections)
        async with world.running():
            await world.clock.sleep(seconds(30))
            assert (await world.accepted())[0] == follows

    play(story, ("elastic",))


def test_of_two_for_one_target_the_older_is_followed():
    """The younger says so in its status, and takes over when the older is deleted."""

    async def story(world):
        await world.add("first", horizontal=HORIZONTAL)
        await world.clock.sleep(seconds(5))
        await world.add("second", horizontal=HORIZONTAL)
        async with world.running():
            await world.clock.sleep(seconds(30))
            assert (await world.accepted("first"))[0] == "True"
            assert "the older ElasticWorkload first is in the way" in (await world.accepted("second"))[2]
            await world.cluster.delete(ELASTIC_WORKLOADS, "first", namespace=HOME)
            await world.clock.sleep(seconds(30))
            assert (await world.accepted("second"))[0] == "True"

    play(story, ("elastic",))


def test_a_section_that_is_no_hpa_is_refused_by_field_and_stops_no_other():
    """A section that the definition accepts and an HPA refuses is named; the other object is followed."""
    pods = {
        "type": "Pods",
        "pods": {"metric": {"name": ""}, "target": {"type": "AverageValue", "averageValue": "1"}},
    }

    async def story(world):
        await world.add_deployment("good", 2)
        await world.add(horizontal={"maxReplicas": 2, "minReplicas": 3, "metrics": [pods]})
        await world.add("good", "good", horizontal=HORIZONTAL)
        world.usage.milli = 160
        async with world.running():
            await world.clock.sleep(minutes(2))
            status, reason, message = await world.accepted()
            assert (status, reason) == ("False", "InvalidSpec")
            assert "spec.horizontal.maxReplicas: Invalid value: 2" in message
            assert "spec.horizontal.metrics[0].pods.metric.name: Required value" in message
            assert await world.replicas("good") == 4
            assert await world.replicas("web") == 2

    play(story)


def test_problems_of_the_schedule_are_a_condition():
    """Each rule that is not followed is named with its place; those that can be are followed."""
    rules = [
        {"name": "bad", "at": "0 25 * * *", "replicas": 1},
        {"name": "good", "at": "1 8 * * *", "replicas": 5},
    ]

    async def story(world):
        await world.add(schedule={"rules": rules})
        async with world.running():
            await world.clock.sleep(minutes(3))
            assert await world.replicas() == 5
            by_type = {one.type: one for one in (await world.get()).status.conditions}
            assert by_type["ScheduleValid"].status == "False"
            assert "hour (field 2)" in by_type["ScheduleValid"].message
            fixed = {"spec": {"schedule": {"rules": rules[1:]}}}
            await world.cluster.patch(ELASTIC_WORKLOADS, "web", fixed, namespace=HOME)
            await world.clock.sleep(minutes(1))
            by_type = {one.type: one for one in (await world.get()).status.conditions}
            assert by_type["ScheduleValid"].status == "True"

    play(story)


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"horizontal": {"minReplicas": 1}}, "spec.horizontal.maxReplicas: Required value"),
        ({"schedule": {"rules": [{"at": "0 8 * * *"}]}}, "spec.schedule.rules[0].name: Required value"),
        (
            {"horizontal": {**HORIZONTAL, "behavior": {"scaleUp": {"selectPolicy": "Most"}}}},
            "selectPolicy: Unsupported value",
        ),
    ],
)
def test_the_definition_refuses(sections, words):
    """An API server refuses what the schema can check, and names the field."""

    async def story(world):
        with pytest.raises(Invalid) as refused:
            await world.add(**sections)
        assert words in str(refused.value)

    play(story, ("elastic",))


def test_defaults_and_columns_come_from_the_definition():
    """The mode of a forecast is calendar where none is written."""

    async def story(world):
        await world.add(horizontal=HORIZONTAL, forecast={})
        assert (await world.get()).spec.forecast.mode == "calendar"

    play(story, ("elastic",))


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({}, "spec: write at least one of horizontal, vertical and schedule"),
        ({"vertical": {}, "forecast": {}}, "spec.forecast: needs a horizontal section"),
        (
            {"horizontal": HORIZONTAL, "forecast": {"timeZone": "Mars/Base"}},
            'spec.forecast.timeZone: unknown time zone "Mars/Base"',
        ),
        (
            {"vertical": {"updatePolicy": {"minReplicas": 0}}},
            "spec.vertical.updatePolicy.minReplicas: Invalid value: 0",
        ),
    ],
)
def test_what_goes_with_what_is_said_on_the_object(sections, words):
    """Input that a server without rules in CEL accepts, or no rule can check, is a condition."""

    async def story(world):
        await world.add(**sections)
        async with world.running():
            await world.clock.sleep(seconds(30))
            status, reason, message = await world.accepted()
            assert (status, reason) == ("False", "InvalidSpec")
            assert words in message

    play(story, ("elastic",))
