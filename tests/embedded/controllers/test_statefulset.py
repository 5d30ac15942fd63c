from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.embedded.controllers.workload_worlds import CONTAINERS, play
from tests.objects import samples

from kubetide.embedded.controllers.workloads.stateful_plan import Create, Revisions, ordinal_of, steps
from kubetide.objects.kinds import (
    CLAIMS,
    CONTROLLER_REVISIONS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
)
from kubetide.objects.meta import Condition, ObjectMeta
from kubetide.objects.pod import Pod, PodStatus
from kubetide.objects.statefulset import (
    StatefulSet,
    StatefulSetOrdinals,
    StatefulSetRollingUpdate,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from kubetide.units.time import Instant


def spec(replicas=3, image="app:1", **more):
    return {
        "replicas": replicas,
        "serviceName": "db",
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{**CONTAINERS[0], "image": image}]},
        },
        **more,
    }


async def images(world):
    return [pod["spec"]["containers"][0]["image"] for pod in await world.list(PODS)]


def test_pods_come_one_after_another_and_go_the_other_way():
    """Under OrderedReady a pod is made when the one before it is ready, and removed from the top."""

    async def body(world):
        await world.create(STATEFUL_SETS, "db", spec())
        await world.sleep(3)
        assert list(await world.pods()) == ["db-0"]
        await world.sleep(30)
        assert await world.pods() == dict.fromkeys(["db-0", "db-1", "db-2"], "Running")
        created = [pod["metadata"]["creationTimestamp"] for pod in await world.list(PODS)]
        assert created == ["2026-03-02T00:00:00Z", "2026-03-02T00:00:05Z", "2026-03-02T00:00:10Z"]
        found = await world.get(STATEFUL_SETS, "db")
        revision = found["status"]["currentRevision"]
        assert found["status"] == {
            "observedGeneration": 1,
            "replicas": 3,
            "readyReplicas": 3,
            "availableReplicas": 3,
            "currentReplicas": 3,
            "updatedReplicas": 3,
            "currentRevision": revision,
            "updateRevision": revision,
            "collisionCount": 0,
        }
        await world.cluster.replace_scale(STATEFUL_SETS, "db", 1, namespace="default")
        await world.sleep(1)
        assert list(await world.pods()) == ["db-0", "db-1"]
        await world.sleep(10)
        assert list(await world.pods()) == ["db-0"]

    play(body)


def claim_template(**spec):
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": "data"}, "spec": {**asked, "storageClassName": "fast", **spec}}


def test_claims_stay_or_go_with_the_set():
    """Claims outlive their pods and their set, unless the retention policy says that they go with it."""

    async def body(world):
        await world.cluster.create(STORAGE_CLASSES, samples.storage_class())
        plain = spec(1, volumeClaimTemplates=[claim_template()])
        await world.create(STATEFUL_SETS, "db", plain)
        policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
        await world.create(STATEFUL_SETS, "tmp", {**plain, "persistentVolumeClaimRetentionPolicy": policy})
        await world.sleep(30)
        assert len(await world.pods()) == 2
        for name in ("db", "tmp"):
            await world.delete(STATEFUL_SETS, name)
        await world.sleep(60)
        assert [one["metadata"]["name"] for one in await world.list(CLAIMS)] == ["data-db-0"]
        assert len(await world.list(PERSISTENT_VOLUMES)) == 1

    play(body)


def test_a_pod_has_a_name_that_stays():
    """A deleted pod comes back under its name, with host name, index and the claims of that name."""

    async def body(world):
        claims = [claim_template()]
        await world.cluster.create(STORAGE_CLASSES, samples.storage_class())
        await world.create(STATEFUL_SETS, "db", spec(2, volumeClaimTemplates=claims))
        await world.sleep(30)
        before = await world.get(PODS, "db-1")
        await world.delete(PODS, "db-1")
        await world.sleep(30)
        after = await world.get(PODS, "db-1")
        assert before["metadata"]["uid"] != after["metadata"]["uid"]
        assert (after["spec"]["hostname"], after["spec"]["subdomain"]) == ("db-1", "db")
        assert after["metadata"]["labels"] == {
            "app": "db",
            "apps.kubernetes.io/pod-index": "1",
            "statefulset.kubernetes.io/pod-name": "db-1",
            "controller-revision-hash": (await world.get(STATEFUL_SETS, "db"))["status"]["updateRevision"],
        }
        assert after["spec"]["volumes"] == [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
        ]
        claims = await world.list(CLAIMS)
        assert [(one["metadata"]["name"], one["status"]["phase"]) for one in claims] == [
            ("data-db-0", "Bound"),
            ("data-db-1", "Bound"),
        ]
        assert claims[0]["metadata"]["labels"] == {"app": "db"}

    play(body)


def test_parallel_makes_and_removes_all_at_once():
    """Under Parallel no pod waits for another; ordinals begin where the set says."""

    async def body(world):
        await world.create(
            STATEFUL_SETS, "db", spec(4, podManagementPolicy="Parallel", ordinals={"start": 3})
        )
        await world.sleep(1)
        assert list(await world.pods()) == ["db-3", "db-4", "db-5", "db-6"]
        await world.patch(STATEFUL_SETS, "db", {"replicas": 1})
        await world.sleep(1)
        assert list(await world.pods()) == ["db-3"]

    play(body)


def test_an_update_goes_down_to_the_partition_and_a_new_pod_below_it_has_the_old_template():
    """Pods below the partition stay at the revision they had, even when they are made anew."""

    async def body(world):
        await world.create(STATEFUL_SETS, "db", spec(4))
        await world.sleep(60)
        new = spec(4, "app:2", updateStrategy={"rollingUpdate": {"partition": 2}})
        await world.patch(STATEFUL_SETS, "db", new)
        await world.sleep(60)
        assert await images(world) == ["app:1", "app:1", "app:2", "app:2"]
        await world.delete(PODS, "db-0")
        await world.sleep(30)
        assert await images(world) == ["app:1", "app:1", "app:2", "app:2"]
        status = (await world.get(STATEFUL_SETS, "db"))["status"]
        assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 2)
        assert status["currentRevision"] != status["updateRevision"]
        await world.patch(STATEFUL_SETS, "db", {"updateStrategy": {"rollingUpdate": {"partition": 0}}})
        await world.sleep(60)
        assert await images(world) == ["app:2"] * 4
        status = (await world.get(STATEFUL_SETS, "db"))["status"]
        assert status["currentRevision"] == status["updateRevision"]
        assert [each["revision"] for each in await world.list(CONTROLLER_REVISIONS)].count(2) == 1

    play(body)


def test_on_delete_waits_for_hands():
    """Under OnDelete a pod is updated when somebody deletes it."""

    async def body(world):
        await world.create(STATEFUL_SETS, "db", spec(2, updateStrategy={"type": "OnDelete"}))
        await world.sleep(30)
        await world.patch(STATEFUL_SETS, "db", {"template": spec(2, "app:2")["template"]})
        await world.sleep(60)
        assert await images(world) == ["app:1", "app:1"]
        await world.delete(PODS, "db-1")
        await world.sleep(30)
        assert await images(world) == ["app:1", "app:2"]

    play(body)


def test_going_back_takes_the_old_revision_again_and_history_is_bounded():
    """A template that was there before gets its revision back as the newest; old ones beyond the limit go."""

    async def body(world):
        await world.create(STATEFUL_SETS, "db", spec(1, revisionHistoryLimit=1))
        for image in ("app:2", "app:1", "app:3", "app:4"):
            await world.sleep(60)
            await world.patch(STATEFUL_SETS, "db", {"template": spec(1, image)["template"]})
        await world.sleep(60)
        found = {
            each["data"]["spec"]["template"]["spec"]["containers"][0]["image"]: each["revision"]
            for each in await world.list(CONTROLLER_REVISIONS)
        }
        assert found == {"app:3": 4, "app:4": 5}

    play(body)


def test_a_set_that_goes_takes_its_pods_and_its_revisions():
    """Nothing of a deleted StatefulSet is left."""

    async def body(world):
        await world.create(STATEFUL_SETS, "db", spec(2))
        await world.sleep(30)
        await world.delete(STATEFUL_SETS, "db")
        await world.sleep(30)
        return await world.list(PODS), await world.list(CONTROLLER_REVISIONS)

    assert play(body) == ([], [])


def _pod(ordinal, revision, *, ready):
    return Pod(
        metadata=ObjectMeta(name=f"db-{ordinal}", labels={"controller-revision-hash": revision}),
        status=PodStatus(
            phase="Running", conditions=(Condition(type="Ready", status="True" if ready else "False"),)
        ),
    )


@settings(max_examples=100, deadline=None)
@given(
    replicas=st.integers(0, 6),
    start=st.integers(0, 2),
    partition=st.integers(0, 8),
    most=st.sampled_from([None, 2, 3, "50%"]),
    policy=st.sampled_from(["OrderedReady", "Parallel"]),
    pods=st.dictionaries(
        st.integers(0, 9), st.tuples(st.sampled_from(["db-old", "db-new"]), st.booleans()), max_size=8
    ),
)
def test_a_set_comes_to_rest(replicas, start, partition, most, policy, pods):
    """From whatever pods, taking the steps and letting pods become ready ends in exactly the desired pods."""
    rolling = StatefulSetRollingUpdate(partition=partition, max_unavailable=most)
    found = StatefulSet(
        metadata=ObjectMeta(name="db"),
        spec=StatefulSetSpec(
            replicas=replicas,
            ordinals=StatefulSetOrdinals(start=start),
            pod_management_policy=policy,
            update_strategy=StatefulSetUpdateStrategy(type="RollingUpdate", rolling_update=rolling),
        ),
    )
    revisions = Revisions("db-old", "db-new")
    world = {ordinal: _pod(ordinal, *facts[:1], ready=facts[1]) for ordinal, facts in pods.items()}
    for _ in range(60):
        todo = steps(found, list(world.values()), revisions, Instant(0))
        for step in todo:
            if isinstance(step, Create):
                assert step.ordinal not in world
                world[step.ordinal] = _pod(step.ordinal, step.revision, ready=False)
            else:
                del world[ordinal_of(step.pod.metadata.name, "db")]
        before = dict(world)
        world = {
            number: _pod(number, pod.metadata.labels["controller-revision-hash"], ready=True)
            for number, pod in world.items()
        }
        if not todo and before == world:
            break
    else:
        raise AssertionError("it never came to rest")
    assert sorted(world) == list(range(start, start + replicas))
    for ordinal, pod in world.items():
        if ordinal >= start + partition:
            assert pod.metadata.labels["controller-revision-hash"] == "db-new"
