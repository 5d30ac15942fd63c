"""ScaledObjects with external triggers: what is refused, when a workload starts and stops, its status and events."""

from __future__ import annotations

import msgspec
import pytest
from tests.elastic.scaled_objects import EXTERNAL, NOW, PROMETHEUS, START, answer, source

from kubetide.elastic.keda.commands import Outcome
from kubetide.elastic.keda.core import ALGORITHM
from kubetide.elastic.keda.decide import decide, size_of
from kubetide.elastic.keda.hpas import TriggerMetric, hpa_of
from kubetide.elastic.keda.outcomes import absorb
from kubetide.elastic.keda.outlook import lines
from kubetide.elastic.keda.state import Answer, Delta, State
from kubetide.objects.hpa import HpaStatus
from kubetide.objects.scaled_objects import PAUSED, PAUSED_AT
from kubetide.units.time import Instant, minutes, seconds

NEVER, JUST, LONG_AGO = None, Instant(START - minutes(4)), Instant(START - minutes(6))


@pytest.mark.parametrize(
    ("spec", "given", "last", "size"),
    [
        ({}, answer(0, active=True), NEVER, 1),
        ({"minReplicaCount": 3, "idleReplicaCount": 0}, answer(0, active=True), NEVER, 3),
        ({}, answer(4, active=True), NEVER, None),
        ({}, answer(4), JUST, None),
        ({}, answer(4), LONG_AGO, 0),
        ({"cooldownPeriod": 600}, answer(4), LONG_AGO, None),
        ({}, answer(4), NEVER, 0),
        ({"initialCooldownPeriod": 60}, answer(4), NEVER, None),
        ({"initialCooldownPeriod": 60}, answer(4), LONG_AGO, 0),
        ({}, answer(0), NEVER, None),
        ({"minReplicaCount": 2}, answer(4), LONG_AGO, None),
        ({"minReplicaCount": 2}, answer(0), LONG_AGO, 2),
        ({"minReplicaCount": 2, "idleReplicaCount": 0}, answer(4), LONG_AGO, 0),
        ({}, answer(4, error="no answer"), LONG_AGO, None),
    ],
)
def test_when_a_workload_starts_and_stops(spec, given, last, size):
    """KEDA's rules: at once from none, to none or idle after the cooldown, and nothing on an error."""
    assert size_of(source(**spec), given, last, NOW) == size


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (source({"type": "external", "metadata": {}}), "triggers[0].metadata.scalerAddress: is missing"),
        (source({**EXTERNAL, "metricType": "Utilization"}), "triggers[0].metricType: 'Utilization'"),
        (source({**EXTERNAL, "authenticationRef": {"name": "x"}}), "triggers[0].authenticationRef"),
        (source({**EXTERNAL, "useCachedMetrics": True}), "triggers[0].useCachedMetrics"),
        (
            source({"type": "external", "metadata": {"scalerAddress": "a:1", "enableTLS": "true"}}),
            "metadata.enableTLS: TLS",
        ),
        (
            source({"type": "external", "metadata": {"scalerAddress": "a:1", "keyFromEnv": "X"}}),
            "metadata.keyFromEnv",
        ),
        (source({"type": "kafka", "metadata": {}}), "triggers[0]: type 'kafka'"),
        (
            source({"type": "prometheus", "metadata": {"query": "x"}}),
            "triggers[0].metadata.serverAddress: is missing",
        ),
        (
            source({**PROMETHEUS, "metadata": {"threshold": "none"}}),
            "metadata.threshold: 'none' is no number from 0.001 on",
        ),
        (
            source({**PROMETHEUS, "metadata": {"activationThreshold": "nan"}}),
            "metadata.activationThreshold: 'nan' is no number",
        ),
        (source({**PROMETHEUS, "metadata": {"authModes": "basic"}}), "metadata.authModes: is not read"),
        (
            source({**EXTERNAL, "name": "a"}, triggers=[{**EXTERNAL, "name": "a"}] * 2),
            "triggers[1].name: 'a' stands twice",
        ),
        (
            source(advanced={"restoreToOriginalReplicaCount": True}),
            "advanced.restoreToOriginalReplicaCount: is not read",
        ),
        (
            source(advanced={"scalingModifiers": {"formula": "a + b", "target": "2"}}),
            "advanced.scalingModifiers: is not read",
        ),
        (source(idleReplicaCount=1, minReplicaCount=3), "idleReplicaCount 1: only 0"),
        (source(idleReplicaCount=0), "idleReplicaCount 0 must be below minReplicaCount 0"),
        (source(annotations={PAUSED_AT: ""}), f"annotation {PAUSED_AT} '': write a number of replicas"),
        (source(annotations={PAUSED_AT: "-1"}), f"annotation {PAUSED_AT} '-1': write a number of replicas"),
        (source(minReplicaCount=5, maxReplicaCount=3), "maxReplicaCount 3 is below minReplicaCount 5"),
    ],
)
def test_what_is_not_read_is_refused_by_name(given, words):
    """The field is named; nothing of the object is followed."""
    assert words in "; ".join(given.refused)


def test_the_initial_cooldown_counts_from_the_creation():
    """Once it has passed, what has had no work is stopped."""
    found = source(initialCooldownPeriod=60)
    sizes = [size_of(found, answer(4), NEVER, Instant(START + seconds(after))) for after in (59, 60)]
    assert sizes == [None, 0]


@pytest.mark.parametrize(
    ("value", "paused"),
    [("true", True), ("1", True), ("yes", True), ("", True), ("false", False), ("F", False), ("0", False)],
)
def test_any_value_that_does_not_say_false_pauses(value, paused):
    """As KEDA reads the annotation; without it nothing is paused."""
    assert source(annotations={PAUSED: value}).paused is paused
    assert source().paused is False


def test_of_two_objects_with_one_target_the_older_one_is_followed():
    """The younger gets a notice that names the older, and is followed as soon as the older is deleted."""
    core = ALGORITHM.core()
    state = core.state
    old, new = source(name="b"), source(name="a", created=Instant(START + seconds(9)))
    refused = source(name="c", created=Instant(0), idleReplicaCount=1)
    state.apply(Delta(sources=(new, old, refused)))
    assert [key for key in state.sources if state.follows(key)] == [("shop", "b")]
    commands = decide(state, NOW)
    assert [one.message for one in commands.notices if one.key == new.key] == [
        "ScaledObject b, which is older, scales Deployment worker: leave one of the two out"
    ]
    absorb(state, commands, [], NOW)
    assert state.due(NOW) == []
    state.apply(Delta(gone=(old.key,)))
    assert state.follows(new.key)
    assert state.due(NOW) == [new.key]


def test_targets_of_one_kind_in_two_groups_are_two():
    """Custom resources of two groups may have the same kind and name: both are scaled."""
    state = ALGORITHM.core().state
    pair = [
        source(
            name=name, scaleTargetRef={"apiVersion": f"{name}.example.com/v1", "kind": "Queue", "name": "q"}
        )
        for name in ("a", "b")
    ]
    state.apply(Delta(sources=tuple(pair)))
    assert all(state.follows(one.key) for one in pair)


def test_a_source_without_problems_is_the_hpa_that_keda_would_make():
    """Defaults, names and the selector are KEDA's; targets are a value a pod unless they are not."""
    found = source()
    assert (found.refused, found.lowest, found.least, found.most) == ((), 0, 1, 100)
    assert (found.polling, found.cooldown) == (seconds(30), seconds(300))
    hpa = hpa_of(found, [TriggerMetric(0, "waiting", 5000)], HpaStatus())
    [metric] = msgspec.to_builtins(hpa.spec.metrics)
    assert metric["external"] == {
        "metric": {
            "name": "s0-waiting",
            "selector": {"matchLabels": {"scaledobject.keda.sh/name": "worker"}},
        },
        "target": {"type": "AverageValue", "averageValue": "5000m"},
    }
    assert (hpa.metadata.name, hpa.spec.min_replicas, hpa.spec.max_replicas) == ("keda-hpa-worker", 1, 100)


def test_an_activation_threshold_may_be_below_zero():
    """As in KEDA: then there is work also where the query is 0."""
    metadata = {**PROMETHEUS["metadata"], "activationThreshold": "-1"}
    assert source({**PROMETHEUS, "metadata": metadata}).refused == ()


FAILS = "triggers[0]: no answer"


@pytest.mark.parametrize(
    ("given", "ready", "active"),
    [
        (answer(4, active=True), ("True", "ScaledObjectReady"), ("True", "ScalerActive")),
        (answer(4), ("True", "ScaledObjectReady"), ("False", "ScalerCooldown")),
        (answer(0), ("True", "ScaledObjectReady"), ("False", "ScalerNotActive")),
        (
            answer(4, active=True, error=FAILS),
            ("Unknown", "PartialTriggerError"),
            ("True", "ScalerActive"),
        ),
        (answer(4, error=FAILS), ("False", "TriggerError"), ("False", "ScalerNotActive")),
        (
            Answer(("shop", "worker"), error="not found", replicas=1, unread=True),
            ("False", "ScaledObjectCheckFailed"),
            ("False", "ScalerNotActive"),
        ),
    ],
)
def test_conditions_have_kedas_reasons(given, ready, active):
    """Conditions distinguish all triggers failing, some failing, and an idle target, as KEDA does."""
    found = msgspec.structs.replace(source(), last_active=JUST)
    core = ALGORITHM.core()
    core.state.apply(Delta(sources=(found,), answers=(given,)))
    [(_, raw)] = decide(core.state, NOW).statuses
    status = msgspec.json.decode(raw)
    said = {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}
    assert said == {"Ready": ready, "Active": active}
    assert given.error in status["conditions"][0]["message"]


def test_an_object_that_keda_serves_is_left_alone():
    """Where KEDA's own HPA is there, nothing is written, and the object says why."""
    core = ALGORITHM.core()
    state = core.state
    state.apply(Delta(sources=(source(),), served=(("shop", "worker"),)))
    commands = decide(state, NOW)
    assert commands.writes == ()
    [notice] = commands.notices
    assert "KEDA itself serves the object" in notice.message
    absorb(state, commands, [], NOW)
    assert decide(state, Instant(NOW + minutes(1))).notices == ()
    assert "KEDA itself serves" in lines(core, "shop/worker", NOW, "")[1]


def test_outcomes_are_reported():
    """A write that fails is an event, and the next turn tries again."""
    state = State()
    state.apply(Delta(sources=(source(),), answers=(answer(0, active=True),)))
    commands = decide(state, NOW)
    assert [write.replicas for write in commands.writes] == [1]
    [notice] = absorb(state, commands, [Outcome("quota exceeded")], NOW).notices
    assert (notice.reason, notice.level) == ("KEDAScaleTargetActivationFailed", "Warning")
    assert "quota exceeded" in notice.message
