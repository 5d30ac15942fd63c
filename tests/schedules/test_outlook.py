"""What ``explain schedule`` says of tables that change nothing, and which workload each table scales."""

from __future__ import annotations

import pytest
from tests.schedules.worlds import START, Loop, cron, hpc, scaled_object, table

from kubetide.schedules.core import ALGORITHM
from kubetide.schedules.decide import absorb, decide, targets_due
from kubetide.schedules.decision import Outcome
from kubetide.schedules.entry import ENTRY
from kubetide.schedules.outlook import Announcements, intents, lines, turns
from kubetide.schedules.reasons import VOCABULARY
from kubetide.schedules.tables import Delta, View
from kubetide.units.time import Instant, format_rfc3339, hours, minutes, seconds

UP = cron("up", "0 0 8 * * *", 10)


def explained(loop, at):
    core = ALGORITHM.core()
    core.state = loop.state
    return core, lines(core, "web/shop", at, "")


def test_a_change_that_fails_does_not_hold():
    """The size is due and not carried out; each try gives one and the same sentence, so that it is listed once."""
    loop, at = Loop(hpc(UP)), Instant(START + hours(8))
    loop.look(START)
    said = set()
    for late in (0, 30):
        now = Instant(at + seconds(late))
        views = tuple(View(target, 1) for target in targets_due(loop.state, now))
        loop.state.apply(Delta(views=views))
        commands = decide(loop.state, now)
        refused = [Outcome(error="no such Deployment") for _ in commands.runs]
        result = absorb(loop.state, commands, refused, now)
        said |= {VOCABULARY.text(one) for one in result.reasons}
    assert said == {"web/shop: up could not change Deployment shop: no such Deployment"}
    found = explained(loop, now)[1]
    assert found[1] == (
        "due since 2026-03-02T08:00:00Z, and not carried out yet: up (0 0 8 * * *): 10 replicas"
    )
    assert found[3].startswith("try 2 failed: no such Deployment; again at ")


def test_windows_that_an_annotation_pauses_say_so():
    """An open window with no effect names the reason, and the table the workload that it scales."""
    paused = {"autoscaling.keda.sh/paused": "true"}
    loop = Loop(scaled_object(("0 0 * * *", "0 23 * * *", 4), annotations=paused))
    loop.run(START, Instant(START + hours(1)))
    core, found = explained(loop, Instant(START + hours(1)))
    assert found[-1] == "paused by its annotation: the size stays as it is"
    [explainer] = ENTRY.explainers
    assert explainer.targets(core) == {"web/shop": "Deployment/web/shop"}


def test_the_bounds_of_an_hpa_are_named_where_a_size_stands_beside_them():
    """The bounds are written, so they are what the answer and the plan say."""
    target = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"}
    crons = [{"name": "up", "schedule": "0 0 8 * * *", "targetSize": 7, "minSize": 2, "maxSize": 9}]
    loop = Loop(table("HorizontalPodCronscaler", scaleTarget=target, crons=crons))
    loop.look(START)
    assert explained(loop, START)[1][2].endswith("comes up (0 0 8 * * *): bounds 2 to 9")
    [(_, _, text)] = turns(loop.state, START, Instant(START + hours(24)))
    assert text == "HorizontalPodAutoscaler shop gets up (0 0 8 * * *): bounds 2 to 9"


def test_rises_of_the_hour_after_it_are_announced_with_the_next_change():
    """Rises may be closer together than nodes take to boot; a fall between two of them does not hide the second."""
    found = hpc(
        cron("up", "0 0 8 * * *", 8),
        cron("more", "0 2 8 * * *", 16),
        cron("break", "0 30 8 * * *", 2),
        cron("again", "0 40 8 * * *", 12),
        cron("late", "0 0 10 * * *", 40),
    )
    assert times(found, hours(7)) == [(8, "08:00"), (16, "08:02"), (12, "08:40")]
    assert times(found, hours(8) + minutes(1)) == [(16, "08:02"), (12, "08:40")]
    assert times(found, hours(9)) == [(40, "10:00")]


def test_minimums_of_an_hpa_that_rise_soon_after_one_another_are_all_announced():
    """The second rise comes a minute after the first, before its nodes could be there."""
    of_hpa = table(
        "HorizontalPodCronscaler",
        scaleTarget={"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"},
        crons=[
            {"name": "up", "schedule": "0 0 8 * * *", "minSize": 4, "maxSize": 9},
            {"name": "more", "schedule": "0 1 8 * * *", "minSize": 7, "maxSize": 9},
        ],
    )
    assert times(of_hpa, hours(7) + minutes(30)) == [(4, "08:00"), (7, "08:01")]


def test_a_job_that_runs_once_is_announced_once():
    """Its schedule comes again within the hour, but the job does not."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
    jobs = [
        {"name": "up", "schedule": "0 */10 * * * *", "targetSize": 7, "runOnce": True},
        {"name": "down", "schedule": "0 5 8 * * *", "targetSize": 1},
    ]
    found = table("CronHorizontalPodAutoscaler", scaleTargetRef=target, jobs=jobs)
    assert times(found, hours(7) + minutes(55)) == [(7, "08:00")]


def elastic(**schedule):
    """An ElasticWorkload whose section is this one."""
    of = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}
    accepted = {"conditions": [{"type": "Accepted", "status": "True"}]}
    return table("ElasticWorkload", status=accepted, targetRef=of, schedule=schedule)


TABLES = (
    hpc(UP, cron("down", "0 30 18 * * *", 2), cron("more", "0 10 8 * * 2", 16)),
    scaled_object(("0 8 * * *", "0 18 * * *", 4), ("30 11 * * *", "0 13 * * *", 9), zone="Europe/Berlin"),
    elastic(
        timeZone="Europe/Berlin",
        calendars=[{"name": "holidays", "dates": ["2026-03-03"]}],
        rules=[
            {
                "name": "opening",
                "start": "30 8 * * 1-5",
                "end": "0 18 * * 1-5",
                "minReplicas": 6,
                "excludeCalendars": ["holidays"],
            },
            {"name": "night", "at": "0 22 * * *", "maxReplicas": 4},
            {"name": "morning", "at": "0 6 * * *", "maxReplicas": 12},
        ],
    ),
    table(
        "CronHorizontalPodAutoscaler",
        scaleTargetRef={"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"},
        jobs=[
            {"name": "up", "schedule": "0 */20 8 * * *", "targetSize": 7, "runOnce": True},
            {"name": "down", "schedule": "0 0 20 * * *", "targetSize": 1},
        ],
    ),
)


@pytest.mark.parametrize("found", TABLES, ids=lambda one: one.kind)
def test_announcements_are_found_anew_only_where_they_may_differ(found):
    """At each time of three days, and after a clock was set back, they are those that are found anew."""
    loop, announcements = Loop(found), Announcements(lambda target: target.kind)
    several = set()
    for minute in (*range(0, 3 * 1440, 10), *range(480, 1440, 10)):
        now = Instant(START + minutes(minute))
        loop.look(now)
        told = announcements.of(loop.state, now)
        assert told == intents(loop.state, now)
        several.add(tuple(told))
    assert len(several) > 2, "they differ from time to time"


def times(found, at):
    """Return what is announced of a table at a time after the start: replicas, and when."""
    loop = Loop(found)
    loop.look(START)
    return [
        (one.replicas, format_rfc3339(one.due)[11:16]) for one in intents(loop.state, Instant(START + at))
    ]


@pytest.mark.parametrize(
    ("kind", "rules", "announced"),
    [
        ("HorizontalPodCronscaler", {"minSize": 4, "maxSize": 9}, [(4, False)]),
        ("HorizontalPodCronscaler", {"targetSize": 7, "maxSize": 9}, []),
        ("CronHorizontalPodAutoscaler", {"targetSize": 7}, [(7, True)]),
    ],
)
def test_what_is_announced_of_an_hpa_says_whether_its_table_sizes_the_workload(kind, rules, announced):
    """Bounds have an effect only where the HPA acts; a job of Alibaba's kind scales the workload, too; other sizes do nothing."""
    hpa = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "shop"}
    rule = {"name": "up", "schedule": "0 0 8 * * *", **rules}
    names = ("scaleTarget", "crons") if "Cronscaler" in kind else ("scaleTargetRef", "jobs")
    loop = Loop(table(kind, **dict(zip(names, (hpa, [rule]), strict=True))))
    loop.look(START)
    assert [(one.replicas, one.sizes) for one in intents(loop.state, START)] == announced


def test_the_floor_of_a_horizontal_section_is_announced_to_its_autoscaler():
    """It raises the replicas, unless it is paused or its target off; with a rule of no replicas the table makes the way back."""
    spec = {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "horizontal": {"minReplicas": 2, "maxReplicas": 9},
    }
    up = {"name": "up", "at": "0 8 * * *", "minReplicas": 5}
    accepted = {"conditions": [{"type": "Accepted", "status": "True"}]}
    found = []
    for night in ({"minReplicas": 3}, {"replicas": 0}):
        rules = [up, {"name": "night", "at": "0 22 * * *", **night}]
        loop = Loop(table("ElasticWorkload", status=accepted, schedule={"rules": rules}, **spec))
        loop.look(START)
        found += [(one.workload.kind, one.workload.name, one.sizes) for one in intents(loop.state, START)]
    assert found == [("HorizontalPodAutoscaler", "shop", False), ("Deployment", "web", True)]
