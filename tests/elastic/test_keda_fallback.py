"""The field ``fallback`` of ScaledObjects: what is counted, what the HPA goes by, and how it is told."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.elastic.scaled_objects import CPU, EXTERNAL, NOW, PROMETHEUS, START, cron, source
from tests.elastic.scalers import QueueScaler, serving
from tests.elastic.test_keda_faults import controller, shown

from kubetide.elastic.keda.commands import Outcome
from kubetide.elastic.keda.controller.owning import QueueMetrics
from kubetide.elastic.keda.core import ALGORITHM
from kubetide.elastic.keda.decide import decide
from kubetide.elastic.keda.hpas import LABEL, TriggerMetric
from kubetide.elastic.keda.outcomes import absorb
from kubetide.elastic.keda.outlook import lines
from kubetide.elastic.keda.sources import read_source
from kubetide.elastic.keda.state import Answer, Delta
from kubetide.objects.kinds import SCALED_OBJECTS
from kubetide.objects.timetables import ScaledObject
from kubetide.ports.errors import MetricsError
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import Instant, seconds

THREE = {"failureThreshold": 3, "replicas": 6}
METRICS = (TriggerMetric(0, "waiting", 5000), TriggerMetric(1, "prometheus", 2000))


def fallback(*, triggers=(EXTERNAL, PROMETHEUS), **more):
    return source(triggers=list(triggers), fallback={**THREE, **more}, minReplicaCount=0)


class Story:
    """One object with two triggers, looked at every 30 s."""

    def __init__(self, found):
        self.core, self.source, self.now = ALGORITHM.core(), found, NOW
        self.core.state.apply(Delta(sources=(found,)))
        self.notices = []

    def look(self, *failed, replicas=4, active=False):
        """Answer for the triggers, of which some fail; return the commands."""
        error = "; ".join(f"triggers[{place}]: no answer" for place in failed)
        answer = Answer(
            self.source.key, active, error, METRICS, replicas, "1", by=("s9-x",) * active, failed=failed
        )
        self.core.state.apply(Delta(answers=(answer,)))
        commands = decide(self.core.state, self.now)
        result = absorb(self.core.state, commands, [Outcome()] * len(commands.writes), self.now)
        self.notices += [(one.reason, one.message) for one in (*commands.notices, *result.notices)]
        self.now = Instant(self.now + seconds(30))
        return commands

    @property
    def status(self):
        return msgspec.json.decode(self.core.state.memory[self.source.key].status)

    @property
    def said(self):
        return {one["type"]: (one["status"], one["reason"]) for one in self.status["conditions"]}


def values(commands):
    return {metric: milli for _, found in commands.fallbacks for metric, milli in found}


def test_after_the_threshold_a_metric_has_the_value_of_the_fallback():
    """At the fourth failure in a row the HPA comes to 6 pods; the first answer ends it."""
    story = Story(fallback())
    assert [values(story.look(0)) for _ in range(3)] == [{}, {}, {}]
    assert story.said["Fallback"] == ("False", "NoFallbackFound")
    assert story.status["health"]["s0-waiting"] == {"numberOfFailures": 3, "status": "Failing"}
    assert values(story.look(0)) == {"s0-waiting": 6 * 5000}
    assert story.said["Fallback"] == ("True", "FallbackExists")
    assert story.status["health"]["s1-prometheus"] == {"numberOfFailures": 0, "status": "Happy"}
    assert values(story.look(0)) == {"s0-waiting": 6 * 5000}
    assert values(story.look()) == {}
    assert story.said["Fallback"] == ("False", "NoFallbackFound")
    assert [one for one in story.notices if one[0] != "InvalidScaledObject"] == [
        ("ScaledObjectFallbackActivated", "ScaledObject fallback is active"),
        ("ScaledObjectFallbackDeactivated", "ScaledObject fallback is no longer active"),
    ]


def test_a_metric_that_falls_back_is_work():
    """From none the target starts, triggered by the metric; before that a failure takes nothing away and starts nothing."""
    story = Story(fallback(failureThreshold=1))
    assert story.look(0, replicas=0).writes == ()
    assert story.said["Active"] == ("False", "ScalerNotActive")
    [write] = story.look(0, replicas=0).writes
    assert write.replicas == 1
    assert story.said["Active"] == ("True", "ScalerActive")
    assert story.said["Ready"] == ("True", "ScaledObjectReady")
    assert story.notices[-1][1].endswith("from 0 to 1, triggered by s0-waiting")


def test_ready_says_what_has_no_fallback_yet():
    """With work elsewhere Ready is unknown until the fallback stands for the trigger; without work it is true."""
    story = Story(fallback(failureThreshold=1))
    story.look(0, active=True)
    assert story.said["Ready"] == ("Unknown", "PartialTriggerError")
    story.look(0, active=True)
    assert story.said["Ready"] == ("True", "ScaledObjectReady")
    story.look(0, 1, active=True)
    assert story.said["Ready"] == ("Unknown", "PartialTriggerError")
    other = Story(fallback())
    other.look(0)
    assert other.said["Ready"] == ("True", "ScaledObjectReady")


@pytest.mark.parametrize(
    ("behavior", "current", "replicas"),
    [
        ("static", 9, 6),
        ("", 9, 6),
        ("currentReplicas", 9, 9),
        ("currentReplicas", 2, 2),
        ("currentReplicasIfHigher", 9, 9),
        ("currentReplicasIfHigher", 2, 6),
        ("currentReplicasIfLower", 9, 6),
        ("currentReplicasIfLower", 2, 2),
    ],
)
def test_behaviors(behavior, current, replicas):
    """The replicas of the fallback, the current ones, or the larger or smaller of both."""
    story = Story(fallback(failureThreshold=0, behavior=behavior))
    assert values(story.look(1, replicas=current)) == {"s1-prometheus": replicas * 2000}


def test_a_restart_forgets_no_failure():
    """The status tells how often each metric failed."""
    story = Story(fallback())
    for _ in range(3):
        story.look(0)
    again = msgspec.structs.replace(story.source, failures=(("s0-waiting", 3),))
    body = {"spec": {}, "status": {"health": story.status["health"]}}
    assert ("s0-waiting", 3) in read_source(msgspec.convert(body, ScaledObject)).failures
    restarted = Story(again)
    assert values(restarted.look(0)) == {"s0-waiting": 6 * 5000}


def test_metrics_that_are_gone_leave_the_status():
    """Also those of a fallback that is taken out."""
    story = Story(fallback())
    story.look(0)
    story.core.state.apply(Delta(sources=(source(triggers=[EXTERNAL, PROMETHEUS]),)))
    story.source = story.core.state.sources[story.source.key]
    story.look(0)
    assert story.status["health"] is None
    assert "Fallback" not in story.said


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (source(fallback={"replicas": 3}), "fallback.failureThreshold: None is no whole number"),
        (fallback(replicas=-1), "fallback.replicas: -1 is no whole number from 0 on"),
        (fallback(replicas="6"), "fallback.replicas: '6' is no whole number"),
        (fallback(replicas=True), "fallback.replicas: True is no whole number"),
        (fallback(behavior="scalingModifiers"), "fallback.behavior: 'scalingModifiers' is none of static"),
        (fallback(triggers=[CPU]), "fallback: needs a trigger that is neither cpu nor memory"),
        (
            fallback(triggers=[{**EXTERNAL, "metricType": "Value"}]),
            "triggers[0].metricType: Value has no fallback; write AverageValue",
        ),
    ],
)
def test_what_cannot_be_a_fallback_is_refused_by_name(given, words):
    """The field is named."""
    assert words in "; ".join(given.refused)


def test_a_window_that_is_for_all_pods_needs_no_fallback():
    """It never fails."""
    window = {**cron("0 9 * * *", "0 17 * * *", 5), "metricType": "Value"}
    assert fallback(triggers=[EXTERNAL, window]).refused == ()


def test_explain_names_the_fallback():
    """Which metric failed how often, and what the HPA goes by."""
    story = Story(fallback(failureThreshold=0, behavior="currentReplicasIfHigher"))
    story.look(0)
    found = lines(story.core, "shop/worker", START, "")
    assert (
        "s0-waiting: 1 failures in a row, so the HPA goes by the fallback of 6 replicas, currentReplicasIfHigher"
        in found
    )


@given(
    rounds=st.lists(st.tuples(st.sets(st.sampled_from([0, 1])), st.booleans()), max_size=12),
    threshold=st.integers(0, 3),
    replicas=st.integers(0, 9),
)
def test_failures_take_nothing_away(rounds, threshold, replicas):
    """While any trigger fails nothing is scaled down, whatever the threshold, and a value stands only above it."""
    story, in_a_row = Story(fallback(failureThreshold=threshold, replicas=replicas)), {0: 0, 1: 0}
    for failed, active in rounds:
        in_a_row = {place: in_a_row[place] + 1 if place in failed else 0 for place in in_a_row}
        commands = story.look(*sorted(failed), active=active)
        if failed:
            assert [one for one in commands.writes if one.replicas < one.current] == []
        names = {0: "s0-waiting", 1: "s1-prometheus"}
        assert set(values(commands)) == {names[one] for one in names if in_a_row[one] > threshold}


def test_a_real_server_that_fails_falls_back_and_recovers():
    """The metric that the HPA reads is 6 pods' worth while the server is down, and its own value again afterwards."""

    async def run(clock):
        scaler = QueueScaler(lambda _: 20)
        async with serving(scaler) as address, controller(clock, address) as (loop, cluster):
            spec = {"fallback": {"failureThreshold": 1, "replicas": 6}}
            await cluster.patch(SCALED_OBJECTS, "worker", {"spec": spec}, namespace="default")
            await clock.sleep(seconds(0.2))
            await loop.tick()
            metrics = QueueMetrics(None, loop.shows, loop.servers, clock)

            async def value():
                how = {"namespace": "default", "selector": f"{LABEL}=worker"}
                return (await metrics.external_values("s0-waiting", **how)).milli

            assert await value() == [20_000]
            scaler.error = "restarting"
            await clock.sleep(seconds(1.1))
            await loop.tick()
            with pytest.raises(MetricsError, match="restarting"):
                await value()
            await clock.sleep(seconds(1.1))
            await loop.tick()
            assert shown(loop) == ["s0-waiting"]
            assert await value() == [30_000]
            found = await cluster.get(SCALED_OBJECTS.untyped, "worker", namespace="default")
            assert found["status"]["health"] == {"s0-waiting": {"numberOfFailures": 2, "status": "Failing"}}
            scaler.error = ""
            assert await value() == [20_000]
            await clock.sleep(seconds(1.1))
            await loop.tick()
            scaler.error = "restarting"
            with pytest.raises(MetricsError, match="restarting"):
                await value()

    run_real(run)


def test_a_server_that_has_no_values_counts_as_failing():
    """It says that there is work and what to go by, but not how much: the fallback counts that, too."""

    class Mute(QueueScaler):
        async def GetMetrics(self, request, context):
            self.error = "no values"
            try:
                await self.check(context)
            finally:
                self.error = ""

    async def run(clock):
        async with serving(Mute(lambda _: 20)) as address, controller(clock, address) as (loop, cluster):
            spec = {"fallback": {"failureThreshold": 0, "replicas": 6}}
            await cluster.patch(SCALED_OBJECTS, "worker", {"spec": spec}, namespace="default")
            await clock.sleep(seconds(0.2))
            await loop.tick()
            assert loop.state.memory["default", "worker"].failures == (("s0-waiting", 1),)

    run_real(run)
