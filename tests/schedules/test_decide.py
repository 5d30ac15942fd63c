"""What tables make of their targets, and that it is a function of time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schedules.worlds import START, Loop, cron, hpc, scaled_object, table

from kubetide.schedules.core import ALGORITHM
from kubetide.schedules.decide import absorb, decide, targets_due
from kubetide.schedules.outlook import intents, lines, turns
from kubetide.schedules.settings import Settings
from kubetide.schedules.state import State
from kubetide.schedules.tables import Delta, HpaView, Target, View
from kubetide.units.time import Instant, hours, minutes, parse_rfc3339

DAY = hours(24)
UP_AND_DOWN = (cron("up", "0 0 8 * * *", 10), cron("down", "0 30 20 * * *", 2))


@given(
    begin=st.integers(1, 3000),
    length=st.integers(1, 3000),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "Asia/Tokyo"]),
)
def test_after_an_outage_the_table_stands_where_it_would_without_one(begin, length, zone):
    """Whenever the loop was away and however long, the size is the same as soon as it is back, also without memory."""
    crons = (*UP_AND_DOWN, cron("noon", "0 0 12 * * 1-3", 5, excludeDates=["* * * 3 3 *"]))
    down, back = Instant(START + minutes(begin)), Instant(START + minutes(begin + length))
    away, there = Loop(hpc(*crons), zone=zone), Loop(hpc(*crons), zone=zone)
    away.run(START, Instant(down - 1))
    away.restart()
    away.look(back)
    there.run(START, back)
    assert away.replicas == there.replicas


def test_a_missed_change_is_made_once():
    """Of three days missed only the latest change is made."""
    loop = Loop(hpc(*UP_AND_DOWN))
    loop.look(Instant(START + 3 * DAY + hours(21)))
    assert loop.writes == [("2026-03-05T21:00:00Z", 2)]


def test_nothing_is_corrected_between_two_changes():
    """Somebody else's size stays until the next change."""
    loop = Loop(hpc(*UP_AND_DOWN))
    loop.run(START, Instant(START + hours(9)))
    loop.replicas = 4
    loop.run(Instant(START + hours(9)), Instant(START + hours(20)))
    assert loop.replicas == 4


def test_what_cannot_be_read_is_reported_and_the_rest_followed():
    """A bad rule is named with its position once, and the other rule runs."""
    loop = Loop(hpc(cron("bad", "0 0 8 * * 7", 3), cron("good", "0 0 9 * * *", 5)))
    loop.run(START, Instant(START + 2 * DAY))
    warned = [one.message for one in loop.notices if one.reason == "InvalidTimeTable"]
    assert len(warned) == 1
    assert "day of week (field 6)" in warned[0]
    assert "write 0 for Sunday" in warned[0]
    assert loop.replicas == 5


def test_five_fields_are_refused_with_the_six_that_may_be_meant():
    """A five-field schedule of a kind with six is named together with its six-field form."""
    loop = Loop(hpc(cron("up", "2 8 * * 1-5", 3)))
    loop.look(START)
    assert "write '0 2 8 * * 1-5'" in loop.notices[0].message


def test_an_object_of_only_bad_things_stops_no_other():
    """A table that is refused as a whole is reported; the other goes on."""
    bad = hpc({"name": "x", "schedule": "0 0 8 * * *", "minSize": 5, "maxSize": 1}, name="bad")
    loop = Loop(bad, hpc(*UP_AND_DOWN))
    loop.run(START, Instant(START + hours(9)))
    assert loop.replicas == 10
    assert any("minSize 5 is above maxSize 1" in one.message for one in loop.notices)


def test_two_tables_of_one_target_are_reported_on_both():
    """Each of two objects that change one target is told of the other."""
    loop = Loop(hpc(*UP_AND_DOWN), hpc(cron("noon", "0 0 12 * * *", 3), name="second"))
    loop.look(START)
    reported = {one.table[2]: one.message for one in loop.notices}
    assert "web/second" in reported["shop"]
    assert "web/shop" in reported["second"]


@pytest.mark.parametrize(
    ("other", "together"),
    [
        ("0 0 * * * *", "2026-03-02T08:00:00Z"),
        ("0 0 8 * * 3", "2026-03-04T08:00:00Z"),
        ("0 30 8 * * *", None),
        ("1 0 8 * * *", None),
        ("0 0 8 30 2 *", None),
        ("0 0 20 * * *", None),
    ],
)
def test_two_rules_that_are_due_together_are_reported(other, together):
    """The report says when that is first, and which of them holds; equal sizes contradict nothing."""
    daily = cron("daily", "0 0 8 * * *", 10)
    loop = Loop(hpc(daily, cron("other", other, 2)))
    loop.look(START)
    said = [one.message for one in loop.notices if "due together" in one.message]
    words = f"daily and other are due together at {together}, and differ in size: the later listed holds"
    assert said == ([words] if together else [])
    same = Loop(hpc(daily, cron("other", other, 10)))
    same.look(START)
    assert not [one for one in same.notices if "due together" in one.message]


def test_a_job_goes_by_what_those_before_it_in_the_tick_have_changed():
    """Of an HPA of 2 to 6 a job for 9 makes 9 to 9, and one for 0 after it 0 to 9, as if each had read the HPA itself."""
    jobs = [
        {"name": name, "schedule": "0 0 8 * * *", "targetSize": size} for name, size in (("a", 9), ("b", 0))
    ]
    reference = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"}
    state = State(Settings())
    state.apply(Delta(tables=(table("CronHorizontalPodAutoscaler", scaleTargetRef=reference, jobs=jobs),)))
    absorb(state, decide(state, START), [], START)
    at = Instant(START + hours(8))
    [target] = targets_due(state, at)
    workload = Target("apps/v1", "Deployment", "web", "shop")
    hpa = HpaView(2, 6, 4, workload, resource_version="7")
    state.apply(Delta(views=(View(target, 4, "8", hpa),)))
    first, second = (run.change for run in decide(state, at).runs)
    assert (first.minimum, first.maximum, first.hpa_version, first.scale_version) == (9, 9, "7", "8")
    assert (second.minimum, second.maximum, second.hpa_version) == (0, 9, "")
    assert second.current == 9


def test_of_rules_due_together_the_first_is_said_to_hold_where_it_does():
    """TKEStack's kind follows the first listed; the report says so."""
    crons = [{"schedule": f"0 {hours} * * *", "targetReplicas": size} for hours, size in (("*", 2), ("8", 9))]
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
    loop = Loop(table("CronHPA", scaleTargetRef=reference, crons=crons))
    loop.look(START)
    assert "differ in size: the first listed holds" in loop.notices[0].message


def test_one_target_is_one_however_it_is_spelled():
    """``Statefulset``, as Tencent's documents write it, is the StatefulSet that another object changes."""
    reference = {"apiVersion": "apps/v1beta2", "kind": "StatefulSet", "name": "shop"}
    crons = [{"schedule": "0 8 * * *", "targetReplicas": 3}]
    other = table("CronHPA", name="second", scaleTargetRef=reference, crons=crons)
    loop = Loop(hpc(*UP_AND_DOWN, kind="Statefulset"), other)
    loop.look(START)
    said = [one.table[2] for one in loop.notices if "is changed by" in one.message]
    assert sorted(said) == ["second", "shop"]


def test_a_skip_is_not_the_one_run():
    """A job that runs once and whose first date is left out runs on the next."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
    job = {"name": "j", "schedule": "0 0 8 * * *", "targetSize": 5, "runOnce": True}
    found = table(
        "CronHorizontalPodAutoscaler", scaleTargetRef=reference, jobs=[job], excludeDates=["* * * 2 3 *"]
    )
    loop = Loop(found)
    loop.run(START, Instant(START + 5 * DAY))
    assert loop.writes == [("2026-03-03T08:00:00Z", 5)]


def test_windows_hold_their_size_and_rest_before_none():
    """An open window corrects the size; after it the pods stay for the cooldown."""
    loop = Loop(scaled_object(("0 8 * * *", "0 18 * * *", 6), ("0 12 * * *", "0 13 * * *", 9)))
    loop.run(START, Instant(START + DAY - 1))
    assert [size for _, size in loop.writes] == [0, 6, 9, 6, 0]
    assert loop.writes[-1][0] == "2026-03-02T18:05:00Z"


KEDA = "autoscaling.keda.sh"
WINDOW = ("0 8 * * *", "0 18 * * *", 6)


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
    """What only an HPA would read is reported once, and the sizes are written."""
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


def test_negative_bounds_are_refused_with_their_rule():
    """A bound below 0 is reported, and the object's other rules are followed."""
    bad, good = {"minSize": -1, "maxSize": 3}, {"minSize": 2, "maxSize": 9}
    crons = [
        {"name": name, "schedule": f"0 0 {hour} * * *", **sizes}
        for name, hour, sizes in (("a", 8, bad), ("b", 9, good))
    ]
    target = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"}
    found = table("HorizontalPodCronscaler", scaleTarget=target, crons=crons)
    loop = Loop(found)
    loop.look(START)
    assert "a ('0 0 8 * * *'): size -1 is negative" in loop.notices[0].message
    assert [entry.calendar is None for entry in loop.state.plan(found.key).entries] == [True, False]


def test_an_hpa_needs_room_for_one_pod():
    """``maxSize: 0`` of an HPA, which no API server takes, is refused by name."""
    target = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"}
    crons = [{"name": "off", "schedule": "0 0 8 * * *", "minSize": 0, "maxSize": 0}]
    found = table("HorizontalPodCronscaler", scaleTarget=target, crons=crons)
    assert found.refused == ("off: maxSize 0: an HPA allows at least 1",)


def test_the_order_of_excluded_dates_starts_no_job_anew():
    """A job that ran once stays done when the same dates are written in another order. Source: kubernetes-cronhpa-controller."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
    job = {"name": "j", "schedule": "0 0 8 * * *", "targetSize": 5, "runOnce": True}
    dates = ["* * * 25 12 *", "* * * 1 1 *"]
    first, second = (
        table("CronHorizontalPodAutoscaler", scaleTargetRef=reference, jobs=[job], excludeDates=one)
        for one in (dates, dates[::-1])
    )
    loop = Loop(first)
    loop.run(START, Instant(START + DAY))
    loop.state.apply(Delta(tables=(second,)))
    loop.run(Instant(START + DAY), Instant(START + 3 * DAY))
    assert loop.writes == [("2026-03-02T08:00:00Z", 5)]


def test_an_alibaba_target_is_read_up_to_its_version():
    """Upstream takes the first two parts of an ``apiVersion`` for group and version, and looks at no more."""
    job = {"name": "j", "schedule": "0 0 8 * * *", "targetSize": 5}
    for written, read in (("apps/v1/x", "apps/v1"), ("apps/v1/", "apps/v1"), ("apps/v1", "apps/v1")):
        reference = {"apiVersion": written, "kind": "Deployment", "name": "shop"}
        found = table("CronHorizontalPodAutoscaler", scaleTargetRef=reference, jobs=[job])
        assert found.target.api_version == read
        loop = Loop(found)
        loop.look(START)
        assert [mark.state for mark in loop.state.progress[found.key].marks] == ["Submitted"]


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


def test_the_next_change_is_announced_with_its_time():
    """The board is given the next size with the time it is due."""
    loop = Loop(hpc(*UP_AND_DOWN))
    loop.look(START)
    [intent] = intents(loop.state, START)
    assert (intent.replicas, intent.due) == (10, parse_rfc3339("2026-03-02T08:00:00Z"))


def announced(*tables):
    loop = Loop(*tables)
    loop.look(START)
    return [(one.replicas, one.due) for one in intents(loop.state, START)]


def test_windows_announce_what_they_will_ask_for():
    """The size is within the object's counts; while it is paused, or not followed, nothing is to come."""
    due = Instant(START + hours(8))
    assert announced(scaled_object(WINDOW)) == [(6, due)]
    assert announced(scaled_object(WINDOW, maxReplicaCount=4)) == [(4, due)]
    assert announced(scaled_object(WINDOW, minReplicaCount=9)) == [(9, due)]
    assert announced(scaled_object(WINDOW, annotations={f"{KEDA}/paused": "true"})) == []
    assert announced(scaled_object(WINDOW, ("0 8 * * *", "0 8 * * 0-6", 3))) == []


def test_a_job_that_has_had_its_one_run_announces_nothing():
    """Before its run it does, once; the next day nothing comes."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
    job = {"name": "j", "schedule": "0 0 8 * * *", "targetSize": 5, "runOnce": True}
    loop = Loop(table("CronHorizontalPodAutoscaler", scaleTargetRef=reference, jobs=[job]))
    loop.look(START)
    due = Instant(START + hours(8))
    assert [one.due for one in intents(loop.state, START)] == [due]
    assert [turn.at for _, turn, _ in turns(loop.state, START, Instant(START + 3 * DAY))] == [due]
    loop.run(due, due)
    assert intents(loop.state, due) == turns(loop.state, due, Instant(START + 3 * DAY)) == []


def test_explain_names_the_rule_that_holds_and_the_next():
    """The answer says what holds, since when, and what comes when."""
    loop, core = Loop(hpc(*UP_AND_DOWN)), ALGORITHM.core()
    at = Instant(START + hours(9))
    loop.run(START, at)
    core.state = loop.state
    found = "\n".join(lines(core, "web/shop", at, ""))
    assert "since 2026-03-02T08:00:00Z holds up (0 0 8 * * *): 10 replicas" in found
    assert "at 2026-03-02T20:30:00Z comes down (0 30 20 * * *): 2 replicas" in found
