"""Which start of a CronJob is due, and which of its Jobs are to go: pure.

Source: kube-controller-manager v1.36, pkg/controller/cronjob, utils.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

import msgspec

from kubetide.objects.batch import CronJob, Job, finished_as
from kubetide.units.cron import Schedule
from kubetide.units.time import Instant, before, format_rfc3339, parse_rfc3339, seconds

_MANY_MISSED = 100


class Due(msgspec.Struct, frozen=True):
    """What the schedule says at one time.

    Attributes:
        last: The newest start that is due and was not made yet, None when there is none.
        following: The first start after now; None when the schedule never comes again.
        missed_many: Whether more than a hundred starts have been missed.
    """

    last: Instant | None
    following: Instant | None
    missed_many: bool = False


def due_at(cron_job: CronJob, schedule: Schedule, zone: tzinfo, now: Instant) -> Due:
    """Return which start is due now: of those missed since the last one, only the newest."""
    following = schedule.next(now, zone)
    created = cron_job.metadata.creation_timestamp
    earliest = parse_rfc3339(cron_job.status.last_schedule_time or created or format_rfc3339(now))
    deadline = cron_job.spec.starting_deadline_seconds
    if deadline is not None:
        earliest = max(earliest, before(now, seconds(deadline)))
    first = schedule.next(earliest, zone)
    if first is None or first > now:
        return Due(None, following)
    second = schedule.next(first, zone)
    if second is None or second > now:
        return Due(first, following)
    missed = (now - first) // (second - first) + 1
    return Due(_newest(schedule, zone, first, now), following, missed > _MANY_MISSED and deadline is None)


def _newest(schedule: Schedule, zone: tzinfo, first: Instant, now: Instant) -> Instant:
    """Return the newest start up to now, looked for in longer and longer stretches before it."""
    stretch = seconds(60)
    while True:
        begin = max(Instant(now - stretch), first)
        found = None if begin > first else first
        following = schedule.next(begin, zone)
        while following is not None and following <= now:
            found = following
            following = schedule.next(following, zone)
        if found is not None:
            return found
        stretch = seconds(2 * stretch // 1_000_000_000)


def is_too_late(cron_job: CronJob, start: Instant, now: Instant) -> bool:
    """Return whether a start is past its deadline."""
    deadline = cron_job.spec.starting_deadline_seconds
    return deadline is not None and start + seconds(deadline) < now


def job_name(cron_job: CronJob, start: Instant) -> str:
    """Return the name of the Job of a start: the minutes since 1970, so that no start is made twice."""
    return f"{cron_job.metadata.name}-{start // 60_000_000_000}"


def beyond_history(cron_job: CronJob, jobs: Sequence[Job]) -> list[Job]:
    """Return the finished Jobs beyond the history limits, the oldest first."""
    spec = cron_job.spec
    surplus: list[Job] = []
    for ending, limit in (
        ("Complete", spec.successful_jobs_history_limit),
        ("Failed", spec.failed_jobs_history_limit),
    ):
        if limit is None:
            continue
        finished = sorted(
            (job for job in jobs if finished_as(job) == ending),
            # A Job that never began counts as the newest.
            key=lambda job: (job.status.start_time is None, job.status.start_time or "", job.metadata.name),
        )
        surplus += finished[: max(len(finished) - limit, 0)]
    return surplus
