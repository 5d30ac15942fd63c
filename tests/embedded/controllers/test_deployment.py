from __future__ import annotations

import pytest
from tests.embedded.controllers.live import Failing, play

from kubetide.objects.kinds import DEPLOYMENTS, EVENTS, REPLICA_SETS
from kubetide.ports.errors import Conflict, Unavailable
from kubetide.testing import builders

PARTS = ("deployments", "replica_sets", "scheduler", "kubelets")
REVISION = "deployment.kubernetes.io/revision"


def strategy(surge, unavailable):
    return {"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}


async def begin(live, replicas, **spec):
    await live.add_nodes("n1", "n2", "n3")
    await live.add(DEPLOYMENTS, builders.deployment("web", replicas=replicas, extra={"spec": spec}))
    await live.sleep(20)


async def change(live, **spec):
    return await live.patch(DEPLOYMENTS, "web", {"spec": spec})


def version(number):
    containers = [{**builders.pod_spec()["containers"][0], "image": f"registry.test/app:{number}"}]
    return {"spec": {"containers": containers}}


async def sizes(live):
    """Revision to replicas of the ReplicaSets."""
    found = await live.list(REPLICA_SETS)
    return {int(rs.metadata.annotations[REVISION]): rs.spec.replicas for rs in found}


async def images(live):
    return sorted(pod.spec.containers[0].image[-1] for pod in await live.pods_now())


def test_a_deployment_makes_a_replica_set_that_makes_pods():
    """The ReplicaSet is named for the Deployment and its template's hash, which the pods carry as label."""

    async def body(live):
        await begin(live, 3)
        (rs,) = await live.list(REPLICA_SETS)
        hash_ = rs.metadata.labels["pod-template-hash"]
        assert rs.metadata.name == f"web-{hash_}"
        assert {pod.metadata.labels["pod-template-hash"] for pod in await live.pods_now()} == {hash_}
        found = await live.get(DEPLOYMENTS, "web")
        assert found.metadata.annotations[REVISION] == "1"
        status = found.status
        assert (status.replicas, status.updated_replicas, status.available_replicas) == (3, 3, 3)
        said = {c.type: (c.status, c.reason) for c in status.conditions}
        assert said == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("True", "NewReplicaSetAvailable"),
        }

    play(body, *PARTS)


@pytest.mark.parametrize("expires", [False, True])
def test_a_new_template_replaces_all_pods(expires):
    """A rolling update ends with pods of the new template only, also when watches expire all along."""

    async def body(live):
        await begin(live, 4)
        await change(live, template=version(2))
        for _ in range(60):
            if expires:
                live.cluster.expire_watches()
            await live.sleep(1)
        assert await images(live) == ["2"] * 4
        assert await sizes(live) == {1: 0, 2: 4}
        assert (await live.get(DEPLOYMENTS, "web")).metadata.annotations[REVISION] == "2"

    play(body, *PARTS)


def test_going_back_takes_the_old_replica_set_as_a_new_revision():
    """The template of before brings its ReplicaSet back, with the next revision."""

    async def body(live):
        await begin(live, 2)
        await change(live, template=version(2))
        await live.sleep(60)
        await change(live, template=version(1))
        await live.sleep(60)
        assert await sizes(live) == {2: 0, 3: 2}
        assert await images(live) == ["1"] * 2

    play(body, *PARTS)


def test_recreate_waits_until_all_old_pods_are_deleted():
    """With Recreate, pods of two templates are never there together."""

    async def body(live):
        mixed = []
        live.pods.on_change(
            lambda *_: mixed.append(len({p.spec.containers[0].image for p in live.pods.objects.values()}))
        )
        await begin(live, 3, strategy={"type": "Recreate"})
        await change(live, template=version(2))
        await live.sleep(60)
        assert await images(live) == ["2"] * 3
        assert max(mixed) == 1

    play(body, *PARTS)


def test_a_paused_deployment_is_scaled_but_not_rolled():
    """A paused Deployment keeps its old template through every change, and its replicas follow."""

    async def body(live):
        await begin(live, 2)
        await change(live, paused=True, template=version(2))
        await change(live, replicas=4)
        await live.sleep(60)
        assert await images(live) == ["1"] * 4
        (progressing,) = [
            c for c in (await live.get(DEPLOYMENTS, "web")).status.conditions if c.type == "Progressing"
        ]
        assert progressing.reason == "DeploymentPaused"
        await change(live, paused=False)
        await live.sleep(60)
        assert await images(live) == ["2"] * 4

    play(body, *PARTS)


@pytest.mark.parametrize(("limit", "left"), [(0, [4]), (1, [3, 4]), (2, [2, 3, 4]), (None, [1, 2, 3, 4])])
def test_how_many_old_replica_sets_remain(limit, left):
    """Old ReplicaSets past revisionHistoryLimit (10 if it is not set) go, the oldest first."""

    async def body(live):
        await begin(live, 1, revisionHistoryLimit=limit)
        for number in (2, 3, 4):
            await change(live, template=version(number))
            await live.sleep(60)
        assert sorted(await sizes(live)) == left

    play(body, *PARTS)


def test_scaling_in_the_midst_of_a_rollout_is_shared():
    """A rollout that is stuck is scaled in proportion: the bad version does not get all new pods."""

    async def body(live):
        await begin(live, 10, **strategy(3, 2))
        stuck = version(2)
        stuck["spec"]["nodeSelector"] = {"no": "node"}
        await change(live, template=stuck)
        await live.sleep(60)
        assert await sizes(live) == {1: 8, 2: 5}
        await change(live, replicas=15)
        await live.sleep(60)
        # 18 may be there: 5 more, shared as 8 to 5.
        assert await sizes(live) == {1: 11, 2: 7}

    play(body, *PARTS)


def test_min_ready_seconds_slow_a_rollout():
    """A new pod counts only after it was ready for minReadySeconds."""

    async def body(live):
        await begin(live, 2, minReadySeconds=100, **strategy(1, 0))
        await live.sleep(100)
        await change(live, template=version(2))
        await live.sleep(90)
        assert (await live.get(DEPLOYMENTS, "web")).status.updated_replicas == 1
        await live.sleep(240)
        assert await images(live) == ["2"] * 2

    play(body, *PARTS)


def test_a_rollout_without_progress_is_said():
    """After progressDeadlineSeconds without a step the condition says ProgressDeadlineExceeded."""

    async def body(live):
        await begin(live, 2, progressDeadlineSeconds=100)
        stuck = version(2)
        stuck["spec"]["nodeSelector"] = {"no": "node"}
        await change(live, template=stuck)
        await live.sleep(120)
        said = {c.type: (c.status, c.reason) for c in (await live.get(DEPLOYMENTS, "web")).status.conditions}
        assert said["Progressing"] == ("False", "ProgressDeadlineExceeded")

    play(body, *PARTS)


def test_scaling_is_reported_in_events():
    """Each change of a ReplicaSet's size is an event of the Deployment."""

    async def body(live):
        await begin(live, 2)
        await change(live, replicas=1)
        await live.sleep(20)
        (name,) = [rs.metadata.name for rs in await live.list(REPLICA_SETS)]
        events = [event.message for event in await live.list(EVENTS) if event.reason == "ScalingReplicaSet"]
        assert sorted(events) == [
            f"Scaled down replica set {name} from 2 to 1",
            f"Scaled up replica set {name} from 0 to 2",
        ]

    play(body, *PARTS)


@pytest.mark.parametrize("verb", ["create", "patch", "get", "delete"])
@pytest.mark.parametrize("error", [Conflict("changed"), Unavailable("not now")])
def test_failing_requests_are_tried_again(verb, error):
    """A rollout ends whatever seven requests of a kind answer."""
    failing = Failing(lambda request: request.verb == verb and failing.hits < 7, error)

    async def body(live):
        await begin(live, 3, revisionHistoryLimit=0)
        await change(live, template=version(2))
        await live.sleep(90)
        assert await images(live) == ["2"] * 3
        assert await sizes(live) == {2: 3}
        assert failing.hits > 0

    play(body, *PARTS, faults=failing)
