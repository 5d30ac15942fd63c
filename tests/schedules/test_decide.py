"""What tables make of their targets, and that it is a function of time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schedules.worlds import START, Loop, cron, hpc, scaled_object, table

from kubetide.schedules.core import ALGORITHM
from kubetide.schedules.outlook import intents, lines
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


def test_explain_names_the_rule_that_holds_and_the_next():
    """The answer says what holds, since when, and what comes when."""
    loop, core = Loop(hpc(*UP_AND_DOWN)), ALGORITHM.core()
    at = Instant(START + hours(9))
    loop.run(START, at)
    core.state = loop.state
    found = "\n".join(lines(core, "web/shop", at, ""))
    assert "since 2026-03-02T08:00:00Z holds up (0 0 8 * * *): 10 replicas" in found
    assert "at 2026-03-02T20:30:00Z comes down (0 30 20 * * *): 2 replicas" in found
