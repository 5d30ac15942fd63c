"""ScaledObjects with cron triggers: the sizes of windows, what pauses them, and what is refused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.schedules.worlds import START, Loop, scaled_object, table

from kubetide.schedules.outlook import intents
from kubetide.schedules.tables import Delta
from kubetide.units.time import Instant, hours, minutes

DAY = hours(24)
KEDA = "autoscaling.keda.sh"
WINDOW = ("0 8 * * *", "0 18 * * *", 6)


def announced(*tables):
    loop = Loop(*tables)
    loop.look(START)
    return [(one.replicas, one.due) for one in intents(loop.state, START)]


def test_windows_hold_their_size_and_rest_before_none():
    """An open window corrects the size; after it the pods stay for the cooldown."""
    loop = Loop(scaled_object(("0 8 * * *", "0 18 * * *", 6), ("0 12 * * *", "0 13 * * *", 9)))
    loop.run(START, Instant(START + DAY - 1))
    assert [size for _, size in loop.writes] == [0, 6, 9, 6, 0]
    assert loop.writes[-1][0] == "2026-03-02T18:05:00Z"


@pytest.mark.parametrize(
    ("annotations", "sizes"),
    [
        ({"paused": "true"}, []),
        ({"paused": ""}, []),
        ({"paused": "yes"}, []),
        ({"paused": "1"}, []),
        ({"paused": "false"}, [0, 6, 0]),
        ({"paused": "0"}, [0, 6, 0]),
        ({"paused-replicas": "4"}, [4]),
        ({"paused-replicas": "4", "paused": "false"}, [4]),
        ({"paused-replicas": "many"}, []),
        ({"paused-scale-in": "true"}, [6]),
        ({"paused-scale-in": "false"}, [0, 6, 0]),
        ({"paused-scale-out": "true"}, [0]),
        ({"force-activation": "true"}, []),
    ],
)
def test_annotations_pause_windows_as_kedas_do(annotations, sizes):
    """Any value that does not say false pauses; a direction may be paused alone; what is not read is refused."""
    named = {f"{KEDA}/{name}": value for name, value in annotations.items()}
    loop = Loop(scaled_object(WINDOW, annotations=named))
    loop.run(START, Instant(START + DAY - 1))
    assert [size for _, size in loop.writes] == sizes


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"advanced": {"scalingModifiers": {"formula": "a + b"}}}, "advanced.scalingModifiers"),
        ({"idleReplicaCount": 0}, "idleReplicaCount 0 must be below minReplicaCount 0"),
        ({"idleReplicaCount": 3, "minReplicaCount": 3}, "idleReplicaCount 3 must be below minReplicaCount 3"),
        ({"minReplicaCount": 5, "maxReplicaCount": 3}, "maxReplicaCount 3 is below minReplicaCount 5"),
        ({"minReplicaCount": 0, "maxReplicaCount": 0}, "maxReplicaCount 0 is below minReplicaCount 1"),
    ],
)
def test_counts_and_formulas_that_keda_or_the_loop_refuses(spec, words):
    """The field is named, and the size stays."""
    loop = Loop(scaled_object(WINDOW, **spec))
    loop.run(START, Instant(START + DAY - 1))
    assert loop.writes == []
    assert words in loop.notices[0].message


def test_triggers_that_keda_refuses():
    """Two of one name, and a cache for cron, are named; the size stays."""
    metadata = {"timezone": "UTC", "start": "0 8 * * *", "end": "0 18 * * *", "desiredReplicas": "6"}
    trigger = {"type": "cron", "metadata": metadata, "name": "day"}
    for more, words in (
        ({}, "triggers[1].name: 'day' stands twice"),
        (
            {"name": "night", "useCachedMetrics": True},
            "triggers[1].useCachedMetrics: cron triggers have none",
        ),
    ):
        found = table(
            "ScaledObject", scaleTargetRef={"name": "shop"}, triggers=[trigger, {**trigger, **more}]
        )
        assert found.refused == (words,)


def test_fields_that_need_an_hpa_are_named_and_the_windows_followed():
    """Fields that only an HPA would read are reported once, and the sizes are written."""
    advanced = {"horizontalPodAutoscalerConfig": {"name": "x"}, "restoreToOriginalReplicaCount": True}
    loop = Loop(scaled_object(WINDOW, advanced=advanced, fallback={"replicas": 3}, minReplicaCount=0))
    loop.run(START, Instant(START + DAY - 1))
    assert [size for _, size in loop.writes] == [0, 6, 0]
    assert [one.message.partition(":")[0] for one in loop.notices if one.reason == "InvalidTimeTable"] == [
        "advanced.horizontalPodAutoscalerConfig",
        "advanced.restoreToOriginalReplicaCount",
        "fallback",
    ]


def test_a_new_object_rests_for_the_initial_cooldown():
    """Before the first window since its creation the size stays for ``initialCooldownPeriod``, and not otherwise."""
    for spec, first in (({}, "00:00:00"), ({"initialCooldownPeriod": 600}, "00:10:00")):
        loop = Loop(scaled_object(WINDOW, **spec))
        loop.run(START, Instant(START + DAY - 1))
        assert loop.writes[0] == (f"2026-03-02T{first}Z", 0)
        assert loop.writes[-1] == ("2026-03-02T18:05:00Z", 0)


@pytest.mark.parametrize(
    ("parts", "minute", "said"),
    [
        ({}, 60, {"Ready": "ScaledObjectReady", "Active": "ScalerNotActive"}),
        ({}, 9 * 60, {"Ready": "ScaledObjectReady", "Active": "ScalerActive"}),
        ({}, 18 * 60 + 1, {"Ready": "ScaledObjectReady", "Active": "ScalerCooldown"}),
        ({}, 18 * 60 + 6, {"Ready": "ScaledObjectReady", "Active": "ScalerNotActive"}),
        ({"zone": "Mars"}, 9 * 60, {"Ready": "ScaledObjectCheckFailed", "Active": "ScalerNotActive"}),
        (
            {"annotations": {f"{KEDA}/paused": "true"}},
            9 * 60,
            {"Ready": "ScaledObjectReady", "Active": "ScalerNotActive", "Paused": "ScaledObjectPaused"},
        ),
        (
            {"annotations": {f"{KEDA}/paused-scale-in": "true"}},
            9 * 60,
            {"Ready": "ScaledObjectReady", "Active": "ScalerActive", "Paused": "ScaledObjectPaused"},
        ),
    ],
)
def test_windows_have_kedas_conditions(parts, minute, said):
    """Tools that watch ScaledObjects select by these: whether one is ready, active and paused."""
    loop = Loop(scaled_object(WINDOW, **parts))
    loop.run(START, Instant(START + minutes(minute)))
    assert {one["type"]: one["reason"] for one in loop.statuses["shop"]["conditions"]} == said


def test_idle_pods_come_after_the_cooldown():
    """``idleReplicaCount`` holds outside of windows, and only once the cooldown has passed."""
    loop = Loop(scaled_object(WINDOW, minReplicaCount=4, idleReplicaCount=1))
    loop.run(START, Instant(START + DAY - 1))
    assert loop.writes == [("2026-03-02T08:00:00Z", 6), ("2026-03-02T18:05:00Z", 1)]


@pytest.mark.parametrize(
    ("start", "end", "zone", "why"),
    [
        ("0 0 30 2 *", "0 8 * * *", "UTC", "there is no such date"),
        ("0 8 * * *", "0 8 * * 0-6", "UTC", "come together"),
        ("0 8 * * *", "0 9 * * *", "Mars/Olympus", "unknown time zone"),
    ],
)
def test_windows_that_cannot_be_are_refused(start, end, zone, why):
    """A window that never begins, is always empty or has no zone is reported, and the size stays."""
    loop = Loop(scaled_object((start, end, 3), zone=zone))
    loop.run(START, Instant(START + hours(12)))
    assert loop.writes == []
    assert why in loop.notices[0].message


def test_windows_announce_their_next_size():
    """The size is within the object's counts; while it is paused, or not followed, nothing is to come."""
    due = Instant(START + hours(8))
    assert announced(scaled_object(WINDOW)) == [(6, due)]
    assert announced(scaled_object(WINDOW, maxReplicaCount=4)) == [(4, due)]
    assert announced(scaled_object(WINDOW, minReplicaCount=9)) == [(9, due)]
    assert announced(scaled_object(WINDOW, ("0 8 * * *", "0 9 * * *", 20))) == [(20, due)]
    assert announced(scaled_object(WINDOW, annotations={f"{KEDA}/paused": "true"})) == []
    assert announced(scaled_object(WINDOW, ("0 8 * * *", "0 8 * * 0-6", 3))) == []


def test_an_object_made_anew_gets_a_status_of_its_own():
    """One that is deleted and created again between two ticks gets the status, though it is the old one's to the byte."""
    found, at = scaled_object(WINDOW), Instant(START + hours(9))
    loop = Loop(found)
    loop.look(at)
    written, loop.statuses = loop.statuses, {}
    loop.state.apply(Delta(tables=(replace(found, uid="another"),)))
    loop.look(at)
    assert loop.statuses == written != {}
