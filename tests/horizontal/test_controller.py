"""The controller on an embedded cluster, in virtual time."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.horizontal.running import START, play

from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.explain.answers import explain
from kubetide.objects.kinds import HPAS, PODS
from kubetide.plan.board import Workload
from kubetide.ports.errors import Conflict
from kubetide.runtime.guard import Advice
from kubetide.testing import builders
from kubetide.units.time import format_rfc3339, minutes, seconds


def test_scales_up_and_says_so():
    """Pods at twice the target are doubled; status, condition, event and board report it."""

    async def story(world):
        world.usage.milli = 200
        await world.add()
        async with world.running():
            await world.clock.sleep(seconds(16))
            hpa = await world.hpa()
            assert await world.replicas() == 4
            assert (hpa.status.current_replicas, hpa.status.desired_replicas) == (2, 4)
            assert hpa.status.last_scale_time == format_rfc3339(START + seconds(15))
            assert [c.reason for c in hpa.status.conditions] == [
                "SucceededRescale", "ValidMetricFound", "DesiredWithinRange",
            ]  # fmt: skip
            assert hpa.status.current_metrics[0].resource.current.average_utilization == 100
            reason = "cpu resource utilization (percentage of request) above target"
            assert await world.events() == [("SuccessfulRescale", f"New size: 4; reason: {reason}", 1)]
            [intent] = world.board.intents()
            assert (intent.workload, intent.replicas) == (Workload("default", "Deployment", "web"), 4)
            assert intent.due == START + seconds(15)

    play(story)


def test_a_conflict_is_tried_again_with_the_same_number():
    """The scale that another wrote meanwhile is read again, and the decided number is written."""

    class OneConflict:
        def __init__(self):
            self.left = 2

        async def before(self, request):
            if request.subresource == "scale" and request.verb != "get" and self.left:
                self.left -= 1
                raise Conflict("the object has been modified")

    async def story(world):
        world.usage.milli = 200
        await world.add()
        world.cluster.faults = OneConflict()
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert await world.replicas() == 4

    play(story)


def test_nothing_is_written_when_nothing_changes():
    """At the target, the second tick writes no status and emits nothing."""

    async def story(world):
        await world.add()
        async with world.running():
            await world.clock.sleep(seconds(16))
            version = (await world.hpa()).metadata.resource_version
            await world.clock.sleep(seconds(60))
            assert (await world.hpa()).metadata.resource_version == version
            assert await world.events() == []
        repeated = [msgspec.json.decode(line).get("repeated", 0) for line in world.recorder.lines]
        assert repeated == [0, 1, 1, 0, 1]

    play(story)


def test_metrics_that_fail_stop_nothing_else():
    """Without metrics the HPA keeps its number and says why; equal events are counted up; then it goes on."""

    async def story(world):
        world.usage.error = "the server is currently unable to handle the request (get pods.metrics.k8s.io)"
        await world.add()
        async with world.running():
            await world.clock.sleep(seconds(31))
            text = f"unable to get metrics for resource cpu: unable to fetch metrics from resource metrics API: {world.usage.error}"
            active = (await world.hpa()).status.conditions[1]
            assert (active.status, active.reason) == ("False", "FailedGetResourceMetric")
            assert active.message.endswith(text)
            assert [(reason, count) for reason, _, count in await world.events()] == [
                ("FailedComputeMetricsReplicas", 2),
                ("FailedGetResourceMetric", 2),
            ]
            world.usage.error, world.usage.milli = "", 200
            await world.clock.sleep(seconds(15))
            assert await world.replicas() == 4

    play(story)


def test_requests_each_where_the_whole_cluster_is_refused():
    """A source that lists no other namespaces is asked by namespace and selector."""

    async def story(world):
        world.usage.cluster_wide = False
        world.usage.milli = 200
        await world.add()
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert world.usage.questions == [("", ""), ("default", "app=web")]
            assert await world.replicas() == 4

    play(story)


def test_a_bad_hpa_leaves_the_others_alone():
    """An HPA whose target does not exist says so, and the next one is scaled."""

    async def story(world):
        world.usage.milli = 200
        await world.add()
        await world.cluster.create(HPAS, builders.hpa("lost", "nowhere"), namespace="default")
        async with world.running():
            await world.clock.sleep(seconds(16))
            [able] = (await world.hpa("lost")).status.conditions
            assert able.message.endswith('deployments.apps "nowhere" not found')
            assert await world.replicas() == 4

    play(story)


def test_the_intent_of_a_deleted_hpa_is_withdrawn():
    """After the deletion of an HPA the board no longer announces its replicas."""

    async def story(world):
        await world.add()
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert len(world.board.intents()) == 1
            await world.cluster.delete(HPAS, "web", namespace="default")
            await world.clock.sleep(seconds(15))
            assert world.board.intents() == ()
            assert world.controller.state.hpas == ()

    play(story)


@pytest.mark.parametrize("first", [0, 3, 6])
def test_records_are_decided_again_to_the_same_bytes(first):
    """From any full record on, a fresh core decides the recorded commands and results."""

    async def story(world):
        await world.add()
        await world.add("api", replicas=3, cpu_percent=80)
        async with world.running():
            for milli in (100, 180, 320, 90, 40, 40, 40, 200):
                world.usage.milli = milli
                await world.clock.sleep(seconds(15))
                for name in ("web", "api"):
                    pods = await world.cluster.list(PODS, namespace="default", labels=f"app={name}")
                    for index in range(len(pods.items), await world.replicas(name)):
                        await world.add_pod(f"{name}-{index}", name)
            await world.clock.sleep(seconds(1))
        return world.recorder.lines

    lines = play(story)
    core = HorizontalCore()
    scaled = 0
    for line in lines[first:]:
        record = msgspec.json.decode(line)
        core.apply(msgspec.json.encode(record["state"]), full=record.get("full", False))
        commands = core.decide(record["now"])
        assert commands == msgspec.json.encode(record["commands"])
        scaled += len(record["commands"])
        result = core.absorb(msgspec.json.encode(record["outcomes"]), record["now"])
        assert result == msgspec.json.encode(record["result"])
    assert scaled or first


def test_an_explanation_has_every_number():
    """The explanation goes from pods and value to the limit that holds."""

    async def story(world):
        world.usage.milli = 200
        await world.add()
        async with world.running():
            await world.clock.sleep(seconds(16))
        core = HorizontalCore()
        record = msgspec.json.decode(world.recorder.lines[0])
        core.apply(msgspec.json.encode(record["state"]), full=True)
        return explain(core.state, ("default", "web"), record["now"])

    found = play(story)
    [metric] = found.metrics
    assert (metric.value, metric.target, metric.ratio, metric.proposed) == ("100%", "50%", 2.0, 4)
    assert metric.pods == {"ready": ("web-0", "web-1"), "missing": (), "unready": (), "ignored": ()}
    assert (found.current, found.proposal, found.stabilized, found.desired) == (2, 4, 4, 4)
    text = "\n".join(found.lines())
    assert "cpu utilization: 100% of 50%: ratio 2 x 2 pods = 4, so 4 replicas" in text
    assert "and is to be scaled to 4 now" in text


def test_a_run_that_advises_says_what_it_would_do_and_writes_nothing():
    """The same advice holds for as long as nothing changes; nothing is written, nothing counts as failed."""

    async def story(world):
        world.usage.milli = 200
        await world.add()
        before = await world.hpa()
        async with world.running():
            await world.clock.sleep(minutes(3))
        assert await world.replicas() == 2
        assert await world.hpa() == before
        assert await world.events() == []
        found = [json.loads(line) for line in world.recorder.lines]
        advised = [r for one in found for r in one.get("reasons", ()) if r["code"] == "RescaleAdvised"]
        assert {(r["fields"]["current"], r["fields"]["desired"]) for r in advised} == {(2, 4)}
        assert [intent.replicas for intent in world.board.intents()] == [4]
        assert world.controller.endings == {} or not any(e.error for e in world.controller.endings.values())

    play(story, guard=Advice())
