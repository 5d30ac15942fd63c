"""KEDA's annotations on ScaledObjects: a size to pause at, one direction to pause, and work that is forced."""

from __future__ import annotations

import msgspec
import pytest
from tests.elastic.running import HOME
from tests.elastic.scaled_objects import CPU, EXTERNAL, NOW, START, answer, source
from tests.elastic.test_keda_mixed import HALF, MORNING, add, at, run, said, status

from kubetide.elastic.keda.commands import Outcome
from kubetide.elastic.keda.core import ALGORITHM
from kubetide.elastic.keda.decide import decide, size_of
from kubetide.elastic.keda.hpas import hpa_of
from kubetide.elastic.keda.outcomes import absorb
from kubetide.elastic.keda.state import Answer, Delta
from kubetide.objects.hpa import HpaStatus
from kubetide.objects.kinds import EVENTS, SCALED_OBJECTS
from kubetide.objects.scaled_objects import FORCED, PAUSED, PAUSED_AT, PAUSED_DOWN, PAUSED_UP
from kubetide.units.time import Instant, after, minutes, seconds

LONG_AGO = Instant(START - minutes(6))


def annotated(annotation, value="true", **spec):
    return source(annotations={annotation: value}, **spec)


@pytest.mark.parametrize(
    ("given", "last", "found", "size"),
    [
        (annotated(PAUSED_AT, "3"), LONG_AGO, answer(0), 3),
        (annotated(PAUSED_AT, "0"), LONG_AGO, answer(4, active=True), 0),
        (annotated(PAUSED_AT, "3"), LONG_AGO, answer(3, active=True), None),
        (annotated(PAUSED_AT, "3", maxReplicaCount=2), LONG_AGO, answer(1), 3),
        (annotated(PAUSED), LONG_AGO, answer(4), None),
        (annotated(PAUSED_DOWN), LONG_AGO, answer(4), None),
        (annotated(PAUSED_DOWN), LONG_AGO, answer(0, active=True), 1),
        (annotated(PAUSED_UP), LONG_AGO, answer(0, active=True), None),
        (annotated(PAUSED_UP), LONG_AGO, answer(4), 0),
        (annotated(PAUSED_UP, minReplicaCount=2), LONG_AGO, answer(0), 2),
        (annotated(FORCED), LONG_AGO, answer(0), 1),
        (annotated(FORCED, minReplicaCount=3, idleReplicaCount=0), LONG_AGO, answer(0), 3),
        (annotated(FORCED), LONG_AGO, answer(4), None),
        (annotated(FORCED, "false"), LONG_AGO, answer(4), 0),
        (annotated(FORCED), LONG_AGO, answer(0, error="no answer"), 1),
    ],
)
def test_what_annotations_make_of_the_size(given, last, found, size):
    """As in KEDA's executor; the minimum is kept even where scaling out is paused."""
    assert given.refused == ()
    assert size_of(given, found, last, NOW) == size


def test_a_paused_direction_is_off_in_the_behavior():
    """The rest of the behavior stays; the other direction is as it was."""
    config = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 30}}}
    advanced = {"horizontalPodAutoscalerConfig": config}

    def behavior(annotation):
        found = annotated(annotation, advanced=advanced)
        return msgspec.to_builtins(hpa_of(found, (), HpaStatus()).spec.behavior)

    assert behavior(PAUSED_DOWN) == {
        "scaleDown": {"stabilizationWindowSeconds": 30, "selectPolicy": "Disabled"}
    }
    assert behavior(PAUSED_UP) == {**config["behavior"], "scaleUp": {"selectPolicy": "Disabled"}}


@pytest.mark.parametrize(
    ("annotation", "found", "active", "paused"),
    [
        (PAUSED_DOWN, answer(4), "ScalerNotActive", True),
        (PAUSED_UP, answer(4), "ScalerCooldown", True),
        (PAUSED_AT, answer(4), "ScalerNotActive", True),
        (FORCED, answer(4), "ScalerActive", False),
    ],
)
def test_conditions_of_annotated_objects(annotation, found, active, paused):
    """Active has KEDA's reasons; any pause is a condition."""
    given = annotated(annotation, "4")
    core = ALGORITHM.core()
    core.state.apply(Delta(sources=(msgspec.structs.replace(given, last_active=START),), answers=(found,)))
    [(_, raw)] = decide(core.state, NOW).statuses
    conditions = {one["type"]: one for one in msgspec.json.decode(raw)["conditions"]}
    assert conditions["Active"]["reason"] == active
    assert ("Paused" in conditions) is paused
    if annotation == FORCED:
        assert "forced by annotation" in conditions["Active"]["message"]


def test_a_paused_target_gets_its_size_once():
    """KEDA sets the size and rests: who changes it then is not hindered; another number is set again."""
    state, given = ALGORITHM.core().state, annotated(PAUSED_AT, "3")
    key = given.key

    def look(now, replicas):
        """Return the sizes that are written, where the target is read at all."""
        asked = state.asks(key)
        state.apply(Delta(answers=(answer(replicas),) if asked else ()))
        commands = decide(state, now)
        absorb(state, commands, [Outcome()] * len(commands.writes), now)
        return [one.replicas for one in commands.writes] if asked else None

    state.apply(Delta(sources=(given,)))
    later = [Instant(NOW + n * seconds(30)) for n in range(6)]
    assert look(later[0], 7) == [3]
    assert look(later[1], 5) == [3]  # an autoscaler was at it
    assert look(later[2], 3) == []
    assert [look(later[n], 8) for n in (3, 4)] == [None, None]
    assert state.follows(key) is False
    state.apply(Delta(sources=(annotated(PAUSED_AT, "4"),)))
    assert state.due(later[5]) == [key]
    assert look(later[5], 8) == [4]


def test_a_paused_target_that_cannot_be_read_is_read_again():
    """The reason stands in the condition; nothing is taken for settled."""
    state, given = ALGORITHM.core().state, annotated(PAUSED_AT, "1")
    unread = Answer(given.key, error="not found", replicas=1, unread=True)
    state.apply(Delta(sources=(given,), answers=(unread,)))
    commands = decide(state, NOW)
    assert commands.writes == ()
    absorb(state, commands, [], NOW)
    assert state.asks(given.key)
    assert state.due(after(NOW, seconds(30))) == [given.key]


def test_work_that_is_forced_says_so():
    """The event names the annotation in place of triggers."""
    state, given = ALGORITHM.core().state, annotated(FORCED)
    state.apply(Delta(sources=(given,), answers=(answer(0),)))
    [notice] = absorb(state, decide(state, NOW), [Outcome()], NOW).notices
    assert notice.message == (
        "Scaled apps/v1.Deployment shop/worker from 0 to 1, caused by forced activation annotation"
    )


def test_paused_replicas_hold_against_cpu_until_the_annotation_goes():
    """No HPA is shown meanwhile, so that nothing takes the size away; then cpu scales again."""

    async def story(world):
        world.usage.milli = 200
        await add(world, HALF, minReplicaCount=1, annotations={PAUSED_AT: "1"}, pollingInterval=10)
        async with world.running():
            assert await at(world, "08:03:00") == 1
            assert (await status(world))["pausedReplicaCount"] == 1
            assert (await said(world))["Paused"] == "ScaledObjectPaused"
            patch = {"metadata": {"annotations": {PAUSED_AT: None}}}
            await world.cluster.patch(SCALED_OBJECTS, "web", patch, namespace=HOME)
            assert await at(world, "08:04:00") == 4
            found = await status(world)
            assert "pausedReplicaCount" not in found
            assert "Paused" not in await said(world)
        events = (await world.cluster.list(EVENTS, namespace=HOME)).items
        assert [one.reason for one in events if one.type == "Warning"] == []

    run(story)


def test_scaling_in_is_paused_and_out_is_not():
    """After the window the 5 pods stay; without the annotation they would go to 2."""

    async def story(world):
        spec = {"minReplicaCount": 1, "pollingInterval": 10}
        await add(world, HALF, MORNING, annotations={PAUSED_DOWN: ""}, **spec)
        async with world.running():
            assert await at(world, "08:12:00") == 5
            assert await at(world, "08:50:00") == 5

    run(story)


def test_scaling_out_is_paused_and_the_minimum_is_kept():
    """Neither the window nor cpu adds a pod above the minimum."""

    async def story(world):
        world.usage.milli = 200
        await add(world, HALF, MORNING, annotations={PAUSED_UP: "yes"}, minReplicaCount=3)
        async with world.running():
            assert await at(world, "08:12:00") == 3

    run(story)


def test_forced_work_starts_from_none():
    """Without a window and without an active trigger there is one pod, and the object is active."""

    async def story(world):
        await add(world, HALF, MORNING, annotations={FORCED: "true"}, pollingInterval=10, cooldownPeriod=10)
        async with world.running():
            assert await at(world, "08:05:00") == 2
            assert (await said(world))["Active"] == "ScalerActive"
            patch = {"metadata": {"annotations": {FORCED: None}}}
            await world.cluster.patch(SCALED_OBJECTS, "web", patch, namespace=HOME)
            assert await at(world, "08:06:00") == 0

    run(story)


def test_a_pause_with_a_size_stands_for_any_kind_of_trigger():
    """Also where the triggers themselves would be work."""
    assert annotated(PAUSED_AT, "2", triggers=[CPU, EXTERNAL]).paused is True
