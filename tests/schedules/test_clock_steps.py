"""A clock that was ahead and is set back stops no table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.schedules.worlds import START, Loop, cron, hpc, scaled_object, table

from kubetide.schedules.core import ALGORITHM
from kubetide.schedules.decide import decide, targets_due
from kubetide.schedules.decision import Outcome
from kubetide.schedules.kinds.base import created_at
from kubetide.schedules.state import State
from kubetide.schedules.tables import View
from kubetide.units.time import Instant, hours, instant_of, minutes

DAY = hours(24)
YEAR = 365 * DAY
REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
TABLES = {
    "points": hpc(cron("up", "0 0 8 * * *", 10), cron("down", "0 30 20 * * *", 2)),
    "jobs": table(
        "CronHorizontalPodAutoscaler",
        scaleTargetRef=REFERENCE,
        jobs=[cron("up", "0 0 8 * * *", 10), cron("down", "0 30 20 * * *", 2)],
    ),
    "windows": scaled_object(("0 8 * * *", "30 20 * * *", 10), minReplicaCount=2),
    "bounds": table(
        "ElasticWorkload",
        status={"conditions": [{"type": "Accepted", "status": "True"}]},
        targetRef=REFERENCE,
        schedule={
            "rules": [
                {"name": "up", "at": "0 8 * * *", "replicas": 10},
                {"name": "down", "at": "30 20 * * *", "replicas": 2},
            ]
        },
    ),
}


@pytest.mark.parametrize("kind", sorted(TABLES))
@given(jump=st.integers(90, 60 * 24 * 400))
def test_tables_go_on_after_the_clock_was_ahead(kind, jump):
    """However far it was ahead, the size is right at once after it is set back, and is changed on the same day."""
    loop = Loop(TABLES[kind])
    now = Instant(START + DAY + hours(12))
    for hour in (0, 9, 21, 33, 36):
        loop.look(Instant(START + hours(hour)))
    loop.look(Instant(now + minutes(jump)))
    loop.look(now)
    assert loop.replicas == 10
    loop.look(Instant(START + DAY + hours(21)))
    assert loop.replicas == 2


@pytest.mark.parametrize(
    "at", ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:00", "0001-01-01T00:00:00+23:00", "x"]
)
@pytest.mark.parametrize("kind", sorted(TABLES))
def test_times_that_no_calendar_has_stop_no_table(kind, at):
    """An object that was created, or was last changed, at the end of time or before its beginning is followed."""
    found = TABLES[kind]
    odd = replace(found, created=created_at(at), last=instant_of(at))
    loop = Loop(odd)
    for hour in (6, 9):
        loop.look(Instant(START + hours(hour)))
    assert loop.replicas == 10


def test_a_status_of_a_time_to_come_stops_no_table_and_is_reported():
    """A restart reads what the wrong clock wrote, makes the latest change again, and says so once."""
    ahead = hpc(
        cron("up", "0 0 8 * * *", 10),
        cron("down", "0 30 20 * * *", 2),
        status={"lastScheduleTime": "2027-03-03T12:00:00Z"},
    )
    loop = Loop(ahead)
    loop.run(Instant(START + DAY + hours(12)), Instant(START + DAY + hours(13)))
    assert loop.replicas == 10
    said = [one.message for one in loop.notices if one.level == "Warning"]
    assert len(said) == 1
    assert said[0].startswith(
        "its last change is marked 2027-03-03T12:00:00Z, but it is 2026-03-03T12:00:00Z"
    )
    assert loop.statuses["shop"] == {"lastScheduleTime": "2026-03-03T12:00:00Z"}


def test_a_job_that_ran_once_by_a_wrong_clock_runs_on_its_date():
    """What a clock a year ahead made of a job is undone; it waits for its true date."""
    loop = Loop(
        table(
            "CronHorizontalPodAutoscaler",
            scaleTargetRef=REFERENCE,
            jobs=[cron("sale", "@date 2026-06-01 00:00:00", 50, runOnce=True)],
        )
    )
    loop.look(START)
    loop.look(Instant(START + YEAR))
    assert loop.replicas == 50
    loop.replicas = 1
    loop.run(Instant(START + hours(1)), Instant(START + 80 * DAY))
    assert loop.replicas == 1
    loop.run(Instant(START + 80 * DAY), Instant(START + 100 * DAY))
    assert loop.replicas == 50


def test_a_clock_that_is_a_little_ahead_makes_no_change_twice():
    """Within an hour what is done stays done."""
    loop = Loop(TABLES["points"])
    loop.look(Instant(START + hours(8)))
    loop.look(Instant(START + hours(8) - minutes(30)))
    loop.run(Instant(START + hours(8) - minutes(30)), Instant(START + hours(9)))
    assert [size for _, size in loop.writes] == [10]


def test_a_failed_change_of_a_time_to_come_is_not_waited_for():
    """A try that the wrong clock put off until next year stops no change of today."""
    loop = Loop(TABLES["bounds"])
    far = Instant(START + YEAR + hours(21))
    loop.state.views = {one: View(one, 5) for one in targets_due(loop.state, far)}
    commands = decide(loop.state, far)
    ALGORITHM.absorb(loop.state, commands, [Outcome("it is down")], far)
    loop.look(Instant(START + hours(9)))
    assert loop.replicas == 10


def test_a_replay_knows_when_tables_were_looked_at():
    """The step back is seen also from a record with the whole state."""
    loop = Loop(TABLES["points"])
    loop.look(Instant(START + YEAR))
    loop.state = State.from_full(loop.state.dump())
    loop.look(Instant(START + DAY + hours(12)))
    assert loop.replicas == 10
