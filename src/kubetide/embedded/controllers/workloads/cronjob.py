"""The CronJob controller: a Job at each time of a schedule.

A start that was missed is made up for if its deadline allows, and of several only the newest.
Times without a zone are UTC. Source: kube-controller-manager v1.36, cronjob_controllerv2.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import format_datetime
from typing import Literal

from kubetide.acting import EventWriter
from kubetide.embedded.controllers.work_queue import WorkQueue
from kubetide.embedded.controllers.workloads.cron_plan import beyond_history, due_at, is_too_late, job_name
from kubetide.embedded.controllers.workloads.owned_pods import follow
from kubetide.embedded.controllers.workloads.templates import owner_reference, to_json
from kubetide.objects.base import Json
from kubetide.objects.batch import CronJob, CronJobStatus, Job, finished_as
from kubetide.objects.cluster import ObjectReference
from kubetide.objects.kinds import CRON_JOBS, JOBS
from kubetide.objects.meta import Key, controller_of
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, ApiError, Conflict, NotFound
from kubetide.units.cron import CronError, Schedule, parse_cron, zone_of
from kubetide.units.patch import merge_diff
from kubetide.units.time import Instant, format_rfc3339
from kubetide.watching import Informer

_SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CronJobController:
    """Makes Jobs when they are due, keeps the list of those that run, and removes old ones."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        cron_jobs: Informer[CronJob],
        jobs: Informer[Job],
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._cron_jobs = cron_jobs
        self._jobs = jobs
        self._events = EventWriter(cluster, clock, "cronjob-controller")
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._owned: dict[str, dict[Key, None]] = {}
        """Uid of a CronJob to the keys of its Jobs."""

    async def run(self) -> None:
        """Work until cancelled. The informers are run by whoever made them."""
        await self._cron_jobs.synced()
        await self._jobs.synced()
        follow(self._jobs, self._job_changed)
        follow(self._cron_jobs, self._cron_job_changed)
        await self._queue.serve(self._sync)

    # ── what happened ──

    def _cron_job_changed(self, key: Key, old: CronJob | None, new: CronJob | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._queue.forget(key)
        if new is not None:
            self._queue.add(key)

    def _job_changed(self, key: Key, old: Job | None, new: Job | None) -> None:
        for job in (old, new):
            owner = None if job is None else controller_of(job.metadata)
            if owner is None or owner.kind != "CronJob":
                continue
            owned = self._owned.setdefault(owner.uid, {})
            if job is new:
                owned[key] = None
            else:
                owned.pop(key, None)
            if not owned:
                del self._owned[owner.uid]
            self._queue.add((key[0], owner.name))

    # ── bringing in line ──

    async def _sync(self, key: Key) -> None:
        found = self._cron_jobs.objects.get(key)
        if found is None:
            return
        jobs = [self._jobs.objects[each] for each in self._owned.get(found.metadata.uid, {})]
        await self._write_status(found, await self._seen(found, jobs))
        jobs = [job for job in jobs if job.metadata.deletion_timestamp is None]
        for job in beyond_history(found, jobs):
            await self._delete_job(found, job.metadata.name, job.metadata.uid)
        if found.metadata.deletion_timestamp is None and not found.spec.suspend:
            await self._start_when_due(key, found, jobs)

    async def _seen(self, found: CronJob, jobs: Sequence[Job]) -> CronJobStatus:
        """Return the status with the Jobs that have finished or gone taken out of the list."""
        by_uid = {job.metadata.uid: job for job in jobs}
        active = []
        last_success = found.status.last_successful_time
        for reference in found.status.active or ():
            job = by_uid.get(reference.uid)
            ending = "" if job is None else finished_as(job)
            if job is not None and not ending:
                active.append(reference)
            elif job is not None:
                message = f"Saw completed job: {reference.name}, condition: {ending}"
                await self._event(found, "Normal", "SawCompletedJob", message)
            elif await self._exists(found, reference):
                active.append(reference)
            else:
                message = f"Active job went missing: {reference.name}"
                await self._event(found, "Normal", "MissingJob", message)
        for job in jobs:
            if finished_as(job) == "Complete" and job.status.completion_time:
                last_success = max(last_success or "", job.status.completion_time)
        return CronJobStatus(
            active=tuple(active) or None,
            last_schedule_time=found.status.last_schedule_time,
            last_successful_time=last_success,
        )

    async def _exists(self, found: CronJob, reference: ObjectReference) -> bool:
        """Ask the server, as the cache may not have shown a Job that was just made."""
        try:
            live = await self._cluster.get(JOBS, reference.name, namespace=found.metadata.namespace)
        except NotFound:
            return False
        return live.metadata.uid == reference.uid

    async def _start_when_due(self, key: Key, found: CronJob, jobs: Sequence[Job]) -> None:
        read = await self._read_schedule(found)
        if read is None:
            return
        schedule, zone = read
        now = self._clock.now()
        due = due_at(found, schedule, zone, now)
        if due.following is not None:
            self._queue.add_at(key, due.following)
        if due.missed_many:
            message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            await self._event(found, "Warning", "TooManyMissedTimes", message)
        start = due.last
        if start is None:
            return
        if is_too_late(found, start, now):
            at = format_datetime(_EPOCH + timedelta(seconds=start // 1_000_000_000))
            await self._event(found, "Warning", "MissSchedule", f"Missed scheduled time to start a job: {at}")
            return
        running = [job for job in jobs if not finished_as(job)]
        if found.spec.concurrency_policy == "Forbid" and running:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            await self._event(found, "Normal", "JobAlreadyActive", message)
            return
        if found.spec.concurrency_policy == "Replace":
            for job in running:
                await self._delete_job(found, job.metadata.name, job.metadata.uid)
        await self._start(found, start, zone)

    async def _read_schedule(self, found: CronJob) -> tuple[Schedule, tzinfo] | None:
        """Return the schedule and its zone; None, and an event, where either cannot be read."""
        spec = found.spec
        try:
            zone = zone_of(spec.time_zone or "UTC")
        except CronError as error:
            message = f"invalid timeZone: {spec.time_zone!r}: {error}"
            await self._event(found, "Warning", "UnknownTimeZone", message)
            return None
        try:
            return parse_cron(spec.schedule), zone
        except CronError as error:
            message = f"unparseable schedule: {spec.schedule!r}: {error}"
            await self._event(found, "Warning", "UnparseableSchedule", message)
            return None

    async def _start(self, found: CronJob, start: Instant, zone: tzinfo) -> None:
        meta = found.metadata
        live = await self._cluster.get(CRON_JOBS.untyped, meta.name, namespace=meta.namespace)
        if live["metadata"].get("uid") != meta.uid:
            raise Conflict(f"cronjobs.batch {meta.name!r} was replaced by another of that name")
        template: Json = live["spec"].get("jobTemplate") or {}
        given = template.get("metadata") or {}
        scheduled = (_EPOCH + timedelta(seconds=start // 1_000_000_000)).astimezone(zone)
        body: Json = {
            "metadata": {
                "name": job_name(found, start),
                "labels": given.get("labels") or {},
                "annotations": {
                    **(given.get("annotations") or {}),
                    _SCHEDULED_AT: scheduled.isoformat().replace("+00:00", "Z"),
                },
                "ownerReferences": [to_json(owner_reference(CRON_JOBS, meta))],
            },
            "spec": template.get("spec") or {},
        }
        name = body["metadata"]["name"]
        try:
            job = await self._cluster.create(JOBS, body, namespace=meta.namespace)
        except AlreadyExists:
            job = await self._cluster.get(JOBS, name, namespace=meta.namespace)
            owner = controller_of(job.metadata)
            if owner is None or owner.uid != meta.uid:
                raise
        except ApiError as error:
            await self._event(found, "Warning", "FailedCreate", f"Error creating job: {error}")
            raise
        else:
            await self._event(found, "Normal", "SuccessfulCreate", f"Created job {name}")
        await self._note_start(found, job, start)

    async def _note_start(self, found: CronJob, job: Job, start: Instant) -> None:
        """Write the Job and its time into the status, on top of what stands there now."""
        meta = found.metadata
        live = await self._cluster.get(CRON_JOBS, meta.name, namespace=meta.namespace)
        active = list(live.status.active or ())
        if all(each.uid != job.metadata.uid for each in active) and not finished_as(job):
            active.append(
                ObjectReference(
                    api_version=JOBS.api_version,
                    kind=JOBS.kind,
                    namespace=meta.namespace,
                    name=job.metadata.name,
                    uid=job.metadata.uid,
                    resource_version=job.metadata.resource_version,
                )
            )
        await self._write_status(
            live,
            CronJobStatus(
                active=tuple(active) or None,
                last_schedule_time=format_rfc3339(start),
                last_successful_time=live.status.last_successful_time,
            ),
        )

    async def _delete_job(self, found: CronJob, name: str, uid: str) -> None:
        try:
            await self._cluster.delete(JOBS, name, namespace=found.metadata.namespace, uid=uid)
        except (NotFound, Conflict):
            return
        await self._event(found, "Normal", "SuccessfulDelete", f"Deleted job {name}")

    async def _write_status(self, found: CronJob, status: CronJobStatus) -> None:
        difference = merge_diff(to_json(found.status), to_json(status))
        if difference:
            meta = found.metadata
            patch: Json = {"metadata": {"resourceVersion": meta.resource_version}, "status": difference}
            await self._cluster.patch(
                CRON_JOBS, meta.name, patch, namespace=meta.namespace, subresource="status"
            )

    async def _event(
        self, found: CronJob, level: Literal["Normal", "Warning"], reason: str, message: str
    ) -> None:
        await self._events.record(CRON_JOBS, found.metadata, level, reason, message)
