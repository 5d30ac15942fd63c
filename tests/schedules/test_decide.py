"""The changes that tables make to their targets, which are a function of time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schedules.worlds import START, Loop, cron, hpc, table

from kubetide.schedules.core import ALGORITHM
from kubetide.schedules.decide import absorb, decide, targets_due
from kubetide.schedules.decision import Outcome
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
def test_after_an_outage_the_size_is_the_one_without_an_outage(begin, length, zone):
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
    """After three missed days only the latest change is made."""
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
    """Two objects that change one target each report the other."""
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


def test_a_job_sees_the_changes_of_earlier_jobs_in_its_tick():
    """With an HPA of 2 to 6, a job for 9 makes it 9 to 9, and a later one for 0 makes it 0 to 9, as if each had read the HPA itself."""
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


@pytest.mark.parametrize("first", [{"minSize": 5, "maxSize": 9}, {"minSize": 5}])
def test_a_rule_that_failed_does_not_undo_a_later_one(first):
    """When two rules are due together the later listed one counts, also where the earlier one could not be written at once."""
    assert retried(first, {"minSize": 2, "maxSize": 4}) is False


def test_a_rule_that_failed_is_tried_again_where_the_later_one_says_nothing_of_its_bound():
    """A minimum is still to be written where the later rule has set a maximum only."""
    assert retried({"minSize": 1}, {"maxSize": 4}) is True


@given(
    rules=st.lists(
        st.sampled_from([{"minSize": 2}, {"minSize": 5}, {"maxSize": 9}, {"maxSize": 7, "minSize": 1}]),
        max_size=4,
    )
)
def test_after_an_outage_each_bound_is_the_one_without_an_outage(rules):
    """Rules that set one bound alone take only the place of rules that set the same bound."""
    crons = [
        {"name": f"r{place}", "schedule": f"0 0 {place + 5} * * *", **sizes}
        for place, sizes in enumerate(rules)
    ]
    looks = [Instant(START + hours(hour)) for hour in range(12)]
    assert bounds_after(crons, looks) == bounds_after(crons, [looks[0], looks[-1]])


def bounds_after(crons, looks):
    """The bounds of an HPA of 1 to 8 after the loop has looked at these times."""
    target = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"}
    state, low, high = State(Settings()), 1, 8
    state.apply(Delta(tables=(table("HorizontalPodCronscaler", scaleTarget=target, crons=crons),)))
    for at in looks:
        hpa = HpaView(low, high, 4, Target("apps/v1", "Deployment", "web", "shop"))
        state.apply(Delta(views=tuple(View(one, 4, hpa=hpa) for one in targets_due(state, at))))
        commands = decide(state, at)
        for run in commands.runs:
            low, high = run.change.minimum, run.change.maximum
        absorb(state, commands, [Outcome() for _ in commands.runs], at)
    return low, high


def retried(first, second):
    """Whether the first of two rules that are due together, which failed, is tried again after the second was made."""
    crons = [
        {"name": name, "schedule": "0 0 8 * * *", **sizes} for name, sizes in (("a", first), ("b", second))
    ]
    target = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"}
    state = State(Settings())
    state.apply(Delta(tables=(table("HorizontalPodCronscaler", scaleTarget=target, crons=crons),)))
    absorb(state, decide(state, START), [], START)
    at = Instant(START + hours(8))
    hpa = HpaView(1, 9, 4, Target("apps/v1", "Deployment", "web", "shop"))
    views = Delta(views=tuple(View(one, 4, hpa=hpa) for one in targets_due(state, at)))
    state.apply(views)
    absorb(state, decide(state, at), [Outcome("conflict"), Outcome()], at)
    later = Instant(at + minutes(1))
    state.apply(views)
    return [run.rule.name for run in decide(state, later).runs] == ["a"]


@pytest.mark.parametrize(
    ("names", "tried"), [(["b"], ["b"]), (["a"], []), (["c", "a", "b"], ["b"]), ([], [])]
)
def test_an_edited_table_is_tried_again_by_the_rules_that_it_still_has(names, tried):
    """A rule that failed is known at any position in the table, and forgotten with its rule."""
    rules = {name: cron(name, f"0 0 {hour} * * *", hour) for name, hour in (("a", 7), ("b", 8), ("c", 9))}
    state = State(Settings())
    state.apply(Delta(tables=(hpc(rules["a"], rules["b"]),)))
    absorb(state, decide(state, START), [], START)
    at = START
    for hour, outcome in ((7, Outcome()), (8, Outcome("conflict"))):
        at = Instant(START + hours(hour))
        state.apply(Delta(views=tuple(View(one, 4) for one in targets_due(state, at))))
        absorb(state, decide(state, at), [outcome], at)
    restored = State.from_full(state.dump())
    assert restored.progress == state.progress, "a record holds what waits"
    state.apply(Delta(tables=(hpc(*(rules[name] for name in names)),)))
    later = Instant(at + minutes(1))
    state.apply(Delta(views=tuple(View(one, 4) for one in targets_due(state, later))))
    assert [run.rule.name for run in decide(state, later).runs] == tried


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


def test_an_hpa_needs_at_least_one_pod():
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


def test_the_next_change_is_announced_with_its_time():
    """The board is given the next size with the time it is due."""
    loop = Loop(hpc(*UP_AND_DOWN))
    loop.look(START)
    [intent] = intents(loop.state, START)
    assert (intent.replicas, intent.due) == (10, parse_rfc3339("2026-03-02T08:00:00Z"))


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


def test_of_rules_due_together_explain_and_the_board_name_the_one_that_holds():
    """The later listed of two holds, as the report of their meeting says; of TKEStack's kind the first."""
    at = Instant(START + hours(9))
    crons = [{"schedule": "0 8 * * *", "targetReplicas": size} for size in (3, 9)]
    first = table("CronHPA", scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment"}, crons=crons)
    later = hpc(cron("a", "0 0 8 * * *", 3), cron("b", "0 0 8 * * *", 9))
    for found, size in ((later, 9), (first, 3)):
        loop, core = Loop(found), ALGORITHM.core()
        loop.run(START, at)
        core.state = loop.state
        _, held, following, _ = lines(core, "web/shop", at, "")
        assert loop.replicas == size
        assert held.endswith(f": {size} replicas")
        assert following.endswith(f": {size} replicas")
        assert [one.replicas for one in intents(loop.state, at)] == [size]


def test_an_hpa_whose_next_rule_sets_a_maximum_announces_the_minimum_after_it():
    """A rule without a minimum does not hide the floor that comes after it."""
    target = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"}
    crons = [
        {"name": "top", "schedule": "0 0 7 * * *", "maxSize": 40},
        {"name": "floor", "schedule": "0 0 8 * * *", "minSize": 20},
    ]
    loop = Loop(table("HorizontalPodCronscaler", scaleTarget=target, crons=crons))
    loop.look(START)
    due = parse_rfc3339("2026-03-02T08:00:00Z")
    assert [(one.replicas, one.due) for one in intents(loop.state, START)] == [(20, due)]
