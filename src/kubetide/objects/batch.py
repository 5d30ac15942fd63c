"""batch/v1 Job and CronJob."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.cluster import ObjectReference
from kubetide.objects.meta import ApiObject, Condition, LabelSelector, ObjectMeta
from kubetide.objects.pod import PodTemplate


class JobSpec(ApiStruct):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    active_deadline_seconds: int | None = None
    backoff_limit: int | None = None
    selector: LabelSelector | None = None
    manual_selector: bool | None = None
    template: PodTemplate = field(default_factory=PodTemplate)
    ttl_seconds_after_finished: int | None = None
    suspend: bool | None = None


class UncountedTerminatedPods(ApiStruct):
    """Uids of pods that have ended and still carry the Job's finalizer."""

    succeeded: tuple[str, ...] | None = None
    failed: tuple[str, ...] | None = None


class JobStatus(ApiStruct):
    conditions: tuple[Condition, ...] | None = None
    start_time: str | None = None
    completion_time: str | None = None
    active: int = 0
    ready: int | None = None
    terminating: int | None = None
    succeeded: int = 0
    failed: int = 0
    completed_indexes: str = ""
    uncounted_terminated_pods: UncountedTerminatedPods | None = None


class Job(ApiObject):
    spec: JobSpec = field(default_factory=JobSpec)
    status: JobStatus = field(default_factory=JobStatus)


class JobTemplate(ApiStruct):
    """The Job inside a CronJob."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: JobSpec = field(default_factory=JobSpec)


class CronJobSpec(ApiStruct):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    job_template: JobTemplate = field(default_factory=JobTemplate)
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class CronJobStatus(ApiStruct):
    active: tuple[ObjectReference, ...] | None = None
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(ApiObject):
    spec: CronJobSpec = field(default_factory=CronJobSpec)
    status: CronJobStatus = field(default_factory=CronJobStatus)


def finished_as(job: Job) -> str:
    """Return ``Complete`` or ``Failed``, the condition that says a Job has finished, or nothing."""
    for condition in job.status.conditions or ():
        if condition.type in {"Complete", "Failed"} and condition.status == "True":
            return condition.type
    return ""
