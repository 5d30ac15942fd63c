from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.embedded.controllers.live import Failing
from tests.embedded.controllers.workload_worlds import CONTAINERS, play

from kubetide.embedded.controllers.workloads.job_backoff import Failures, backoff_of, finished_at
from kubetide.embedded.controllers.workloads.job_plan import (
    FINALIZER,
    format_indexes,
    parse_indexes,
)
from kubetide.objects.kinds import JOBS, PODS
from kubetide.objects.pod import Pod
from kubetide.ports.errors import Conflict, NotFound
from kubetide.units.time import seconds


def spec(policy="Never", annotations=None, **more):
    template = {"spec": {"containers": CONTAINERS, "restartPolicy": policy}}
    if annotations:
        template["metadata"] = {
            "annotations": {f"kubetide.dev/{key}": text for key, text in annotations.items()}
        }
    return {"template": template, **more}


async def conditions(world, name="work"):
    status = (await world.get(JOBS, name))["status"]
    return [(each["type"], each["status"], each["reason"]) for each in status.get("conditions") or ()]


def test_a_job_completes_when_enough_pods_have_succeeded():
    """Five completions at two a time: three batches of pods, each counted once within a second, then Complete."""

    async def body(world):
        await world.create(JOBS, "work", spec(completions=5, parallelism=2))
        await world.sleep(10)
        status = (await world.get(JOBS, "work"))["status"]
        assert (status["active"], status["ready"]) == (2, 2)
        assert all(FINALIZER in pod["metadata"]["finalizers"] for pod in await world.list(PODS))
        await world.sleep(40)
        status = (await world.get(JOBS, "work"))["status"]
        assert (status["active"], status["succeeded"]) == (2, 2)
        await world.sleep(60)
        status = (await world.get(JOBS, "work"))["status"]
        assert (status["succeeded"], status.get("active"), status.get("failed")) == (5, None, None)
        assert status["startTime"] == "2026-03-02T00:00:00Z"
        assert status["completionTime"] == "2026-03-02T00:01:36Z"
        assert await conditions(world) == [
            ("SuccessCriteriaMet", "True", "CompletionsReached"),
            ("Complete", "True", "CompletionsReached"),
        ]
        pods = await world.list(PODS)
        assert [pod["status"]["phase"] for pod in pods] == ["Succeeded"] * 5
        assert not any(pod["metadata"].get("finalizers") for pod in pods)
        assert (await world.reasons()).count("Completed") == 1

    play(body)


def test_a_job_fails_after_its_back_off_limit():
    """Each failure is waited for longer; one more than the limit ends the Job."""

    async def body(world):
        failing = {"run-duration": "5s", "exit-code": "3"}
        await world.create(JOBS, "work", spec(annotations=failing, backoffLimit=2))
        # Failures at 6 s, 10 s and 6 s later, 20 s and 6 s later; each is noticed within a second.
        await world.sleep(21)
        assert (await world.get(JOBS, "work"))["status"].get("failed") == 1
        await world.sleep(3)
        assert (await world.get(JOBS, "work"))["status"].get("failed") == 2
        await world.sleep(30)
        assert (await world.get(JOBS, "work"))["status"]["failed"] == 3
        assert await conditions(world) == [
            ("FailureTarget", "True", "BackoffLimitExceeded"),
            ("Failed", "True", "BackoffLimitExceeded"),
        ]
        pods = await world.list(PODS)
        assert [pod["status"]["phase"] for pod in pods] == ["Failed"] * 3
        assert pods[0]["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3

    play(body)


def test_on_failure_restarts_in_the_same_pod_until_the_limit():
    """With OnFailure a container is started again in its pod, and the restarts count against the limit."""

    async def body(world):
        failing = {"run-duration": "5s", "exit-code": "1"}
        await world.create(JOBS, "work", spec("OnFailure", failing, backoffLimit=2))
        await world.sleep(10)
        (pod,) = await world.list(PODS)
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
        await world.sleep(40)
        assert (await conditions(world))[-1] == ("Failed", "True", "BackoffLimitExceeded")
        assert await world.pods() == {}

    play(body)


def test_a_deadline_ends_what_runs():
    """A Job that has been active too long fails, its pods are stopped and counted as failed."""

    async def body(world):
        await world.create(JOBS, "work", spec(parallelism=2, activeDeadlineSeconds=10))
        await world.sleep(30)
        status = (await world.get(JOBS, "work"))["status"]
        assert (status.get("active"), status["failed"]) == (None, 2)
        assert (await conditions(world))[-1] == ("Failed", "True", "DeadlineExceeded")
        assert await world.list(PODS) == []

    play(body)


def test_a_suspended_job_stops_and_starts_again():
    """Suspension stops the pods without a failure; a resumed Job begins its time anew."""

    async def body(world):
        await world.create(JOBS, "work", spec(completions=1))
        await world.sleep(10)
        await world.patch(JOBS, "work", {"suspend": True})
        await world.sleep(10)
        status = (await world.get(JOBS, "work"))["status"]
        assert await world.list(PODS) == []
        assert (status.get("failed"), status.get("startTime")) == (None, None)
        assert await conditions(world) == [("Suspended", "True", "JobSuspended")]
        await world.patch(JOBS, "work", {"suspend": False})
        await world.sleep(60)
        status = (await world.get(JOBS, "work"))["status"]
        assert status["startTime"] == "2026-03-02T00:00:20Z"
        assert (await conditions(world))[-1] == ("Complete", "True", "CompletionsReached")

    play(body)


def test_a_finished_job_goes_after_its_time_to_live():
    """The Job and its pods are removed that many seconds after its end."""

    async def body(world):
        await world.create(JOBS, "work", spec(ttlSecondsAfterFinished=20))
        await world.sleep(45)
        assert (await conditions(world))[-1][0] == "Complete"
        await world.sleep(15)
        assert await world.list(PODS) == []
        with pytest.raises(NotFound):
            await world.get(JOBS, "work")

    play(body)


def test_an_indexed_job_completes_each_index_once():
    """Every index gets a pod of its own; a pod that is lost is made again for the same index."""

    async def body(world):
        await world.create(JOBS, "work", spec(completions=4, parallelism=3, completionMode="Indexed"))
        await world.sleep(10)
        names = sorted(pod["spec"]["hostname"] for pod in await world.list(PODS))
        assert names == ["work-0", "work-1", "work-2"]
        lost = (await world.list(PODS))[1]["metadata"]["name"]
        await world.delete(PODS, lost)
        await world.sleep(120)
        status = (await world.get(JOBS, "work"))["status"]
        assert (status["succeeded"], status["completedIndexes"], status["failed"]) == (4, "0-3", 1)
        assert (await conditions(world))[-1][0] == "Complete"

    play(body)


def test_without_completions_one_success_ends_the_work():
    """A work queue: after the first success no pod is made, and the others finish."""

    async def body(world):
        await world.create(JOBS, "work", spec(parallelism=3))
        await world.sleep(60)
        status = (await world.get(JOBS, "work"))["status"]
        assert status["succeeded"] == 3
        assert (await conditions(world))[-1][0] == "Complete"

    play(body)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_deleted_job_leaves_no_pod_held_by_its_finalizer(propagation):
    """The pods of a Job that is deleted while it runs lose their finalizer and are removed."""

    async def body(world):
        await world.create(JOBS, "work", spec(parallelism=3))
        await world.sleep(10)
        await world.delete(JOBS, "work", propagation=propagation)
        await world.sleep(20)
        return await world.list(PODS), await world.list(JOBS)

    assert play(body) == ([], [])


def test_pods_end_by_themselves_only_where_they_may():
    """A pod that says so ends after its time; one that restarts always, or says nothing, runs on."""

    async def body(world):
        said = {"annotations": {"kubetide.dev/run-duration": "10s"}}
        for name, policy, meta in (
            ("declared", "Never", said),
            ("silent", "Never", {}),
            ("always", "Always", said),
            ("unreadable", "Never", {"annotations": {"kubetide.dev/run-duration": "soon"}}),
        ):
            await world.create(PODS, name, {"containers": CONTAINERS, "restartPolicy": policy}, **meta)
        await world.sleep(20)
        first = await world.pods()
        await world.sleep(30)
        return first, await world.pods()

    running = dict.fromkeys(["always", "declared", "silent", "unreadable"], "Running")
    assert play(body) == (
        running | {"declared": "Succeeded"},
        running | {"declared": "Succeeded", "unreadable": "Succeeded"},
    )


@given(st.sets(st.integers(0, 40)))
def test_indexes_read_as_they_were_written(indexes):
    """The short form of completed indexes loses nothing."""
    assert parse_indexes(format_indexes(indexes)) == indexes


@pytest.mark.parametrize(("failures", "pause_s"), [(0, 0), (1, 10), (2, 20), (6, 320), (7, 600), (50, 600)])
def test_the_pause_doubles_up_to_ten_minutes(failures, pause_s):
    """Ten seconds after the first failure, doubled with each, at most ten minutes."""
    assert backoff_of(failures) == seconds(pause_s)


def ended(second, phase="Failed"):
    at = f"2026-03-02T00:00:{second:02}Z"
    state = {"terminated": {"exitCode": 1, "finishedAt": at}}
    return msgspec.convert(
        {
            "metadata": {"name": "p"},
            "status": {"phase": phase, "containerStatuses": [{"name": "c", "state": state}]},
        },
        Pod,
    )


@pytest.mark.parametrize(
    ("succeeded", "failed", "count", "last"),
    [
        ([], [], 2, 5),
        ([], [8, 7], 4, 8),
        ([9], [], 0, None),
        ([9], [8, 10, 12], 2, 12),
        ([9], [8], 0, None),
    ],
)
def test_a_success_begins_the_count_of_failures_anew(succeeded, failed, count, last):
    """Those that ended after it count, by the times at which their containers ended."""
    before = Failures(2, finished_at(ended(5)))
    found = before.with_ends([ended(one) for one in succeeded], [ended(one) for one in failed])
    assert found.in_a_row == count
    if last is not None:
        assert found.last == finished_at(ended(last))
        assert found.due() == found.last + backoff_of(count)


def test_a_status_that_cannot_be_written_counts_no_failure_twice():
    """The back-off is that of one failure, though its first write was refused."""

    async def body(world):
        world.cluster.faults = failing
        annotations = {"run-duration": "5s", "exit-code": "3"}
        await world.create(JOBS, "work", spec(annotations=annotations, backoffLimit=2))
        await world.sleep(18)
        return failing.hits, len(await world.list(PODS))

    def tells_a_failure(request):
        told = (request.body or {}).get("status", {}) if request.kind is JOBS else {}
        return failing.hits < 3 and bool((told.get("uncountedTerminatedPods") or {}).get("failed"))

    failing = Failing(tells_a_failure, Conflict("the object has been modified"))
    assert play(body) == (3, 2)
