"""Metric sources that fail, hang or answer nonsense harm the HPAs that need them, and nobody else."""

from __future__ import annotations

import asyncio

import msgspec
import numpy as np
import pytest
from tests.horizontal import worlds
from tests.horizontal.running import check_replay, play

from kubetide.horizontal.controller.sources import PATIENCE, PAUSE, GuardedSource
from kubetide.objects.kinds import NAMESPACES, PODS
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import ExternalValues
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import hours, minutes, seconds

QUEUE = ("external", "default", "queue", "")


def by_queue(name):
    metrics = [worlds.external({"averageValue": "10"})]
    return {"name": name, "extra": {"spec": {"metrics": metrics}}}


async def message_of(world, name):
    conditions = (await world.hpa(name)).status.conditions
    return next(one.message for one in conditions if one.type == "ScalingActive")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (ZeroDivisionError("bug"), "the source of external metrics failed: ZeroDivisionError: bug"),
        ([float("nan")], "no whole number of thousandths in 64 bits"),
        ([1 << 80], "no whole number of thousandths in 64 bits"),
        (["many"], "no whole number of thousandths in 64 bits"),
    ],
)
def test_a_source_that_answers_nonsense(answer, text):
    """An exception of any kind, NaN and absurd values are the condition of the HPA that asked; the other one scales."""

    async def story(world):
        world.usage.milli = 200
        await world.add()
        await world.add(**by_queue("worker"))

        async def external_values(metric, *, namespace, selector=""):
            if isinstance(answer, Exception):
                raise answer
            return ExternalValues(answer, 0)

        world.measured.external_values = external_values
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert text in await message_of(world, "worker")
            assert (await world.replicas(), await world.replicas("worker")) == (4, 2)

    play(story)


def test_samples_that_do_not_fit_together():
    """An answer of pods whose columns have other lengths ends no tick."""

    async def story(world):
        await world.add()
        await world.add(**by_queue("worker"))
        world.measured.answers[QUEUE] = [60_000]
        whole = world.usage.pod_samples

        async def pod_samples(namespace="", labels=""):
            found = await whole(namespace, labels)
            return msgspec.structs.replace(found, timestamp_ns=np.zeros(1, np.int64))

        world.usage.pod_samples = pod_samples
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert "columns of other lengths" in await message_of(world, "web")
            assert await world.replicas("worker") == 4

    play(story)


def test_one_namespace_that_is_refused_harms_only_its_own():
    """Where the whole cluster may not be listed, each namespace is: one question for its two HPAs."""

    async def story(world):
        world.usage.cluster_wide, world.usage.milli = False, 200
        await world.add()
        await world.add("shop")
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert world.usage.questions == [("", ""), ("default", "")]
            assert (await world.replicas(), await world.replicas("shop")) == (4, 4)
            world.usage.error = 'pods.metrics.k8s.io is forbidden: no list in the namespace "default"'
            await world.clock.sleep(seconds(15))
            for name in ("web", "shop"):
                assert world.usage.error in await message_of(world, name)

    play(story)


@pytest.mark.parametrize(("others", "alone"), [(15, False), (19, True)])
def test_the_samples_of_a_small_part_are_requested_alone(others, alone):
    """Where fewer than a tenth of the pods are in the namespaces of HPAs, nobody is asked about all the others."""

    async def story(world):
        world.usage.milli = 200
        await world.add()
        await world.cluster.create(NAMESPACES, builders.namespace("batch"))
        for number in range(others):
            await world.cluster.create(PODS, builders.pod(f"job-{number}"), namespace="batch")
        async with world.running():
            await world.clock.sleep(seconds(16))
            world.usage.questions.clear()
            await world.clock.sleep(seconds(15))
            assert world.usage.questions == ([("default", "app=web")] if alone else [("", "")])
            await world.add("shop", replicas=0)
            world.usage.questions.clear()
            await world.clock.sleep(seconds(15))
            assert world.usage.questions == ([("default", "")] if alone else [("", "")])
            assert await world.replicas() == 4
        return world.recorder.lines

    check_replay(play(story))


def test_samples_and_values_are_requested_at_the_same_time():
    """A slow answer of one API does not delay the other's."""

    async def story(world):
        await world.add()
        await world.add(**by_queue("worker"))
        world.measured.answers[QUEUE] = [20_000]
        both = asyncio.Event()
        whole, external = world.usage.pod_samples, world.measured.external_values

        async def pod_samples(namespace="", labels=""):
            await both.wait()
            return await whole(namespace, labels)

        async def external_values(metric, *, namespace, selector=""):
            both.set()
            return await external(metric, namespace=namespace, selector=selector)

        world.usage.pod_samples, world.measured.external_values = pod_samples, external_values
        async with world.running():
            await world.clock.sleep(seconds(17))
            assert "successfully" in await message_of(world, "web")

    play(story)


def guarded(story):
    return run_virtual(lambda clock: story(clock, GuardedSource("queues", clock)), start=worlds.NOW)


def test_a_source_that_hangs_is_given_up_on_and_left_alone_for_a_while():
    """Three questions in a row time out; then nobody is asked until a pause is over, and an answer ends it."""

    async def story(clock, guard):
        asked = []

        async def hangs():
            asked.append(clock.monotonic())
            await clock.sleep(seconds(3600))

        async def refused(question):
            with pytest.raises(MetricsError) as caught:
                await guard.ask(question)
            return str(caught.value)

        async def answers():
            return 7

        for _ in range(3):
            assert await refused(hangs) == "the source of queues did not answer within 10s"
        assert clock.monotonic() - asked[0] == 3 * PATIENCE
        assert "3 questions in a row; it is asked again within 1m0s" in await refused(answers)
        await clock.sleep(PAUSE)
        await refused(hangs)
        assert "in a row" in await refused(answers)
        await clock.sleep(PAUSE)
        assert await guard.ask(answers) == 7
        await refused(hangs)
        await refused(hangs)
        assert await guard.ask(answers) == 7
        assert (len(asked), guard.failures) == (6, 0)

    guarded(story)


def test_a_refusal_is_an_answer():
    """A metric that does not exist says nothing against its source, and a bug of a source is counted."""

    async def story(clock, guard):
        async def missing():
            raise MetricsError("no such metric")

        async def bug():
            raise KeyError("x")

        for _ in range(5):
            with pytest.raises(MetricsError, match="no such metric"):
                await guard.ask(missing)
        with pytest.raises(MetricsError, match="KeyError"):
            await guard.ask(bug)
        assert guard.failures == 1
        assert "KeyError" in guard.last_failure

    guarded(story)


def test_metrics_that_hang_keep_no_other_of_the_same_source():
    """Six queries are never answered, and come first by name; the seventh is answered in each tick but those of the first pause."""

    async def story(world):
        for number in range(6):
            metrics = [worlds.external({"averageValue": "10"}, metric=f"hangs-{number}")]
            await world.add(f"odd-{number}", extra={"spec": {"metrics": metrics}})
        await world.add(**by_queue("worker"))
        answered = []

        async def external_values(metric, *, namespace, selector=""):
            if metric != "queue":
                await world.clock.sleep(hours(1))
            answered.append(world.clock.now())
            return ExternalValues([20_000], world.clock.now())

        world.measured.external_values = external_values
        async with world.running():
            await world.clock.sleep(minutes(3))
            answered.clear()
            await world.clock.sleep(minutes(5))
        assert len(answered) >= 15

    play(story)
