"""Targets of kinds that the program does not know beforehand."""

from __future__ import annotations

import asyncio

from tests.horizontal.running import play

from kubetide.horizontal.options.annotations import COUNT_ONLY_OWNED
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, HPAS, PODS, Kind
from kubetide.plan.board import Workload
from kubetide.ports.errors import Unavailable
from kubetide.testing import builders
from kubetide.units.time import seconds

CRON_TABS = Kind("example.com", "v1", "CronTab", "crontabs", dict)
REPLICAS = {"replicas": {"type": "integer"}}
PATHS = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": REPLICAS},
        "status": {"type": "object", "properties": {**REPLICAS, "selector": {"type": "string"}}},
    },
}


async def define(world, **version):
    """Create the definition of CronTabs and one with two pods and two desired replicas."""
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "crontabs", "kind": "CronTab"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"scale": PATHS},
                **version,
            }
        ],
    }
    body = {"metadata": {"name": "crontabs.example.com"}, "spec": spec}
    await world.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, body)
    status = {"replicas": 2, "selector": "app=tab"}
    tab = {"metadata": {"name": "tab"}, "spec": {"replicas": 2}, "status": status}
    await world.cluster.create(CRON_TABS, tab, namespace="default")
    for name in ("tab-0", "tab-1"):
        await world.add_pod(name, "tab")


async def target(world, kind="CronTab", version="example.com/v2"):
    """Create an HPA of the CronTab; the version of the reference plays no part."""
    body = builders.hpa("tab", "tab")
    body["spec"]["scaleTargetRef"] = {"apiVersion": version, "kind": kind, "name": "tab"}
    await world.cluster.create(HPAS, body, namespace="default")


async def replicas(world):
    return (await world.cluster.get(CRON_TABS, "tab", namespace="default"))["spec"]["replicas"]


async def able_to_scale(world):
    hpa = await world.hpa("tab")
    return next((one.reason, one.message) for one in hpa.status.conditions if one.type == "AbleToScale")


def refusal(detail):
    return "FailedGetScale", f"the HPA controller was unable to get the target's current scale: {detail}"


def test_a_kind_that_is_made_while_the_loop_runs():
    """The HPA says that there is no such kind; half a minute after the definition it scales by it."""

    async def story(world):
        world.usage.milli = 200
        await target(world)
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert await able_to_scale(world) == refusal(
                'no matches for kind "CronTab" in group "example.com"'
            )
            await define(world)
            await world.clock.sleep(seconds(30))
            assert await replicas(world) == 4
            assert (await able_to_scale(world))[0] == "SucceededRescale"
            [intent] = world.board.intents()
            assert (intent.workload, intent.replicas) == (Workload("default", "CronTab", "tab"), 4)

    play(story)


def test_a_kind_in_lower_case():
    """A kind is found in lower case too, as upstream finds it."""

    async def story(world):
        world.usage.milli = 200
        await define(world)
        await target(world, kind="crontab")
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert await replicas(world) == 4
            # The node loop looks for the owner of pods, which has the kind that the cluster writes.
            assert [one.workload for one in world.board.intents()] == [Workload("default", "CronTab", "tab")]

    play(story)


def test_the_owner_of_pods_is_called_by_the_kind_that_is_meant():
    """With count-only-owned the pods of a target count, however the reference writes its kind."""

    async def story(world):
        world.usage.milli = 200
        await define(world)
        tab = await world.cluster.get(CRON_TABS, "tab", namespace="default")
        uid = tab["metadata"]["uid"]
        owner = {
            "apiVersion": "example.com/v1",
            "kind": "CronTab",
            "name": "tab",
            "uid": uid,
            "controller": True,
        }
        for name in ("tab-0", "tab-1"):
            patch = {"metadata": {"ownerReferences": [owner]}}
            await world.cluster.patch(PODS, name, patch, namespace="default")
        await target(world, kind="crontab")
        annotations = {"metadata": {"annotations": {COUNT_ONLY_OWNED: "true"}}}
        await world.cluster.patch(HPAS, "tab", annotations, namespace="default")
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert await replicas(world) == 4

    play(story)


def test_a_kind_without_scale():
    """A custom kind without the subresource is found, and has no scale."""

    async def story(world):
        await define(world, subresources={})
        await target(world)
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert await able_to_scale(world) == refusal("the server could not find the requested resource")

    play(story)


def test_discovery_that_fails_is_the_error_of_its_hpa():
    """The server's error is reported, others are still scaled, and discovery is read twice a minute."""

    async def story(world):
        asked = []
        discover = world.cluster.kinds

        async def fails():
            asked.append(world.clock.now())
            raise Unavailable("the server is currently unable to handle the request")

        world.cluster.kinds = fails
        world.usage.milli = 200
        await define(world)
        await world.add()
        await target(world)
        async with world.running():
            await world.clock.sleep(seconds(61))
            assert await able_to_scale(world) == refusal(
                "the server is currently unable to handle the request"
            )
            assert await world.replicas() == 4
            assert [time - asked[0] for time in asked] == [0, seconds(30)]
            world.cluster.kinds = discover
            await world.clock.sleep(seconds(15))
            assert await replicas(world) == 4
            world.cluster.kinds = fails
            await world.clock.sleep(seconds(60))
            assert (await able_to_scale(world))[0] != "FailedGetScale", "what was known stays known"

    play(story)


def test_a_scale_that_is_not_read_makes_no_other_hpa_late():
    """Of a resource whose versions a webhook converts that hangs the HPA says so; the other is scaled in time."""

    class Hang:
        async def before(self, request):
            if request.verb == "get" and request.subresource == "scale" and request.kind.kind == "CronTab":
                await asyncio.sleep(60)

    async def story(world):
        world.usage.milli = 200
        await define(world)
        await target(world)
        await world.add()
        world.cluster.faults = Hang()
        async with world.running():
            await world.clock.sleep(seconds(26))
            assert await world.replicas() == 4
            assert await able_to_scale(world) == refusal("the API server has not answered within 10s")

    play(story)


def test_known_kinds_need_no_discovery():
    """As long as no reference needs it, the cluster's discovery is not read."""

    async def story(world):
        async def never():
            raise AssertionError("asked")

        world.cluster.kinds = never
        await world.add()
        async with world.running():
            await world.clock.sleep(seconds(46))
            assert len(await world.events()) == 0

    play(story)
