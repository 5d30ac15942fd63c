"""Jobs that are edited: when they run, and what is said of them."""

from __future__ import annotations

from tests.schedules.worlds import START, Loop, table

from kubetide.schedules.core import ALGORITHM
from kubetide.schedules.outlook import lines
from kubetide.schedules.tables import Delta
from kubetide.units.time import Instant, hours

DAY = hours(24)
REFERENCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}


def jobs(schedule):
    job = {"name": "j", "schedule": schedule, "targetSize": 5}
    return table("CronHorizontalPodAutoscaler", scaleTargetRef=REFERENCE, jobs=[job])


def explained(loop, at):
    core = ALGORITHM.core()
    core.state = loop.state
    return lines(core, "web/shop", at, "")


def edited(old, new, at):
    """A loop that reads an object when it is created, and its other job at that time."""
    loop = Loop(jobs(old))
    loop.look(START)
    loop.state.apply(Delta(tables=(jobs(new),)))
    loop.look(at)
    return loop


def test_an_edited_job_holds_from_its_first_run_after_the_edit():
    """What was due between the creation of the object and the edit has not begun."""
    noon = Instant(START + hours(12))
    loop = edited("0 0 20 * * *", "0 0 8 * * *", noon)
    assert explained(loop, noon)[1:3] == [
        "no rule has begun since it was created",
        "at 2026-03-03T08:00:00Z comes j (0 0 8 * * *): 5 replicas",
    ]
    loop.run(noon, Instant(START + DAY + hours(9)))
    held = explained(loop, Instant(START + DAY + hours(9)))[1]
    assert held == "since 2026-03-03T08:00:00Z holds j (0 0 8 * * *): 5 replicas"


def test_a_job_that_is_edited_to_a_date_that_is_past_is_reported():
    """The date lies after the creation of the object and before the edit: it never runs, and a warning says so."""
    noon = Instant(START + hours(12))
    loop = edited("0 0 20 * * *", "@date 2026-03-02 08:00:00", noon)
    loop.run(noon, Instant(START + 2 * DAY))
    assert loop.writes == []
    [notice] = loop.notices
    assert "was past when the job was submitted; it never begins" in notice.message


def test_a_job_that_ran_on_its_date_is_not_reported():
    """After its run the date is past, as it should be."""
    loop = Loop(jobs("@date 2026-03-02 08:00:00"))
    loop.run(START, Instant(START + DAY))
    assert [notice.level for notice in loop.notices] == ["Normal"]
