"""The recommender's controller on an embedded cluster in virtual time."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.vertical.custom_kinds import SCALE, TABS, WHERE, definition
from tests.vertical.recommender.live import running, story, vpa
from tests.vertical.recommender.running import START

from kubetide.explain.records import Record
from kubetide.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    VPA_CHECKPOINTS,
    VPAS,
)
from kubetide.ports.errors import Unavailable
from kubetide.units.time import minutes, seconds
from kubetide.vertical.recommender.core import ALGORITHM

MIB = 1 << 20


def test_a_recommendation_and_a_checkpoint_are_written():
    """A pod's usage becomes its VPA's status, and a checkpoint in upstream's format."""

    async def main(world):
        await world.begin()
        await world.run_for(minutes(3.5))
        assert await world.target() == {"cpu": "442m", "memory": "548861636"}
        stored = await world.cluster.get(VPA_CHECKPOINTS, "web-app", **WHERE)
        assert (stored.status.version, stored.status.total_samples_count) == ("v3", 3)
        assert (stored.spec.vpa_object_name, stored.spec.container_name) == ("web", "app")

    story(main)


def test_advice_writes_nothing():
    """Without permission to write neither a status nor a checkpoint comes about, and nothing has failed."""

    async def main(world):
        await world.begin()
        await world.run_for(minutes(2.5))
        assert world.controller.outcomes.withheld
        assert (await world.status()).recommendation is None
        assert not (await world.cluster.list(VPA_CHECKPOINTS)).items
        [one] = world.controller.state.vpas.values()
        assert world.controller.state.pod_count(one) == 1

    story(main, acts=False)


@pytest.mark.parametrize("acts", [False, True])
def test_statuses_that_are_not_written_are_announced(acts):
    """The updater of the same process goes on from advice; what is written it reads itself."""

    async def main(world):
        await world.begin()
        await world.run_for(minutes(2.5))
        announced = {key: json.loads(status) for key, status in world.board.advised_statuses.items()}
        if acts:
            assert announced == {}
        else:
            [container] = announced["default", "web"]["recommendation"]["containerRecommendations"]
            assert (container["containerName"], container["target"]["cpu"]) == ("app", "442m")

    story(main, acts=acts)


def test_a_restart_goes_on_from_checkpoints():
    """A new process recommends the same CPU from the checkpoints that the old one wrote."""

    async def main(world):
        await world.begin()
        for minute in range(20):
            world.usage.used["web-0"] = (100 + 90 * minute, 450_000_000)
            await world.run_for(minutes(1.2))
            world.controller = world.made()
        before = await world.target()
        assert before["cpu"] != "442m"
        world.usage.error = "no metrics today"
        await world.run_for(minutes(2.5))
        assert (await world.target())["cpu"] == before["cpu"]
        assert world.controller.metrics_error == "no metrics today"

    story(main)


def test_a_slow_metrics_api_is_waited_for():
    """For a period: an answer for all pods of a large cluster may take longer than a few seconds."""

    async def main(world):
        await world.begin()
        world.usage.delay = seconds(40)
        await world.run_for(minutes(1.9))
        assert (await world.target())["cpu"] == "442m"
        assert world.controller.samples is not None
        world.usage.delay = seconds(70)
        await world.run_for(minutes(2.1))
        assert world.controller.samples is None

    story(main)


def test_an_oom_of_a_pod_raises_its_memory():
    """A container that was killed for memory gets more than its request."""

    async def main(world):
        await world.begin()
        async with world.running():
            await world.clock.sleep(minutes(1.5))
            ended = {
                "terminated": {
                    "exitCode": 137,
                    "reason": "OOMKilled",
                    "startedAt": "2026-03-02T08:00:00Z",
                    "finishedAt": "2026-03-02T08:01:40Z",
                }
            }
            await world.show({"containerStatuses": [running(1, lastState=ended)]})
            await world.clock.sleep(minutes(1.5))
            assert int((await world.target())["memory"]) > 2400 * MIB

    story(main)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (vpa(target="gone"), "Cannot read targetRef. Reason: Deployment default/gone does not exist"),
        (
            vpa(kind="Widget"),
            'Cannot read targetRef. Reason: unhandled targetRef apps/v1 / Widget / web, last error no matches for kind "Widget" in group "apps"',
        ),
        ({"metadata": {"name": "web"}, "spec": {}}, "Cannot read targetRef. Reason: targetRef not defined"),
    ],
    ids=["missing", "unknown kind", "none"],
)
def test_a_target_that_cannot_be_read_is_a_condition(body, message):
    """A VPA without a usable target says so in a condition, and the others go on."""

    async def main(world):
        await world.begin(body, vpa("good"))
        await world.run_for(minutes(1.5))
        conditions = {one.type: one for one in (await world.status()).conditions}
        assert conditions["ConfigUnsupported"].message.startswith(message)
        assert conditions["RecommendationProvided"].status == "False"
        assert (await world.target("good"))["cpu"] == "442m"

    story(main)


def test_the_scale_of_a_target_is_read_in_every_pass():
    """A custom target that is made later, and a selector that changes, count in the next pass."""

    async def main(world):
        await world.begin()
        await world.add_custom_target()
        async with world.running():
            await world.clock.sleep(minutes(1.5))
            assert "ConfigUnsupported" in [one.type for one in (await world.status("tab")).conditions]
            status = {"replicas": 1, "selector": "app=web"}
            tab = {"metadata": {"name": "tab"}, "spec": {"replicas": 1}, "status": status}
            await world.cluster.create(TABS, tab, **WHERE)
            await world.clock.sleep(minutes(1))
            assert [one.type for one in (await world.status("tab")).conditions] == ["RecommendationProvided"]
            await world.cluster.patch(TABS, "tab", {"status": {"selector": "app=none"}}, **WHERE)
            await world.clock.sleep(minutes(1))
            types = [one.type for one in (await world.status("tab")).conditions]
            assert types == ["NoPodsMatched", "RecommendationProvided"]

    story(main)


def test_a_status_that_changes_while_a_scale_is_read_is_put_right():
    """What somebody else writes in the middle of a pass is written over in the next one."""

    async def main(world):
        await world.begin()
        await world.add_custom_target()
        tab = {"metadata": {"name": "tab"}, "status": {"replicas": 1, "selector": "app=none"}}
        await world.cluster.create(TABS, tab, **WHERE)
        get_scale, others = world.cluster.get_scale, [{"conditions": None, "recommendation": None}]

        async def slow(*args, **more):
            if others and world.clock.now() > START + minutes(3):
                world.usage.error = "no samples: bounds stay as they are"
                await world.cluster.patch(
                    VPAS, "web", {"status": others.pop()}, subresource="status", **WHERE
                )
                await world.clock.sleep(seconds(1))
            return await get_scale(*args, **more)

        world.cluster.get_scale = slow
        async with world.running():
            await world.clock.sleep(minutes(6.5))
            assert not others
            assert [one.type for one in (await world.status()).conditions] == ["RecommendationProvided"]
            assert set(await world.target()) == {"cpu", "memory"}

    story(main)


def test_kinds_that_could_not_be_read_are_read_again():
    """A custom target waits for one pass only where the API server did not say which kinds there are."""

    async def main(world):
        await world.begin()
        await world.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition(TABS, scale=SCALE))
        status = {"replicas": 1, "selector": "app=web"}
        tab = {"metadata": {"name": "tab"}, "spec": {"replicas": 1}, "status": status}
        await world.cluster.create(TABS, tab, **WHERE)
        reference = {"apiVersion": TABS.api_version, "kind": TABS.kind, "name": "tab"}
        body = {"metadata": {"name": "tab"}, "spec": {"targetRef": reference}}
        await world.cluster.create(VPAS, body, **WHERE)
        kinds, failures = world.cluster.kinds, [Unavailable("no discovery")]

        async def flaky():
            if failures:
                raise failures.pop()
            return await kinds()

        world.cluster.kinds = flaky
        async with world.running():
            await world.clock.sleep(minutes(1.5))
            conditions = {one.type: one for one in (await world.status("tab")).conditions}
            assert conditions["ConfigUnsupported"].message.endswith("last error no discovery")
            await world.clock.sleep(minutes(1))
            assert [one.type for one in (await world.status("tab")).conditions] == ["RecommendationProvided"]

    story(main)


def test_a_workload_of_an_operator_is_a_target():
    """A Deployment that belongs to a custom resource without a scale gets its recommendation."""

    async def main(world):
        await world.begin()
        uid = (await world.cluster.get(VPAS, "web", **WHERE)).metadata.uid
        owner = {"apiVersion": VPAS.api_version, "kind": VPAS.kind, "name": "web", "uid": uid}
        owners = [{**owner, "controller": True}]
        await world.cluster.patch(DEPLOYMENTS, "web", {"metadata": {"ownerReferences": owners}}, **WHERE)
        await world.run_for(minutes(1.5))
        assert [one.type for one in (await world.status()).conditions] == ["RecommendationProvided"]

    story(main)


def test_a_checkpoint_without_a_vpa_is_deleted():
    """A checkpoint whose VPA was deleted is deleted within the interval of their collection."""

    async def main(world):
        await world.begin()
        async with world.running():
            await world.clock.sleep(minutes(1.5))
            await world.cluster.delete(VPAS, "web", **WHERE)
            await world.clock.sleep(minutes(12))
            assert not (await world.cluster.list(VPA_CHECKPOINTS)).items

    story(main)


def test_the_checkpoint_of_a_vpa_that_cannot_be_read_stays():
    """Also after a restart, which never saw the VPA as it was; and it is gone on from once the field is mended."""

    async def main(world):
        await world.begin()
        await world.run_for(minutes(1.5))
        for size in ("two", 2):
            patch = {"spec": {"updatePolicy": {"minReplicas": size}}}
            await world.cluster.patch(VPAS.untyped, "web", patch, **WHERE)
            world.controller = world.made()
            await world.run_for(minutes(25))
            [checkpoint] = (await world.cluster.list(VPA_CHECKPOINTS)).items
        assert checkpoint.status.first_sample_start == "2026-03-02T08:01:00Z"

    story(main)


def test_records_decide_again():
    """From any full record on, the core decides the same commands and results, byte by byte."""

    async def main(world):
        await world.begin()
        await world.run_for(minutes(7.5))
        core, begun = ALGORITHM.core(), False
        records = [msgspec.json.decode(line, type=Record) for line in world.recorder.lines]
        assert len(records) == 7
        said = [[reason.code for reason in record.reasons] for record in records[:4]]
        assert said == [["Recommended"] * 2, [], [], ["Recommended"] * 2], (
            "new ones, and all of a full record"
        )
        assert [record.repeated for record in records[:4]] == [0, 1, 1, 0]
        for record in records[3:]:
            assert record.full or begun
            core.apply(bytes(record.state), full=record.full and not begun)
            begun = True
            if record.full and record.tick > 4:
                core.apply(bytes(record.state), full=True)
            assert core.decide(record.now) == bytes(record.commands)
            assert core.absorb(bytes(record.outcomes), record.now) == bytes(record.result)

    story(main)
