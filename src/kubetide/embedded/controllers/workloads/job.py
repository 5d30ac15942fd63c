"""The Job controller: pods until enough of them have succeeded, or too many have failed.

Both modes of completion, parallelism, the back-off limit, the deadline, suspension and the
removal of finished Jobs after their time to live. Not done: pod failure policies, success policies
and back-off limits per index.

What pods do, and what the status says, is acted on a second later, together with what else happens until then; a
new Job or another spec at once. Source: kube-controller-manager v1.36.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kubetide.acting import EventWriter
from kubetide.embedded.controllers.work_queue import WorkQueue
from kubetide.embedded.controllers.workloads.deletion_order import removal_order
from kubetide.embedded.controllers.workloads.job_backoff import Failures
from kubetide.embedded.controllers.workloads.job_plan import (
    FINALIZER,
    INDEX,
    Ending,
    Tally,
    after_release,
    deadline_of,
    desired_active,
    ending_of,
    is_tracked,
    most_at_once,
    new_indexes,
    removal_due,
    status_of,
    surplus_indexed,
    tally,
    with_change,
)
from kubetide.embedded.controllers.workloads.owned_pods import PodIndex, follow
from kubetide.embedded.controllers.workloads.templates import owner_reference, pod_from_template, to_json
from kubetide.objects.base import Json
from kubetide.objects.batch import Job, finished_as
from kubetide.objects.kinds import JOBS, PODS
from kubetide.objects.meta import Key, controller_of
from kubetide.objects.pod import Pod
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, ApiError, Conflict, NotFound
from kubetide.units.patch import merge_diff
from kubetide.units.seeds import name_suffix
from kubetide.units.time import Instant, after, minutes, seconds
from kubetide.watching import Informer

_EXPECTATION_LIFE = minutes(5)
_BATCH = seconds(1)
"""Upstream's SyncJobBatchPeriod."""


class JobController:
    """Makes and removes the pods of Jobs, counts how they end, and keeps the status."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        seed: int,
        *,
        jobs: Informer[Job],
        pods: Informer[Pod],
        pod_index: PodIndex,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._seed = seed
        self._jobs = jobs
        self._pods = pods
        self._index = pod_index
        self._events = EventWriter(cluster, clock, "job-controller")
        self._queue: WorkQueue[Key] = WorkQueue(clock)
        self._orphans: WorkQueue[Key] = WorkQueue(clock)
        """Pods with the finalizer of a Job that is gone."""
        self._expected: dict[Key, dict[Key, Instant]] = {}
        """By Job: pods that were made and that the cache has not shown, and until when that is believed."""
        self._drawn: dict[str, int] = {}
        self._failures: dict[str, Failures] = {}
        """By uid of a Job; of the ends that its status tells."""
        self._released: dict[Key, set[str]] = {}
        """By Job: uids of pods whose finalizer was taken off and that the cache shows with it."""

    async def run(self) -> None:
        """Work until cancelled. The informers are run by whoever made them."""
        await self._jobs.synced()
        await self._pods.synced()
        follow(self._jobs, self._job_changed)
        follow(self._pods, self._pod_changed)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._queue.serve(self._sync))
            group.create_task(self._orphans.serve(self._release_orphan))

    # ── what happened ──

    def _job_changed(self, key: Key, old: Job | None, new: Job | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._expected.pop(key, None)
            self._drawn.pop(old.metadata.uid, None)
            self._failures.pop(old.metadata.uid, None)
            self._released.pop(key, None)
            self._queue.forget(key)
            for pod in self._index.owned_by(old.metadata.uid).pods:
                self._orphans.add(pod)
            old = None
        if new is None:
            return
        if old is None or old.metadata.generation != new.metadata.generation or finished_as(new):
            self._queue.add(key)
        else:
            self._add_batched(key)

    def _add_batched(self, key: Key) -> None:
        self._queue.add_at(key, after(self._clock.now(), _BATCH))

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        shown = new or old
        owner = None if shown is None else controller_of(shown.metadata)
        if owner is None or owner.kind != "Job":
            return
        job_key = key[0], owner.name
        self._expected.get(job_key, {}).pop(key, None)
        if shown is not None and (new is None or not is_tracked(new)):
            self._forget_released(job_key, shown.metadata.uid)
        job = self._jobs.objects.get(job_key)
        if job is not None and job.metadata.uid == owner.uid:
            self._add_batched(job_key)
        elif new is not None and is_tracked(new):
            self._orphans.add(key)

    def _forget_released(self, job_key: Key, uid: str) -> None:
        released = self._released.get(job_key)
        if released is not None:
            released.discard(uid)
            if not released:
                del self._released[job_key]

    async def _release_orphan(self, key: Key) -> None:
        pod = self._pods.objects.get(key)
        owner = None if pod is None else controller_of(pod.metadata)
        if pod is None or owner is None:
            return
        job = self._jobs.objects.get((key[0], owner.name))
        if job is None or job.metadata.uid != owner.uid:
            await self._untrack(pod)

    # ── bringing in line ──

    async def _sync(self, key: Key) -> None:
        job = self._jobs.objects.get(key)
        if job is None:
            return
        pods = list(self._index.owned_by(job.metadata.uid).pods.values())
        if finished_as(job):
            for pod in pods:
                if is_tracked(pod):
                    await self._untrack(pod)
            await self._remove_when_due(key, job)
            return
        now = self._clock.now()
        found = tally(job, pods, self._released.get(key, ()))
        uid = job.metadata.uid
        failures = self._failures.get(uid, Failures()).with_ends(found.new_successes, found.new_failures)
        ending = ending_of(job, found, now)
        if job.metadata.deletion_timestamp is None and self._has_seen_its_pods(key):
            found = with_change(found, await self._manage(key, job, found, ending, failures))
        job = await self._write_status(key, job, found, ending, now)
        # Kept when the ends are written: else they are noticed again.
        self._failures[uid] = failures
        if found.to_release:
            for pod in found.to_release:
                await self._release(key, pod)
            await self._write_status(key, job, after_release(found), ending, now)
        due = deadline_of(job)
        if due is not None and ending is None:
            self._queue.add_at(key, due)

    def _has_seen_its_pods(self, key: Key) -> bool:
        expected = self._expected.get(key)
        if not expected:
            return True
        last = max(expected.values())
        if self._clock.now() >= last:
            del self._expected[key]
            return True
        self._queue.add_at(key, last)
        return False

    async def _remove_when_due(self, key: Key, job: Job) -> None:
        due = removal_due(job)
        if due is None or job.metadata.deletion_timestamp is not None:
            return
        if due > self._clock.now():
            self._queue.add_at(key, due)
            return
        try:
            await self._cluster.delete(
                JOBS, key[1], namespace=key[0], uid=job.metadata.uid, propagation="Foreground"
            )
        except (NotFound, Conflict):
            return

    async def _manage(
        self, key: Key, job: Job, found: Tally, ending: Ending | None, failures: Failures
    ) -> int:
        """Make or delete pods, and return how many more there are now."""
        if ending is not None:
            # Those of a failed Job count as failures, those that a complete one has left over do not.
            await self._delete(job, found.active, counted=ending.type == "Failed")
            return -len(found.active)
        indexed = job.spec.completion_mode == "Indexed"
        surplus = surplus_indexed(job, found) if indexed else []
        desired = desired_active(job, found)
        count = len(found.active) - len(surplus)
        if count > desired:
            remaining = [pod for pod in found.active if pod not in surplus]
            surplus += removal_order(remaining, {}, self._clock.now())[: count - desired]
        if surplus:
            going = surplus[: most_at_once(len(surplus))]
            await self._delete(job, going, counted=False)
            return -len(going)
        if count < desired:
            due, now = failures.due(), self._clock.now()
            if due > now:
                self._queue.add_at(key, max(due, after(now, _BATCH)))
                return 0
            missing = most_at_once(desired - count)
            indexes: Sequence[int | None] = new_indexes(job, found, missing) if indexed else [None] * missing
            await self._create(key, job, indexes)
            return len(indexes)
        return 0

    async def _create(self, key: Key, job: Job, indexes: Sequence[int | None]) -> None:
        meta = job.metadata
        live = await self._cluster.get(JOBS.untyped, meta.name, namespace=meta.namespace)
        if live["metadata"].get("uid") != meta.uid:
            raise NotFound(f'jobs.batch "{meta.name}" was replaced by another of that name')
        template: Json = live["spec"].get("template") or {}
        for index in indexes:
            body = pod_from_template(template, owner_reference(JOBS, meta), name="")
            given = body["metadata"]
            given["finalizers"] = [*(given.get("finalizers") or ()), FINALIZER]
            if index is not None:
                given["annotations"] = {**(given.get("annotations") or {}), INDEX: str(index)}
                given["labels"] = {**(given.get("labels") or {}), INDEX: str(index)}
                body["spec"] = {**body["spec"], "hostname": f"{meta.name}-{index}"}
            try:
                await self._create_one(key, job, body, index)
            except ApiError as error:
                message = f"Error creating: {error}"
                await self._events.record(JOBS, meta, "Warning", "FailedCreate", message)
                raise
            await self._events.record(
                JOBS, meta, "Normal", "SuccessfulCreate", f"Created pod: {given['name']}"
            )

    async def _create_one(self, key: Key, job: Job, body: Json, index: int | None) -> None:
        uid, stem = job.metadata.uid, job.metadata.name if index is None else f"{job.metadata.name}-{index}"
        expected = self._expected.setdefault(key, {})
        while True:
            drawn = self._drawn.get(uid, 0)
            self._drawn[uid] = drawn + 1
            name = f"{stem}-{name_suffix(self._seed, 'pod', uid, drawn)}"
            body["metadata"]["name"] = name
            # Noted before the call: the cache may show the pod before the call returns.
            expected[key[0], name] = after(self._clock.now(), _EXPECTATION_LIFE)
            try:
                await self._cluster.create(PODS, body, namespace=key[0])
            except AlreadyExists:
                expected.pop((key[0], name), None)
            except ApiError:
                expected.pop((key[0], name), None)
                raise
            else:
                return

    async def _delete(self, job: Job, pods: Sequence[Pod], *, counted: bool) -> None:
        for pod in pods:
            meta = pod.metadata
            if not counted:
                await self._untrack(pod)
            try:
                await self._cluster.delete(PODS, meta.name, namespace=meta.namespace, uid=meta.uid)
            except (NotFound, Conflict):
                continue
            message = f"Deleted pod: {meta.name}"
            await self._events.record(JOBS, job.metadata, "Normal", "SuccessfulDelete", message)

    async def _release(self, key: Key, pod: Pod) -> None:
        """Take the finalizer off a pod whose end the status tells. Raises ApiError."""
        uid = pod.metadata.uid
        self._released.setdefault(key, set()).add(uid)
        try:
            await self._untrack(pod)
        except ApiError:
            self._forget_released(key, uid)
            raise

    async def _untrack(self, pod: Pod) -> None:
        """Take the finalizer off, if the pod is still this one."""
        meta = pod.metadata
        remaining = [name for name in meta.finalizers or () if name != FINALIZER]
        if len(remaining) == len(meta.finalizers or ()):
            return
        patch: Json = {"metadata": {"uid": meta.uid, "finalizers": remaining or None}}
        try:
            await self._cluster.patch(PODS, meta.name, patch, namespace=meta.namespace)
        except (NotFound, Conflict):
            return

    # ── status ──

    async def _write_status(
        self, key: Key, job: Job, found: Tally, ending: Ending | None, now: Instant
    ) -> Job:
        """Write what the status says now, and return the Job with it."""
        status = status_of(job, found, ending, now)
        # The counts build on those that were read, so they hold for that version only.
        difference = merge_diff(to_json(job.status), to_json(status))
        if not difference:
            return job
        patch: Json = {
            "metadata": {"resourceVersion": job.metadata.resource_version},
            "status": difference,
        }
        written = await self._cluster.patch(JOBS, key[1], patch, namespace=key[0], subresource="status")
        said = {condition.type: condition.status for condition in job.status.conditions or ()}
        for condition in status.conditions or ():
            if said.get(condition.type) == condition.status:
                continue
            if condition.type == "Suspended":
                reason = "Suspended" if condition.status == "True" else "Resumed"
                await self._events.record(JOBS, job.metadata, "Normal", reason, condition.message)
            elif condition.type == "Complete":
                await self._events.record(JOBS, job.metadata, "Normal", "Completed", "Job completed")
            elif condition.type == "Failed":
                await self._events.record(JOBS, job.metadata, "Warning", condition.reason, condition.message)
        return written
