from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.embedded.controllers.workload_worlds import CONTAINERS, START, play

from kubetide.embedded.controllers.workloads.cron_plan import due_at
from kubetide.objects.batch import CronJob, CronJobSpec, CronJobStatus
from kubetide.objects.kinds import CRON_JOBS, JOBS
from kubetide.units.cron import parse_cron, zone_of
from kubetide.units.time import Instant, format_rfc3339, minutes


def spec(schedule="*/5 * * * *", run="30s", code="0", **more):
    template = {
        "metadata": {"annotations": {"kubetide.dev/run-duration": run, "kubetide.dev/exit-code": code}},
        "spec": {"containers": CONTAINERS, "restartPolicy": "Never"},
    }
    return {"schedule": schedule, "jobTemplate": {"spec": {"template": template, "backoffLimit": 0}}, **more}


async def starts(world):
    """Minutes after the beginning at which the Jobs that are there were due."""
    first = START // 60_000_000_000
    return [int(job["metadata"]["name"].rpartition("-")[2]) - first for job in await world.list(JOBS)]


def test_a_job_is_made_at_each_time_and_old_ones_go():
    """A Job is created every five minutes; the three newest that succeeded remain."""

    async def body(world):
        await world.create(CRON_JOBS, "tick", spec())
        await world.sleep(302)
        (job,) = await world.list(JOBS)
        status = (await world.get(CRON_JOBS, "tick"))["status"]
        assert job["metadata"]["annotations"] == {
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-02T00:05:00Z"
        }
        assert [each["name"] for each in status["active"]] == [job["metadata"]["name"]]
        assert status["lastScheduleTime"] == "2026-03-02T00:05:00Z"
        await world.sleep(1503)
        assert await starts(world) == [15, 20, 25, 30]
        status = (await world.get(CRON_JOBS, "tick"))["status"]
        assert len(status["active"]) == 1
        await world.sleep(60)
        assert await starts(world) == [20, 25, 30]
        status = (await world.get(CRON_JOBS, "tick"))["status"]
        assert "active" not in status
        assert status["lastSuccessfulTime"] == "2026-03-02T00:30:32Z"
        reasons = await world.reasons()
        assert reasons.count("SuccessfulDelete") == reasons.count("SawCompletedJob") - 3 == 3

    play(body)


def test_concurrency_policies():
    """Runs that last longer than the pause: Allow lets them overlap, Forbid skips, Replace ends the older one."""

    async def body(world):
        await world.create(CRON_JOBS, "tick", spec(run="8m", concurrencyPolicy=policy))
        await world.sleep(910)
        running = [job for job in await world.list(JOBS) if not job["status"].get("completionTime")]
        return await starts(world), len(running)

    found = {}
    for policy in ("Allow", "Forbid", "Replace"):
        found[policy] = play(body)
    # Forbid: the start at 10 min was held back and made up for at 13 min.
    assert found == {"Allow": ([5, 10, 15], 2), "Forbid": ([5, 10], 1), "Replace": ([15], 1)}


def test_a_suspended_cron_job_makes_up_for_one_missed_start_only():
    """The newest of the starts missed in a suspension is made, if its deadline allows."""

    async def body(world):
        await world.create(CRON_JOBS, "tick", spec(suspend=True, **more))
        await world.sleep(1720)
        before = await starts(world)
        await world.patch(CRON_JOBS, "tick", {"suspend": False})
        await world.sleep(10)
        return before, await starts(world)

    more = {}
    assert play(body) == ([], [25])
    more = {"startingDeadlineSeconds": 200}
    assert play(body) == ([], [])


def test_failed_jobs_have_a_history_of_their_own():
    """By default one failed Job remains."""

    async def body(world):
        await world.create(CRON_JOBS, "tick", spec(code="1"))
        await world.sleep(1250)
        return await starts(world)

    assert play(body) == [20]


def test_a_schedule_follows_its_zone():
    """A schedule at half past one in Tokyo comes at that time there."""

    async def body(world):
        await world.create(CRON_JOBS, "tick", spec("30 10 * * *", timeZone="Asia/Tokyo"))
        await world.sleep(5430)
        (job,) = await world.list(JOBS)
        return await starts(world), job["metadata"]["annotations"]

    assert play(body) == (
        [90],
        {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-03-02T10:30:00+09:00"},
    )


@settings(max_examples=100, deadline=None)
@given(
    text=st.sampled_from(["*/7 * * * *", "0 3 * * 1-5", "@every 90s", "15,45 */3 1 * *", "0 9 * * 1"]),
    behind=st.integers(0, 4 * 24 * 60),
)
def test_the_newest_missed_start_is_found(text, behind):
    """However many starts were missed, the newest one is due, as going through all of them finds."""
    schedule, zone = parse_cron(text), zone_of("UTC")
    last = Instant(START - minutes(behind))
    found = CronJob(
        spec=CronJobSpec(schedule=text), status=CronJobStatus(last_schedule_time=format_rfc3339(last))
    )
    newest, following = None, schedule.next(last)
    while following <= START:
        newest, following = following, schedule.next(following)
    due = due_at(found, schedule, zone, START)
    if text.startswith("@every"):
        # Pauses count from where one begins, so that only the stretch can be the same.
        assert (due.last is None) == (newest is None)
    else:
        assert (due.last, due.following) == (newest, following)
