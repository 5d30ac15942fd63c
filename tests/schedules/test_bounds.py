"""The schedule section of an ElasticWorkload: what holds when, and what is wrong with rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schedules.worlds import START, Loop, table

from kubetide.schedules.core import ALGORITHM
from kubetide.schedules.outlook import intents, lines
from kubetide.schedules.settings import Settings
from kubetide.schedules.state import State
from kubetide.schedules.tables import Delta
from kubetide.schedules.times.bounds import bounds_at
from kubetide.units.time import Instant, format_rfc3339, hours, minutes, parse_rfc3339

ACCEPTED = {"conditions": [{"type": "Accepted", "status": "True"}]}
SHOP = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
OFFICE = {"name": "office", "start": "0 9 * * 1-5", "end": "0 17 * * 1-5", "minReplicas": 10}
NIGHT = {"name": "night", "at": "0 22 * * *", "maxReplicas": 4}
MORNING = {"name": "morning", "at": "0 6 * * *", "maxReplicas": 20}


def workload(*rules, zone="", calendars=None, status=ACCEPTED, **more):
    section = {"timeZone": zone, "calendars": calendars, "rules": list(rules)}
    return table("ElasticWorkload", targetRef=SHOP, schedule=section, status=status, **more)


def state_of(found, zone="UTC"):
    state = State(Settings(schedules_zone=zone))
    state.apply(Delta(tables=(found,)))
    return state


def held(found, at):
    plan = state_of(found).plan(found.key)
    bounds = bounds_at(plan, parse_rfc3339(at))
    return bounds.minimum, bounds.maximum, bounds.rules


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-03-02T05:00:00Z", (None, 4, ("night",))),
        ("2026-03-02T06:00:00Z", (None, 20, ("morning",))),
        ("2026-03-02T09:00:00Z", (10, 20, ("office", "morning"))),
        ("2026-03-02T17:00:00Z", (None, 20, ("morning",))),
        ("2026-03-07T12:00:00Z", (None, 20, ("morning",))),
    ],
)
def test_points_hold_until_the_next_and_windows_until_their_end(at, expected):
    """A point from before the object was created holds, too; a window of working days is closed on Saturday."""
    assert held(workload(OFFICE, NIGHT, MORNING), at) == expected


def test_a_window_comes_before_a_point_and_the_largest_of_open_windows_holds():
    """A point that begins while a window is open waits for its end; a ceiling is never below the floor."""
    sale = {"name": "sale", "start": "0 12 * * *", "end": "0 14 * * *", "minReplicas": 30}
    found = workload(OFFICE, sale, NIGHT)
    assert held(found, "2026-03-02T13:00:00Z") == (30, 30, ("sale", "night"))
    [warning] = state_of(found).plan(found.key).warnings
    assert warning.startswith(
        "office and sale overlap from 2026-03-02T12:00:00Z on, and differ in their floor"
    )


def test_zones_and_calendars():
    """A rule counts in its zone, else in the section's; on dates of its calendars it does not begin."""
    rule = {**OFFICE, "excludeCalendars": ["free"]}
    free = [{"name": "free", "dates": ["2026-03-03", "03-05", "2026-03-09/2026-03-10"]}]
    found = workload(rule, zone="Europe/Berlin", calendars=free)
    assert held(found, "2026-03-02T08:30:00Z")[0] == 10
    days = [held(found, f"2026-03-{day:02}T12:00:00Z")[0] for day in range(2, 12)]
    assert days == [10, None, 10, None, 10, None, None, None, None, 10]
    own = workload({**OFFICE, "timeZone": "America/New_York"}, zone="Europe/Berlin")
    assert held(own, "2026-03-02T13:30:00Z")[0] is None


@given(st.integers(0, 14 * 24 * 60), st.integers(1, 600))
def test_what_holds_is_a_function_of_time(offset, pause):
    """A loop that looks all the time and one that looks once after an outage reach the same bounds."""
    found = workload(OFFICE, NIGHT, MORNING, zone="Europe/Berlin", horizontal={"maxReplicas": 9})
    early, late = Instant(START + minutes(offset)), Instant(START + minutes(offset + pause))
    steady, fresh = Loop(found), Loop(found)
    steady.run(early, late)
    steady.look(late)
    fresh.look(late)
    assert steady.state.progress[found.key].bounds == fresh.state.progress[found.key].bounds


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"at": "0 25 * * *"}, "hour (field 2): end of range (25) above maximum (23)"),
        ({"at": "0 0 8 * * 7"}, "day of week (field 6)"),
        ({"at": "0 8 * * *", "timeZone": "Mars/Base"}, "unknown time zone Mars/Base"),
        (
            {"start": "@date 2026-11-12 00:00:00", "end": "@date 2026-11-11 00:00:00"},
            "it ends at 2026-11-11T00:00:00Z, before it starts at 2026-11-12T00:00:00Z",
        ),
        ({"start": "0 8 * * *", "end": "0 8 * * *"}, "come together each time"),
        ({"at": "0 8 30 2 *"}, "there is no such date"),
        ({"at": "0 8 * * *", "excludeCalendars": ["none"]}, "there is no calendar 'none'"),
        ({"start": "0 8 * * *"}, "spec.schedule.rules[0].end: a window has both"),
        ({"at": "0 8 * * *", "minReplicas": 3}, "spec.schedule.rules[0].replicas: is floor and ceiling"),
    ],
)
def test_what_is_wrong_is_named(rule, words):
    """The rule, the field and the fix are named in a warning, and in the status; a rule that is well goes on."""
    loop = Loop(workload({"name": "bad", "replicas": 2, **rule}, horizontal={"maxReplicas": 9}))
    loop.look(Instant(START + hours(12)))
    [notice] = loop.notices
    assert words in notice.message
    [progress] = loop.state.progress.values()
    assert progress.warned == (notice.message,)


def test_without_a_horizontal_section_the_size_stays_within_the_bounds():
    """A size that a person sets below the floor is brought back, one within the bounds stays."""
    loop = Loop(workload(OFFICE, NIGHT, MORNING), replicas=7)
    loop.run(START, Instant(START + hours(24)))
    assert loop.writes == [
        ("2026-03-02T00:00:00Z", 4),
        ("2026-03-02T09:00:00Z", 10),
        ("2026-03-02T22:00:00Z", 4),
    ]
    loop.replicas = 9
    loop.look(Instant(START + hours(24 + 7)))
    assert loop.replicas == 9


def test_with_a_horizontal_section_only_none_and_the_way_back_are_its_own():
    """Replicas 0 at night are written by the schedule, as is the floor in the morning; all else is the autoscaler's."""
    rules = (
        {"name": "off", "at": "0 22 * * *", "replicas": 0},
        {"name": "on", "at": "0 6 * * *", "maxReplicas": 9, "minReplicas": 3},
    )
    loop = Loop(workload(*rules, horizontal={"minReplicas": 2, "maxReplicas": 9}), replicas=5)
    loop.run(START, Instant(START + hours(30)))
    assert [size for _, size in loop.writes] == [0, 3, 0, 3]


@pytest.mark.parametrize(("least", "sizes"), [(2, [0, 2]), (0, [0])])
def test_after_a_window_of_none_the_horizontal_section_has_its_minimum_again(least, sizes):
    """An autoscaler rests at no replicas, so the schedule makes the way back; one whose minimum is 0 makes it itself."""
    off = {"name": "off", "start": "0 22 * * *", "end": "0 6 * * *", "replicas": 0}
    loop = Loop(workload(off, horizontal={"minReplicas": least, "maxReplicas": 9}), replicas=5)
    loop.run(START, Instant(START + hours(7)))
    assert [size for _, size in loop.writes] == sizes


@pytest.mark.parametrize("rule", [{"maxReplicas": 9}, {"minReplicas": 0}])
def test_an_autoscaler_that_scales_to_none_itself_is_left_alone(rule):
    """Where the minimum is 0, a rule that asks for no replicas at night does not undo an idle day's none."""
    off = {"name": "off", "start": "0 22 * * *", "end": "0 6 * * *", "replicas": 0}
    day = {"name": "day", "at": "0 6 * * *", **rule}
    loop = Loop(workload(off, day, horizontal={"minReplicas": 0, "maxReplicas": 20}), replicas=0)
    loop.run(Instant(START + hours(7)), Instant(START + hours(8)))
    assert loop.writes == []


def test_an_object_that_is_not_accepted_changes_nothing():
    """Without the condition Accepted, nothing is written and the answer says that no rule holds."""
    loop = Loop(workload(OFFICE, status={}), replicas=1)
    loop.run(START, Instant(START + hours(24)))
    assert loop.writes == []
    assert loop.notices == []


@pytest.mark.parametrize(
    ("rules", "least", "size"),
    [
        (({"name": "off", "start": "0 22 * * *", "end": "0 6 * * *", "replicas": 0},), 8, 8),
        (({"name": "few", "start": "0 22 * * *", "end": "0 6 * * *", "maxReplicas": 3},), 8, 8),
        (
            (
                {"name": "base", "at": "0 0 1 1 *", "minReplicas": 9},
                {"name": "night", "start": "0 22 * * *", "end": "0 6 * * *", "minReplicas": 2},
            ),
            1,
            9,
        ),
        (
            (
                {"name": "low", "at": "0 5 * * *", "minReplicas": 2},
                {"name": "high", "at": "0 6 * * *", "minReplicas": 7},
                {"name": "late", "at": "0 22 * * *", "minReplicas": 4},
            ),
            1,
            7,
        ),
    ],
)
def test_a_floor_that_rises_is_announced_whatever_makes_it_rise(rules, least, size):
    """At the end of a window the floor of points, or of the horizontal section, holds again; a lower floor before hides none."""
    found = workload(*rules, horizontal={"minReplicas": least, "maxReplicas": 20})
    [intent] = intents(state_of(found), Instant(START + hours(4)))
    assert (intent.replicas, format_rfc3339(intent.due)) == (size, "2026-03-02T06:00:00Z")


def test_floors_that_rise_soon_after_one_another_are_all_announced():
    """The window that opens a minute after another one asks for more."""
    rules = (
        {"name": "open", "start": "0 8 * * *", "end": "0 9 * * *", "minReplicas": 4},
        {"name": "rush", "start": "1 8 * * *", "end": "9 8 * * *", "minReplicas": 7},
    )
    found = workload(*rules, horizontal={"minReplicas": 1, "maxReplicas": 9})
    coming = intents(state_of(found), Instant(START + hours(7)))
    assert [(one.replicas, format_rfc3339(one.due)[11:16]) for one in coming] == [(4, "08:00"), (7, "08:01")]


def test_a_floor_that_never_rises_is_not_announced():
    """A rule that asks for no more than there must be anyway orders no nodes."""
    found = workload(
        {"name": "day", "at": "0 6 * * *", "minReplicas": 2}, horizontal={"minReplicas": 2, "maxReplicas": 9}
    )
    assert intents(state_of(found), START) == []


def test_the_next_floor_is_announced_and_explained():
    """The board shows the next floor with its due time; the answer says what holds and what comes."""
    core = ALGORITHM.core()
    core.state = state_of(workload(OFFICE, NIGHT, MORNING))
    [intent] = intents(core.state, START)
    assert (intent.replicas, format_rfc3339(intent.due)) == (10, "2026-03-02T09:00:00Z")
    assert lines(core, "web/shop", START, "")[1:] == [
        "now: at most 4 replicas, by night",
        "from 2026-03-02T06:00:00Z on: at most 20 replicas, by morning",
    ]
