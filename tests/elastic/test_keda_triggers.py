"""Triggers of type cpu, memory and cron: how they are read, the metrics of the HPA, and when there is work."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.elastic.scaled_objects import CPU, EXTERNAL, MEMORY, NOW, PROMETHEUS, START, cron, source

from kubetide.elastic.keda.answers import TriggerAnswer, answer_of
from kubetide.elastic.keda.commands import Outcome
from kubetide.elastic.keda.core import ALGORITHM
from kubetide.elastic.keda.decide import decide, size_of
from kubetide.elastic.keda.hpas import TriggerMetric, hpa_of
from kubetide.elastic.keda.outcomes import absorb
from kubetide.elastic.keda.outlook import lines
from kubetide.elastic.keda.state import Delta
from kubetide.elastic.keda.windows import CronScaler, opening_of
from kubetide.objects.hpa import HpaStatus
from kubetide.objects.scaled_objects import FORCED, PAUSED_AT, PAUSED_DOWN, needs_hpa
from kubetide.objects.timetables import ScaledObject
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import Instant, between, hours, minutes, parse_rfc3339

IN_A_CONTAINER = {**CPU, "metadata": {"value": "80", "containerName": "app"}}
DAY = cron("0 9 * * *", "0 17 * * *", 5)


def metrics(found, *asked):
    return msgspec.to_builtins(list(hpa_of(found, asked, HpaStatus()).spec.metrics))


def test_cpu_and_memory_are_metrics_of_the_hpa():
    """As KEDA sorts them: by type, and within a type as the triggers stand."""
    found = source(triggers=[MEMORY, EXTERNAL, CPU, IN_A_CONTAINER])
    assert found.refused == ()
    assert metrics(found, TriggerMetric(1, "waiting", 5000)) == [
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "cpu",
                "container": "app",
                "target": {"type": "Utilization", "averageUtilization": 80},
            },
        },
        {
            "type": "External",
            "external": {
                "metric": {
                    "name": "s1-waiting",
                    "selector": {"matchLabels": {"scaledobject.keda.sh/name": "worker"}},
                },
                "target": {"type": "AverageValue", "averageValue": "5000m"},
            },
        },
        {
            "type": "Resource",
            "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "500Mi"}},
        },
        {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
        },
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (source({**CPU, "metricType": ""}), "metricType: '' is neither Utilization nor AverageValue"),
        (source({**CPU, "metricType": "Value"}), "metricType: 'Value' is neither"),
        (source({**CPU, "metadata": {}}), "metadata.value: '' is no per cent"),
        (source({**CPU, "metadata": {"value": "0"}}), "metadata.value: '0' is no per cent"),
        (source({**CPU, "metadata": {"value": "1.5"}}), "metadata.value: '1.5' is no per cent"),
        (source({**CPU, "metadata": {"value": "3000000000"}}), "metadata.value: '3000000000' is no per cent"),
        (source({**MEMORY, "metadata": {"value": "much"}}), "metadata.value: 'much' is no quantity above 0"),
        (source({**MEMORY, "metadata": {"value": "-1Gi"}}), "metadata.value: '-1Gi' is no quantity above 0"),
        (
            source({**CPU, "metadata": {"type": "Utilization", "value": "60"}}),
            "metadata.type: is gone since KEDA 2.18; write metricType",
        ),
        (source({**CPU, "useCachedMetrics": True}), "useCachedMetrics: cpu triggers have none"),
        (source(CPU), "minReplicaCount: write 1 or more"),
        (source(MEMORY, minReplicaCount=0), "minReplicaCount: write 1 or more"),
        (
            source(triggers=[CPU, cron("0 9 * *", "0 17 * * *", 5)]),
            "triggers[1]: error parsing cron metadata",
        ),
        (source(triggers=[CPU, cron("0 9 30 2 *", "0 17 * * *", 5)]), "triggers[1]: "),
        (source(triggers=[CPU, cron("0 9 * * *", "0 17 * * *", 5, zone="Mars/X")]), "triggers[1]: "),
        (source(triggers=[CPU, cron("0 9 * * *", "0 17 * * *", -5)]), "triggers[1]: "),
        (
            source(triggers=[CPU, {**DAY, "metricType": "Utilization"}]),
            "triggers[1].metricType: 'Utilization' is neither AverageValue nor Value",
        ),
        (
            source(triggers=[CPU, {"type": "kafka"}]),
            "triggers[1]: type 'kafka': only external, prometheus, cpu, memory and cron are read here",
        ),
    ],
)
def test_what_is_wrong_with_a_trigger_is_named(given, words):
    """The field is named, and nothing of the object is followed."""
    assert words in "; ".join(given.refused)


@pytest.mark.parametrize("kind", ["Rollout", "Deployment"])
def test_a_custom_resource_needs_no_minimum(kind):
    """KEDA's webhook asks for one of Deployments and StatefulSets alone; the HPA has one pod at least."""
    target = {"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "name": "worker"}
    found = source(CPU, scaleTargetRef=target)
    assert (found.refused, found.least) == ((), 1)


def asked(found, *active, errors=()):
    """The answer of triggers with one metric each, of which some say that there is work and some nothing."""
    return answer_of(
        found,
        [
            TriggerAnswer(
                one,
                () if one.place in errors else (TriggerMetric(one.place, "waiting", 5000),),
                active=one.place in active and one.place not in errors,
                error="no answer" if one.place in errors else "",
            )
            for one in found.triggers
        ],
    )


def test_only_alone_are_cpu_and_memory_work():
    """Beside a queue without work they keep nothing running; without others there always is work."""
    mixed = source(triggers=[CPU, EXTERNAL])
    assert asked(mixed).active is False
    assert asked(mixed, 1).active is True
    assert asked(source(triggers=[CPU, MEMORY], minReplicaCount=1)).active is True


def test_a_server_that_is_silent_from_the_start_holds_what_cpu_would_take_away():
    """A metric without a value stands beside cpu, so that the HPA scales out by cpu, and never in."""
    found = source(triggers=[CPU, EXTERNAL])
    assert [one.metric for one in asked(found, errors=(1,)).metrics] == ["s1-unknown"]
    assert asked(source(EXTERNAL), errors=(0,)).metrics == ()


def test_the_status_names_the_metrics_and_the_event_those_that_are_active():
    """Metrics of single containers are not named, as with KEDA."""
    found = source(triggers=[CPU, EXTERNAL, MEMORY, IN_A_CONTAINER, PROMETHEUS])
    state = ALGORITHM.core().state
    state.apply(Delta(sources=(found,), answers=(asked(found, 1, 4),)))
    commands = decide(state, NOW)
    [(_, raw)] = commands.statuses
    status = msgspec.json.decode(raw)
    assert status["resourceMetricNames"] == ["cpu", "memory"]
    assert status["externalMetricNames"] == ["s1-waiting", "s4-waiting"]
    [notice] = absorb(state, commands, [Outcome()], NOW).notices
    assert notice.message == (
        "Scaled apps/v1.Deployment shop/worker from 0 to 1, triggered by s1-waiting;s4-waiting"
    )


@pytest.mark.parametrize(
    ("types", "ours"),
    [
        (("cron",), False),
        (("cron", "cron"), False),
        (("cron", "cpu"), True),
        (("cron", "external"), True),
        (("memory",), True),
        (("kafka",), False),
        (("kafka", "prometheus"), True),
        ((), False),
    ],
)
def test_which_loop_an_object_is_of(types, ours):
    """Cron triggers alone are a time table; beside others they are not."""
    body = {"spec": {"triggers": [{"type": one} for one in types]}}
    assert needs_hpa(msgspec.convert(body, ScaledObject)) is ours


def test_a_window_is_a_metric_with_a_target_of_1():
    """KEDA's name; desiredReplicas from the start on, 0 from the end on."""
    found = source(triggers=[CPU, DAY])
    [trigger] = found.triggers

    async def run(clock):
        windows, values = CronScaler(clock), []
        assert await windows.metric_specs(found, trigger) == (("cron-UTC-09xxx-017xxx", 1000),)
        for time in ("08:59:59", "09:00:00", "16:59:59", "17:00:00"):
            await clock.sleep(between(clock.now(), parse_rfc3339(f"2026-03-02T{time}Z")))
            values.append(
                (await windows.is_active(found, trigger), await windows.metrics(found, trigger, ""))
            )
        return values

    assert run_virtual(run, start=START) == [(False, [0]), (True, [5000]), (True, [5000]), (False, [0])]


@pytest.mark.parametrize(
    ("at", "due"),
    [
        ("08:30:00", "08:40:00"),
        ("08:55:00", "09:00:00"),
        ("09:00:00", "09:10:00"),
        ("16:51:00", "17:00:00"),
    ],
)
def test_a_window_wakes_the_loop_when_it_opens_and_closes(at, due):
    """Not a polling interval later."""
    found = source(triggers=[EXTERNAL, DAY], pollingInterval=600)
    state, now = ALGORITHM.core().state, parse_rfc3339(f"2026-03-02T{at}Z")
    state.apply(Delta(sources=(found,)))
    absorb(state, decide(state, now), [], now)
    assert state.memory[found.key].due == parse_rfc3339(f"2026-03-02T{due}Z")
    assert state.due(parse_rfc3339(f"2026-03-02T{due}Z")) == [found.key]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just("9" * 5000),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=9), inner, max_size=2),
    max_leaves=4,
)
TYPES = st.sampled_from(["cpu", "memory", "cron", "external", "prometheus", "kafka"])
NAMES = st.sampled_from(
    ["value", "type", "containerName", "start", "end", "timezone", "desiredReplicas", "threshold"]
)


@given(
    kind=TYPES,
    metric_type=st.sampled_from(["", "Utilization", "AverageValue", "Value"]),
    metadata=st.dictionaries(NAMES, JSON),
    config=st.dictionaries(st.sampled_from(["name", "behavior"]), JSON),
    policy=st.dictionaries(st.sampled_from(["type", "value", "periodSeconds"]), JSON),
    fallback=st.dictionaries(st.sampled_from(["failureThreshold", "replicas", "behavior"]), JSON),
    pause=st.text(max_size=9) | st.just("9" * 5000),
)
def test_nothing_that_is_written_stops_the_loop(kind, metric_type, metadata, config, policy, fallback, pause):
    """Whatever stands in an object, it is read, recorded, evaluated and explained; what is wrong is refused."""
    if not config.get("behavior"):
        config = {**config, "behavior": {"scaleUp": {"policies": [policy]}}}
    core = ALGORITHM.core()
    found = source(
        {"type": kind, "metricType": metric_type, "metadata": metadata},
        advanced={"horizontalPodAutoscalerConfig": config},
        fallback=fallback,
        annotations={PAUSED_AT: pause},
    )
    core.state.apply(Delta(sources=(found,)))
    commands = decide(core.state, NOW)
    absorb(core.state, commands, [], NOW)
    assert ALGORITHM.read_delta(msgspec.json.encode(core.state.dump())).sources == (found,)
    assert lines(core, "shop/worker", NOW, "")
    hpa_of(found, (), HpaStatus())


@given(
    replicas=st.integers(0, 20),
    least=st.integers(0, 5),
    active=st.sets(st.sampled_from([1, 2])),
    errors=st.sets(st.sampled_from([1, 2])),
    minute=st.integers(0, 24 * 60),
)
def test_work_has_its_minimum_and_silence_takes_nothing_away(replicas, least, active, errors, minute):
    """Active: from 0 to minReplicaCount, or 1, and never lower; a server that is silent never lowers the size."""
    found = source(triggers=[CPU, EXTERNAL, PROMETHEUS, DAY], minReplicaCount=least)
    now = Instant(START + minutes(minute))
    open_ = opening_of(found, found.triggers[2], now).active
    answer = asked(found, *active, *([3] if open_ else []), errors=errors)
    answer = msgspec.structs.replace(answer, replicas=replicas)
    size = size_of(found, answer, Instant(START - hours(1)), now)
    assert answer.active is bool(active - errors or open_)
    if answer.active:
        assert size == (None if replicas else max(least, 1))
    elif errors:
        assert size is None


def test_explain_names_what_the_hpa_goes_by():
    """The targets of resources, each window with its next change, and the paused directions."""
    core = ALGORITHM.core()
    found = source(
        triggers=[IN_A_CONTAINER, MEMORY, DAY, EXTERNAL],
        annotations={PAUSED_DOWN: "true", FORCED: "true"},
    )
    core.state.apply(Delta(sources=(found,)))
    assert lines(core, "shop/worker", NOW, "") == [
        "it scales Deployment worker from 0 to 100 replicas",
        "the HPA goes by cpu of container app: 80 % of its request",
        "the HPA goes by memory: 500Mi a pod",
        "s2-cron-UTC-09xxx-017xxx: 5 replicas from 2026-03-02T09:00:00Z",
        "an annotation forces its activation",
        "scaling in is paused",
        "there has been no work yet",
        "how many replicas: kubetide explain hpa keda-hpa-worker -n shop",
    ]
    at_noon = lines(core, "shop/worker", Instant(NOW + hours(4)), "")
    assert "s2-cron-UTC-09xxx-017xxx: 5 replicas until 2026-03-02T17:00:00Z" in at_noon
    paused = source(annotations={PAUSED_AT: "3"})
    core.state.apply(Delta(sources=(paused,)))
    assert lines(core, "shop/worker", NOW, "")[-1] == "it is paused at 3 replicas"
