"""The HPAs that another controller serves are left alone, and given up at its first write."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.cluster.answering import Skewed
from tests.horizontal.running import START, World
from tests.horizontal.test_targets import CRON_TABS, define
from tests.tasks import stop

from kubetide.embedded.apiserver.store.request import Options, Request
from kubetide.objects.kinds import DEPLOYMENTS, HPAS, STATEFUL_SETS
from kubetide.ports.errors import Forbidden
from kubetide.runtime.handover.ownership import ANNOTATION, CLUSTER_WIDE, State, consent_text
from kubetide.runtime.handover.tracker import HpaOwners
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import hours, minutes, seconds

OWN = "unknown"
"""What a client in this process writes without a name is noted so."""
KEY = ("default", "web")


def write(world, kind, manager, body, name="web", subresource=""):
    """Patch an object under a manager's name, as the API server notes it."""
    options = Options(patch_type="merge", field_manager=manager)
    world.cluster.rest.handle(Request("patch", kind, "default", name, subresource, options, body))


def write_status(world, manager=CLUSTER_WIDE, name="web"):
    status = {"observedGeneration": world.clock.now(), "currentReplicas": 2}
    write(world, HPAS, manager, {"status": status}, name, "status")


def write_scale(world, manager, replicas):
    write(world, DEPLOYMENTS, manager, {"spec": {"replicas": replicas}}, subresource="scale")


async def hand_over(world, value=None, name="web"):
    patch = {"metadata": {"annotations": {ANNOTATION: value or consent_text(world.clock.now())}}}
    await world.cluster.patch(HPAS, name, patch, namespace="default")


class Late:
    """Owners that are made after the world that asks them."""

    def __init__(self):
        self.said = []

    def make(self, world, **settings):
        self.inner = HpaOwners(world.cluster, world.clock, self.said.append, own=OWN, **settings)

    def left_alone(self):
        return self.inner.left_alone()

    def why(self, key):
        return self.inner.why(key)

    def knows(self, key):
        return self.inner.knows(key)


@asynccontextmanager
async def watching(owners):
    task = asyncio.create_task(owners.inner.run())
    await owners.inner.known()
    yield
    await stop(task)


def play(story):
    async def reported(clock):
        owners = Late()
        world = World(clock, owners=owners)
        owners.make(world)
        world.usage.milli = 200
        await story(world, owners)

    run_virtual(reported, start=START)


def test_a_quiet_controller_is_not_taken_for_a_dead_one():
    """Hours after its last write the HPA is still upstream's; after the hand-over it is scaled with the next tick."""

    async def story(world, owners):
        await world.add()
        write_status(world)
        async with watching(owners), world.running():
            await world.clock.sleep(hours(3))
            assert await world.replicas() == 2
            assert await world.events() == []
            others = {("default", "web"): "kube-controller-manager writes its status"}
            assert world.controller.state.left_alone == others
            assert owners.said == [
                "HPA default/web is left alone: kube-controller-manager writes its status, the last time (2026-03-02T08:00:00Z)",
                "`kubetide handover` shows who serves which HPA, and moves them",
            ]
            await hand_over(world)
            await world.clock.sleep(seconds(16))
            assert await world.replicas() == 4
            assert owners.said[2:] == ["HPA default/web is served from now on"]
            assert world.controller.state.left_alone == {}

    play(story)


def test_what_holds_for_many_hpas_is_told_of_a_few():
    """A cluster has thousands of them: the first start would fill the log with one sentence."""

    async def story(world, owners):
        for number in range(12):
            await world.add(f"app-{number:02d}", replicas=1)
        async with watching(owners), world.running():
            await world.clock.sleep(seconds(16))
            waits = "has no status yet: it is taken on in 1m0s unless somebody writes one"
            assert owners.said == [
                *(f"HPA default/app-{number:02d} {waits}" for number in range(3)),
                "the same holds for 9 more HPAs; `kubetide handover` shows them",
            ]

    play(story)


def test_one_write_of_another_ends_ours_at_once_and_for_good():
    """Nothing is written after it, by this process or the next, until the HPA is handed over anew."""

    async def story(world, owners):
        await world.add()
        write_status(world)
        await hand_over(world)
        async with watching(owners), world.running():
            await world.clock.sleep(seconds(16))
            assert await world.replicas() == 4
            write_status(world)
            await world.clock.sleep(seconds(1))
            assert KEY in owners.left_alone()
            assert "is given up: kube-controller-manager has written" in owners.said[-2]
            world.usage.milli = 900
            await world.clock.sleep(minutes(2))
            assert await world.replicas() == 4
        owners.make(world)
        async with watching(owners):
            await world.clock.sleep(minutes(2))
            assert KEY in owners.left_alone()
            await hand_over(world)
            await world.clock.sleep(seconds(1))
            assert KEY not in owners.left_alone()

    play(story)


def test_a_write_in_the_second_of_the_hand_over_is_seen_by_its_order():
    """Times are whole seconds; the watch shows which write came later."""

    async def story(world, owners):
        await world.add()
        async with watching(owners):
            await hand_over(world)
            await world.clock.sleep(seconds(0))
            assert KEY not in owners.left_alone()
            write_status(world, "robot")
            await world.clock.sleep(seconds(0))
            assert owners.inner.verdicts[KEY].ended
            await world.clock.sleep(seconds(1))
            await hand_over(world)
            await world.clock.sleep(seconds(0))
            assert KEY not in owners.left_alone()

    play(story)


def test_a_write_to_the_scale_within_a_tick_stops_our_own():
    """When the other controller writes between our read and our write, the scale write is withheld without a message."""

    async def story(world, owners):
        await world.add()
        await hand_over(world)
        write_for_real = world.controller._actor._write_scale

        async def raced(one):
            raise AssertionError("must be withheld")

        async with watching(owners), world.running():
            await world.clock.sleep(seconds(14))
            pod_samples = world.usage.pod_samples

            async def samples(*asked):
                write_scale(world, "robot", 3)
                await world.clock.sleep(seconds(0))
                return await pod_samples(*asked)

            world.usage.pod_samples = samples
            world.controller._actor._write_scale = raced
            await world.clock.sleep(seconds(2))
            assert await world.replicas() == 3
            assert await world.events() == []
            world.controller._actor._write_scale = write_for_real
            await world.clock.sleep(minutes(2))
            assert await world.replicas() == 3
        assert any("is given up: robot has written" in text for text in owners.said)

    play(story)


def test_a_controller_of_the_whole_cluster_ends_all_with_its_first_write():
    """Upstream's controller writes first where a status changes; it serves the quiet HPAs, too."""

    async def story(world, owners):
        for name in ("one", "two"):
            await world.add(name)
            await hand_over(world, name=name)
        async with watching(owners):
            assert not owners.left_alone()
            await world.clock.sleep(seconds(2))
            write_status(world, name="one")
            await world.clock.sleep(seconds(0))
            assert set(owners.left_alone()) == {("default", "one"), ("default", "two")}
            await hand_over(world, name="two")
            await world.clock.sleep(seconds(2))
            assert set(owners.left_alone()) == {("default", "one")}

    play(story)


def test_a_new_hpa_is_adopted_after_a_minute_but_not_beside_others():
    """Nothing is decided in the first minute; while upstream serves any HPA, never."""

    async def story(world, owners):
        async with watching(owners), world.running():
            await world.add()
            # The embedded API notes who writes what from the first named writer on, a real one always.
            write(world, HPAS, "kubectl", {"metadata": {"labels": {"team": "web"}}})
            await world.clock.sleep(seconds(59))
            assert await world.replicas() == 2
            assert (await world.hpa()).status.conditions is None
            await world.clock.sleep(seconds(17))
            assert await world.replicas() == 4
            await world.add("theirs")
            write_status(world, "robot", "theirs")
            await world.add("late")
            await world.clock.sleep(minutes(5))
            assert set(owners.left_alone()) == {("default", "theirs"), ("default", "late")}
            assert owners.inner.verdicts["default", "late"].state is State.BLOCKED
            await hand_over(world, name="theirs")
            await world.clock.sleep(minutes(1))
            assert not owners.left_alone()

    play(story)


def test_what_is_given_to_others_is_left_alone_from_the_next_write_on():
    """The annotation ``others`` releases an HPA, without anybody else having written."""

    async def story(world, owners):
        await world.add()
        await hand_over(world)
        async with watching(owners), world.running():
            await world.clock.sleep(seconds(16))
            assert await world.replicas() == 4
            await hand_over(world, "others")
            world.usage.milli = 900
            await world.clock.sleep(minutes(2))
            assert await world.replicas() == 4
            assert owners.said[-2:][0].endswith("kubetide.dev/handover gives it to others")

    play(story)


@pytest.mark.parametrize("ahead", [minutes(-90), minutes(90)])
def test_a_wrong_clock_of_ours_changes_nothing(ahead):
    """Only times of the API server are compared with each other."""

    async def story(clock):
        world, owners = World(clock), Late()
        owners.inner = HpaOwners(
            world.cluster, Skewed(clock, ahead), owners.said.append, own=OWN, server_now=clock.now
        )
        await world.add()
        write_status(world)
        async with watching(owners):
            assert KEY in owners.left_alone()
            await hand_over(world)
            await clock.sleep(seconds(1))
            assert KEY not in owners.left_alone()

    run_virtual(story, start=START)


STATEFUL = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
CUSTOM = {"apiVersion": "example.com/v2", "kind": "CronTab"}


async def add_stateful_set(world):
    body = builders.deployment("tab", replicas=2) | {"kind": "StatefulSet"}
    body["spec"]["serviceName"] = "tab"
    await world.cluster.create(STATEFUL_SETS, body, namespace="default")


@pytest.mark.parametrize(
    ("kind", "reference", "add"),
    [(STATEFUL_SETS, STATEFUL, add_stateful_set), (CRON_TABS, CUSTOM, define)],
    ids=["StatefulSet", "CronTab"],
)
@pytest.mark.parametrize("late", [False, True])
def test_a_write_to_the_scale_of_any_kind_ends_ours_at_once(kind, reference, add, late):
    """It ends not for Deployments alone, but for built-in and custom kinds, also where the HPA comes later."""

    async def story(world, owners):
        async def scene():
            await add(world)
            hpa = builders.hpa("tab", "tab")
            hpa["spec"]["scaleTargetRef"] = {**reference, "name": "tab"}
            await world.cluster.create(HPAS, hpa, namespace="default")
            await hand_over(world, name="tab")

        if not late:
            await scene()
        async with watching(owners):
            if late:
                await world.clock.sleep(seconds(5))
                await scene()
            await world.clock.sleep(seconds(1))
            assert not owners.left_alone()
            write(world, kind, "kubectl", {"spec": {"replicas": 3}}, "tab", "scale")
            await world.clock.sleep(seconds(1))
            assert not owners.left_alone()
            write(world, kind, "robot", {"spec": {"replicas": 4}}, "tab", "scale")
            await world.clock.sleep(seconds(0))
            assert set(owners.left_alone()) == {("default", "tab")}
            await world.clock.sleep(seconds(1))
        assert any("HPA default/tab is given up: robot has written" in text for text in owners.said)

    play(story)


def test_a_kind_that_may_not_be_watched_is_reported_and_ends_nothing():
    """HPAs of other kinds are served on; the sentence names the kind and the refusal."""

    class NoTabs:
        async def before(self, request):
            if request.kind.plural == "crontabs" and request.verb in {"list", "watch"}:
                raise Forbidden('crontabs.example.com is forbidden: User "k" cannot list resource "crontabs"')

    async def story(world, owners):
        await world.add()
        await hand_over(world)
        await define(world)
        hpa = builders.hpa("tab", "tab")
        hpa["spec"]["scaleTargetRef"] = {**CUSTOM, "name": "tab"}
        await world.cluster.create(HPAS, hpa, namespace="default")
        world.cluster.faults = NoTabs()
        async with watching(owners):
            await world.clock.sleep(seconds(20))
            assert KEY not in owners.left_alone()
            write_scale(world, "robot", 3)
            await world.clock.sleep(seconds(0))
            assert KEY in owners.left_alone()
        reported = [text for text in owners.said if text.startswith("cannot see who else writes to")]
        assert len(reported) == 1
        assert "crontabs.example.com" in reported[0]
        assert "forbidden" in reported[0]

    play(story)
