"""How a Job stands and what its pods need next: pure.

A pod counts once, however often it is looked at: it carries a finalizer until its end has been
written down. An end goes through three places: noticed (its uid in ``uncountedTerminatedPods``),
let go (the finalizer taken off), counted (the uid gives way to one more in the counts).

Source: kube-controller-manager v1.36, job_controller.go, tracking with finalizers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec
from msgspec.structs import replace

from kubetide.embedded.controllers.workloads.owned_pods import is_active, is_ready
from kubetide.objects.batch import Job, JobStatus, UncountedTerminatedPods
from kubetide.objects.meta import Condition
from kubetide.objects.pod import Pod, is_finished
from kubetide.units.time import Instant, after, format_rfc3339, parse_rfc3339, seconds

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
_BURST = 500
_MOST_UNCOUNTED = 500


class Tally(msgspec.Struct, frozen=True):
    """What has become of a Job's pods.

    Attributes:
        active: Pods that work or wait to.
        terminating: How many are being deleted and have not ended.
        succeeded, failed: How many ended well and badly, counted and not yet counted together.
        new_failures, new_successes: Pods whose end was not noticed before.
        noticed: What ``uncountedTerminatedPods`` is to say.
        flushed_succeeded, flushed_failed: What is to be added to the counts.
        to_release: Pods whose end is noticed and that still carry the finalizer.
        done_indexes: The completed indexes of an Indexed Job.
        change: How many pods this sync has made, less those that it has deleted.
    """

    active: tuple[Pod, ...]
    terminating: int
    succeeded: int
    failed: int
    new_failures: tuple[Pod, ...]
    new_successes: tuple[Pod, ...]
    noticed: UncountedTerminatedPods
    flushed_succeeded: int
    flushed_failed: int
    to_release: tuple[Pod, ...]
    done_indexes: frozenset[int]
    change: int = 0

    @property
    def is_settled(self) -> bool:
        """Whether no pod works, ends or waits to be counted."""
        return not (
            self.active
            or self.terminating
            or self.to_release
            or self.noticed.succeeded
            or self.noticed.failed
        )


def with_change(found: Tally, change: int) -> Tally:
    """Return where the Job stands when this sync has made so many pods, or deleted them where it is negative."""
    return replace(found, change=change, terminating=found.terminating - min(change, 0))


def after_release(found: Tally) -> Tally:
    """Return where the Job stands once the noticed pods have been let go: they are counted."""
    return replace(
        found,
        noticed=UncountedTerminatedPods(),
        flushed_succeeded=len(found.noticed.succeeded or ()),
        flushed_failed=len(found.noticed.failed or ()),
        to_release=(),
    )


def is_tracked(pod: Pod) -> bool:
    """Return whether the pod carries the finalizer of its Job."""
    return FINALIZER in (pod.metadata.finalizers or ())


def tally(job: Job, pods: Sequence[Pod], released: Collection[str] = ()) -> Tally:
    """Return where the Job stands.

    Args:
        pods: Those it owns, those that end included.
        released: Uids of pods whose finalizer has been taken off, which the cache may not show yet.
    """
    status = job.status
    old = status.uncounted_terminated_pods or UncountedTerminatedPods()
    tracked = {pod.metadata.uid: pod for pod in pods if is_tracked(pod) and pod.metadata.uid not in released}
    still_good = [uid for uid in old.succeeded or () if uid in tracked]
    still_bad = [uid for uid in old.failed or () if uid in tracked]
    free = max(_MOST_UNCOUNTED - len(still_good) - len(still_bad), 0)
    fresh = [pod for uid, pod in tracked.items() if uid not in still_good and uid not in still_bad]
    all_good = [pod for pod in fresh if pod.status.phase == "Succeeded"]
    all_bad = [pod for pod in fresh if _has_failed(pod)]
    good = [pod.metadata.uid for pod in all_good[:free]]
    bad = [pod.metadata.uid for pod in all_bad[: free - len(good)]]
    noticed = UncountedTerminatedPods(
        succeeded=(*still_good, *good) or None, failed=(*still_bad, *bad) or None
    )
    indexes = parse_indexes(status.completed_indexes)
    if job.spec.completion_mode == "Indexed":
        indexes |= {
            index for pod in pods if pod.status.phase == "Succeeded" and (index := index_of(pod)) is not None
        }
        limit = job.spec.completions or 0
        indexes = {index for index in indexes if index < limit}
        succeeded = len(indexes)
    else:
        succeeded = status.succeeded + len(old.succeeded or ()) + len(all_good)
    return Tally(
        active=tuple(pod for pod in pods if is_active(pod)),
        terminating=sum(pod.metadata.deletion_timestamp is not None and not is_finished(pod) for pod in pods),
        succeeded=succeeded,
        failed=status.failed + len(old.failed or ()) + len(all_bad),
        new_failures=tuple(all_bad),
        new_successes=tuple(all_good),
        noticed=noticed,
        flushed_succeeded=len(old.succeeded or ()) - len(still_good),
        flushed_failed=len(old.failed or ()) - len(still_bad),
        to_release=tuple(tracked[uid] for uid in (*(noticed.succeeded or ()), *(noticed.failed or ()))),
        done_indexes=frozenset(indexes),
    )


def _has_failed(pod: Pod) -> bool:
    if pod.status.phase == "Failed":
        return True
    return pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"


def index_of(pod: Pod) -> int | None:
    """Return the completion index of a pod of an Indexed Job."""
    text = (pod.metadata.annotations or {}).get(INDEX, "")
    return int(text) if text.isascii() and text.isdigit() else None


# ── how it ends ──


class Ending(msgspec.Struct, frozen=True):
    """Why a Job ends: ``type`` is the condition that it will have."""

    type: str
    reason: str
    message: str


_INTERIM = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}


def ending_of(job: Job, found: Tally, now: Instant) -> Ending | None:
    """Return how the Job ends, None while it goes on. Once decided it stays so."""
    for final, interim in _INTERIM.items():
        for condition in job.status.conditions or ():
            if condition.type == interim and condition.status == "True":
                return Ending(final, condition.reason, condition.message)
    spec = job.spec
    limit = 6 if spec.backoff_limit is None else spec.backoff_limit
    if found.failed > limit or _restarted_too_often(job, found, limit):
        return Ending("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    due = deadline_of(job)
    if due is not None and now >= due:
        return Ending("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    complete = (
        found.succeeded > 0 and not found.active
        if spec.completions is None
        else found.succeeded >= spec.completions
    )
    if complete and not (spec.suspend and spec.completions is None):
        return Ending("Complete", "CompletionsReached", "Reached expected number of succeeded pods")
    return None


def _restarted_too_often(job: Job, found: Tally, limit: int) -> bool:
    if job.spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts = sum(
        container.restart_count
        for pod in found.active
        if pod.status.phase in {"Running", "Pending"}
        for container in (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    )
    return restarts > 0 if limit == 0 else restarts >= limit


def deadline_of(job: Job) -> Instant | None:
    """Return when the Job has been active too long."""
    seconds_active, started = job.spec.active_deadline_seconds, job.status.start_time
    if seconds_active is None or started is None or job.spec.suspend:
        return None
    return after(parse_rfc3339(started), seconds(seconds_active))


def removal_due(job: Job) -> Instant | None:
    """Return when a finished Job is to be removed by its ``ttlSecondsAfterFinished``."""
    ttl = job.spec.ttl_seconds_after_finished
    if ttl is None:
        return None
    for condition in job.status.conditions or ():
        if condition.type in _INTERIM and condition.status == "True" and condition.last_transition_time:
            return after(parse_rfc3339(condition.last_transition_time), seconds(ttl))
    return None


# ── pods ──


def desired_active(job: Job, found: Tally) -> int:
    """Return how many pods should be at work."""
    spec = job.spec
    if spec.suspend:
        return 0
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is None:
        # Once one has said that the work is done, the others finish and no new one begins.
        return min(len(found.active), parallelism) if found.succeeded else parallelism
    return min(max(spec.completions - found.succeeded, 0), parallelism)


def new_indexes(job: Job, found: Tally, count: int) -> list[int]:
    """Return the lowest indexes that are neither done nor being worked at, at most so many."""
    taken = found.done_indexes | {index_of(pod) for pod in found.active}
    free = (index for index in range(job.spec.completions or 0) if index not in taken)
    return [index for index, _ in zip(free, range(count), strict=False)]


def surplus_indexed(job: Job, found: Tally) -> list[Pod]:
    """Return the active pods of an Indexed Job whose index is done, out of range, or worked at twice."""
    seen: set[int] = set()
    surplus = []
    for pod in found.active:
        index = index_of(pod)
        if index is None or index >= (job.spec.completions or 0) or index in found.done_indexes | seen:
            surplus.append(pod)
        else:
            seen.add(index)
    return surplus


def most_at_once(count: int) -> int:
    """Return how many pods one sync may make or remove."""
    return min(count, _BURST)


# ── status ──


def status_of(job: Job, found: Tally, ending: Ending | None, now: Instant) -> JobStatus:
    """Return the status as it is now; the final condition comes when all pods are settled."""
    old = job.status
    conditions = _suspension(job, now)
    if ending is not None:
        conditions = _with(conditions, _INTERIM[ending.type], ending, now)
        if found.is_settled:
            conditions = _with(conditions, ending.type, ending, now)
    over = ending is not None and found.is_settled
    indexed = job.spec.completion_mode == "Indexed"
    started = old.start_time
    if job.spec.suspend:
        started = None
    elif started is None:
        started = format_rfc3339(now)
    return JobStatus(
        conditions=conditions or None,
        start_time=started,
        completion_time=format_rfc3339(now)
        if over and ending is not None and ending.type == "Complete"
        else None,
        active=len(found.active) + found.change,
        ready=sum(is_ready(pod) for pod in found.active),
        terminating=found.terminating,
        succeeded=found.succeeded if indexed else old.succeeded + found.flushed_succeeded,
        failed=old.failed + found.flushed_failed,
        completed_indexes=format_indexes(found.done_indexes) if indexed else "",
        uncounted_terminated_pods=found.noticed,
    )


def _suspension(job: Job, now: Instant) -> tuple[Condition, ...]:
    conditions = tuple(job.status.conditions or ())
    said = next((each for each in conditions if each.type == "Suspended"), None)
    if job.spec.suspend and (said is None or said.status != "True"):
        return _set(conditions, "Suspended", "True", "JobSuspended", "Job suspended", now)
    if not job.spec.suspend and said is not None and said.status == "True":
        return _set(conditions, "Suspended", "False", "JobResumed", "Job resumed", now)
    return conditions


def _with(
    conditions: tuple[Condition, ...], kind: str, ending: Ending, now: Instant
) -> tuple[Condition, ...]:
    if any(each.type == kind and each.status == "True" for each in conditions):
        return conditions
    return _set(conditions, kind, "True", ending.reason, ending.message, now)


def _set(
    conditions: tuple[Condition, ...], kind: str, status: str, reason: str, message: str, now: Instant
) -> tuple[Condition, ...]:
    new = Condition(
        type=kind, status=status, reason=reason, message=message, last_transition_time=format_rfc3339(now)
    )
    return (*(each for each in conditions if each.type != kind), new)


# ── completed indexes ──


def parse_indexes(text: str) -> set[int]:
    """Read ``1,3-5``; parts that are no numbers are left out."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first.isascii() and first.isdigit() and (not dash or (last.isascii() and last.isdigit())):
            found.update(range(int(first), int(last if dash else first) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Print ``1,3-5``: runs of three or more in short, runs of two one by one."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(
        str(run[0]) if len(run) == 1 else f"{run[0]}{',' if len(run) == 2 else '-'}{run[-1]}" for run in runs
    )
