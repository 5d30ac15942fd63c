from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.embedded.controllers.workload_worlds import CONTAINERS, play

from kubetide.embedded.controllers.workloads.job_plan import (
    FINALIZER,
    backoff_of,
    format_indexes,
    parse_indexes,
)
from kubetide.objects.kinds import JOBS, PODS
from kubetide.ports.errors import NotFound
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
    """Five completions at two a time: three batches of pods, each counted once, then Complete."""

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
        assert status["completionTime"] == "2026-03-02T00:01:33Z"
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
        # Failures at 6 s, 10 s and 6 s later, 20 s and 6 s later.
        await world.sleep(21)
        assert (await world.get(JOBS, "work"))["status"].get("failed") == 1
        await world.sleep(2)
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
