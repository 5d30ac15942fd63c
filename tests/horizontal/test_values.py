"""Custom and external metrics, from the question to the replicas, on an embedded cluster in virtual time."""

from __future__ import annotations

import msgspec
import pytest
from tests.horizontal import worlds
from tests.horizontal.running import play

from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.explain.answers import explain
from kubetide.horizontal.options.annotations import MAX_AGE
from kubetide.horizontal.settings import FeatureGates
from kubetide.objects.kinds import HPAS
from kubetide.ports.metrics import ExternalValues
from kubetide.units.time import minutes, seconds

KEY = ("default", "web")
MAIN = ("networking.k8s.io/v1", "Ingress", "main")
QUEUE = ("external", "default", "queue", "")


def with_metrics(*metrics, **spec):
    return {"extra": {"spec": {"metrics": list(metrics), **spec}}}


@pytest.mark.parametrize(
    ("metric", "question", "answer", "reported", "working"),
    [
        (
            worlds.of_pods("100m"),
            ("pods", "default", "rps", "", "app=web"),
            {"web-0": 150, "web-1": 250},
            {"averageValue": "200m"},
            "rps of the pods: 200m of 100m: ratio 2 x 2 pods = 4, so 4 replicas",
        ),
        (
            worlds.of_object({"value": "10"}),
            ("object", "default", "hits", "", *MAIN),
            20_000,
            {"value": "20"},
            "hits of Ingress main: 20 of 10: ratio 2 x 2 pods = 4, so 4 replicas",
        ),
        (
            worlds.of_object({"averageValue": "10"}),
            ("object", "default", "hits", "", *MAIN),
            31_500,
            {"averageValue": "15750m"},
            "hits of Ingress main: 15750m of 10: ratio 1.575; 31500m / 10 = 3.15, so 4 replicas",
        ),
        (
            worlds.of_object({"value": "10"}, kind="Namespace", version="v1", name="any"),
            ("object", "default", "hits", "", "v1", "Namespace", "default"),
            20_000,
            {"value": "20"},
            "hits of Namespace any: 20 of 10: ratio 2 x 2 pods = 4, so 4 replicas",
        ),
        (
            worlds.external({"value": "10"}, selector={"matchLabels": {"lane": "fast"}}),
            ("external", "default", "queue", "lane=fast"),
            [5_000, 15_000],
            {"value": "20"},
            "external queue{lane=fast}: 20 of 10: ratio 2 x 2 pods = 4, so 4 replicas",
        ),
        (
            worlds.external({"averageValue": "10"}),
            QUEUE,
            [20_000, 20_000],
            {"averageValue": "20"},
            "external queue: 20 of 10: ratio 2; 40 / 10 = 4, so 4 replicas",
        ),
    ],
    ids=["pods", "object-value", "object-average", "namespace", "external-value", "external-average"],
)  # fmt: skip
def test_every_type_scales_and_is_explained(metric, question, answer, reported, working):
    """Each type asks its question once, gives four replicas, reports its value and says how."""

    async def story(world):
        world.measured.answers = {question: answer}
        await world.add(**with_metrics(metric))
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert world.measured.questions == [question]
            assert await world.replicas() == 4
            [status] = (await world.hpa()).status.current_metrics
            body = msgspec.to_builtins(status)
            [current] = [value["current"] for value in body.values() if isinstance(value, dict)]
            assert (status.type, current) == (metric["type"], reported)
        core = HorizontalCore()
        record = msgspec.json.decode(world.recorder.lines[0])
        core.apply(msgspec.json.encode(record["state"]), full=True)
        return explain(core.state, KEY, record["now"]).lines()

    assert working in play(story)


def test_a_sum_is_as_old_as_its_oldest_series():
    """With max-age one stale series of two fails the metric, though the first is fresh."""

    async def story(world):
        async def external_values(metric, *, namespace, selector=""):
            now = world.clock.now()
            return ExternalValues([10_000, 30_000], now, (), now - minutes(10))

        world.measured.external_values = external_values
        extra = with_metrics(worlds.external({"averageValue": "10"}))["extra"]
        extra["metadata"] = {"annotations": {MAX_AGE: "2m"}}
        await world.add(extra=extra)
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert await world.replicas() == 2
            active = (await world.hpa()).status.conditions[1]
            assert "the value is 10m0s old" in active.message

    play(story)


def test_equal_questions_are_asked_once_and_few_at_a_time():
    """HPAs that share a metric share the answer; no more questions are in flight than the flag allows."""

    async def story(world):
        for index in range(3):
            name = f"app-{index}"
            shared = worlds.external({"averageValue": "10"})
            own = [worlds.external({"value": "1"}, metric=f"q{index}-{n}") for n in range(2)]
            await world.add(name, **with_metrics(shared, *own))
        async with world.running():
            await world.clock.sleep(seconds(16))
        questions = world.measured.questions
        assert len(questions) == len(set(questions)) == 7
        assert world.measured.most == 2

    play(story, concurrent_syncs=2)


def test_metrics_that_do_not_matter_are_not_requested():
    """Above its maximum an HPA goes there at once, whatever its metrics say."""

    async def story(world):
        await world.add(replicas=3, max_replicas=2, **with_metrics(worlds.external({"value": "1"})))
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert await world.replicas() == 2
        assert world.measured.questions == []

    play(story)


def test_a_metric_that_fails_harms_only_those_who_need_it():
    """The HPA of the failing metric says why and stays; the other one is scaled."""

    async def story(world):
        world.measured.answers = {QUEUE: [40_000], ("external", "default", "gone", ""): "it is down"}
        await world.add("web", **with_metrics(worlds.external({"averageValue": "10"})))
        await world.add("lame", **with_metrics(worlds.external({"averageValue": "10"}, metric="gone")))
        async with world.running():
            await world.clock.sleep(seconds(16))
            assert (await world.replicas("web"), await world.replicas("lame")) == (4, 2)
            active = (await world.hpa("lame")).status.conditions[1]
            assert (active.status, active.reason) == ("False", "FailedGetExternalMetric")
            assert active.message == (
                "the HPA was unable to compute the replica count: "
                "unable to get external metric default/gone/nil: it is down"
            )

    play(story)


def test_without_a_source_the_api_is_not_there():
    """Metrics that nobody can answer fail in the words of upstream's clients."""
    metrics = [worlds.of_pods("1"), worlds.of_object({"value": "1"}), worlds.external({"value": "1"})]

    async def story(world):
        await world.add(**with_metrics(*metrics))
        async with world.running():
            await world.clock.sleep(seconds(16))
            return {reason: message for reason, message, _ in await world.events()}

    said = play(story, measures=False)
    missing = (
        "unable to fetch metrics from custom metrics API: "
        "no custom metrics API (custom.metrics.k8s.io) registered"
    )
    assert said["FailedGetPodsMetric"] == f"unable to get metric rps: {missing}"
    assert said["FailedGetObjectMetric"] == f"unable to get metric hits: Ingress on default main/{missing}"
    assert said["FailedGetExternalMetric"].endswith(
        "the server could not find the requested resource (get queue.external.metrics.k8s.io)"
    )


def test_to_zero_and_back():
    """With the gate on an empty queue takes the last pod away, and a new message brings one back."""

    async def story(world):
        world.measured.answers = {QUEUE: [0]}
        await world.add(min_replicas=0, **with_metrics(worlds.external({"averageValue": "10"})))
        async with world.running():
            await world.clock.sleep(minutes(6))
            assert await world.replicas() == 0
            zero = (await world.hpa()).status.conditions[-1]
            assert (zero.type, zero.status) == ("ScaledToZero", "True")
            await world.show_replicas(0)
            world.measured.answers = {QUEUE: [25_000]}
            await world.clock.sleep(seconds(16))
            assert await world.replicas() == 3
            assert (await world.hpa()).status.conditions[-1].status == "False"

    play(story, gates=FeatureGates(scale_to_zero=True))


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (5_000, "external metric queue(nil) above target"),
        (0, "Current number of replicas below Spec.MinReplicas"),
    ],
)
def test_the_reason_of_coming_back_from_zero(value, why):
    """A metric that recommends replicas is the reason also where it recommends fewer than the given minimum."""

    async def story(world):
        world.measured.answers = {QUEUE: [0]}
        rules = {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}
        behavior = {"scaleUp": rules, "scaleDown": {"stabilizationWindowSeconds": 0}}
        metric = worlds.external({"averageValue": "10"})
        await world.add(min_replicas=0, **with_metrics(metric, behavior=behavior))
        async with world.running():
            await world.clock.sleep(seconds(61))  # between two ticks
            assert await world.replicas() == 0
            await world.show_replicas(0)
            world.measured.answers = {QUEUE: [value]}
            patch = {"spec": {"minReplicas": 3}}
            await world.cluster.patch(HPAS, "web", patch, namespace="default")
            await world.clock.sleep(seconds(16))
            assert await world.replicas() == 3
            assert ("SuccessfulRescale", f"New size: 3; reason: {why}", 1) in await world.events()

    play(story, gates=FeatureGates(scale_to_zero=True))


def test_without_the_gate_nobody_comes_back_from_zero():
    """Upstream's default: an HPA may go to zero, and then scaling is disabled."""

    async def story(world):
        world.measured.answers = {QUEUE: [0]}
        await world.add(min_replicas=0, **with_metrics(worlds.external({"averageValue": "10"})))
        async with world.running():
            await world.clock.sleep(minutes(6))
            world.measured.answers, before = {QUEUE: [25_000]}, len(world.measured.questions)
            await world.clock.sleep(minutes(1))
            assert await world.replicas() == 0
            active = (await world.hpa()).status.conditions[1]
            assert (active.status, active.reason) == ("False", "ScalingDisabled")
            assert len(world.measured.questions) == before, "no metric matters to a target that stays at zero"

    play(story)


@pytest.mark.parametrize("first", [0, 3, 6])
def test_records_hold_the_answers(first):
    """From any full record on, a fresh core decides the recorded commands and results, with no source to ask."""
    metrics = [worlds.utilization(50), worlds.of_pods("5"), worlds.external({"averageValue": "10"})]

    async def story(world):
        await world.add(**with_metrics(*metrics))
        async with world.running():
            for load in (10, 25, 60, 90, 40, 10, 5, 5):
                pods = ("pods", "default", "rps", "", "app=web")
                values = {f"web-{n}": 1000 * load // 4 for n in range(2)}
                world.measured.answers = {pods: values, QUEUE: [500 * load, 500 * load]}
                if load == 40:
                    del world.measured.answers[QUEUE]
                await world.clock.sleep(seconds(15))
            await world.clock.sleep(seconds(1))
        return world.recorder.lines

    core, written, named = HorizontalCore(), set(), []
    for line in play(story)[first:]:
        record = msgspec.json.decode(line)
        core.apply(msgspec.json.encode(record["state"]), full=record.get("full", False))
        assert core.decide(record["now"]) == msgspec.json.encode(record["commands"])
        written |= {write["replicas"] for write in record["commands"]}
        values = {value["question"][0]: value for value in record["state"]["values"]}
        named.append(values["pods"]["pods"] is not None)
        result = core.absorb(msgspec.json.encode(record["outcomes"]), record["now"])
        assert result == msgspec.json.encode(record["result"])
    assert written or first
    # Every third record is full; between them names that are still the same are left out.
    assert named == [index % 3 == 0 for index in range(len(named))]
