from __future__ import annotations

import pytest
from tests.embedded.controllers.live import Failing, names, play

from kubetide.objects.kinds import PODS, REPLICA_SETS
from kubetide.objects.meta import controller_of
from kubetide.ports.errors import AlreadyExists, Conflict, NotFound, Unavailable
from kubetide.testing import builders

PARTS = ("replica_sets", "scheduler", "kubelets")


async def begin(live, replicas):
    await live.add_nodes("n1", "n2")
    await live.add(REPLICA_SETS, builders.replica_set("web", replicas=replicas))
    await live.sleep(20)


async def scale(live, replicas):
    await live.patch(REPLICA_SETS, "web", {"spec": {"replicas": replicas}})


def watch_active(live):
    """A list that takes how many pods exist at each change of the pods."""
    counts = []
    live.pods.on_change(lambda *_: counts.append(len(live.pods.objects)))
    return counts


def creations(live):
    made = []
    live.pods.on_change(lambda key, old, _new: made.append(key) if old is None else None)
    return made


@pytest.mark.parametrize(("before", "after"), [(0, 3), (3, 5), (5, 2), (4, 0), (2, 2)])
def test_as_many_pods_as_desired(before, after):
    """Pods are made and deleted until there are as many as desired, and the status says so."""

    async def body(live):
        made = creations(live)
        await begin(live, before)
        await scale(live, after)
        await live.sleep(20)
        assert len(await live.pods_now()) == after
        assert len(made) == max(before, after)
        status = (await live.get(REPLICA_SETS, "web")).status
        assert (status.replicas, status.ready_replicas, status.available_replicas) == (after,) * 3

    play(body, *PARTS)


def test_a_pod_is_of_the_template_and_owned():
    """A pod has the labels of the template, a name from the ReplicaSet's, and it as controller."""

    async def body(live):
        await begin(live, 1)
        (pod,) = await live.pods_now()
        assert pod.metadata.labels == {"app": "web"}
        assert pod.metadata.name.startswith("web-")
        assert len(pod.metadata.name) == len("web-") + 5
        assert controller_of(pod.metadata).uid == (await live.get(REPLICA_SETS, "web")).metadata.uid

    play(body, *PARTS)


def test_pods_that_end_are_made_up_for():
    """A pod that is deleted or has failed no longer counts; another is made."""

    async def body(live):
        await begin(live, 3)
        first, second, _ = names(await live.pods_now())
        await live.cluster.delete(PODS, first, namespace="shop")
        await live.patch(PODS, second, {"status": {"phase": "Failed"}}, subresource="status")
        await live.sleep(20)
        phases = sorted(pod.status.phase for pod in await live.pods_now())
        assert phases == ["Failed", "Running", "Running", "Running"]

    play(body, *PARTS)


@pytest.mark.parametrize("pause", [0.0, 0.1, 0.7])
def test_nothing_is_made_twice_when_watches_expire(pause):
    """However often caches must list anew, no pod is made or deleted too many."""

    async def body(live):
        made = creations(live)
        await live.add_nodes("n1")
        await live.add(REPLICA_SETS, builders.replica_set("web", replicas=6))
        for step in range(30):
            live.cluster.expire_watches()
            await live.sleep(pause)
            if step == 15:
                await live.sleep(10)
                await scale(live, 2)
        await live.sleep(20)
        assert len(made) == 6
        assert len(await live.pods_now()) == 2

    play(body, *PARTS)


@pytest.mark.parametrize("lag", [0.0, 0.3, 4.0])
@pytest.mark.parametrize("expires", [False, True])
def test_nothing_is_made_twice_before_the_cache_shows_it(lag, expires):
    """A ReplicaSet that changes while the cache is behind makes and deletes no pod too many."""

    async def body(live):
        made = creations(live)
        await begin(live, 0)
        for replicas in (4, 1):
            await scale(live, replicas)
            for step in range(30):
                seen = {"metadata": {"annotations": {"seen": f"{replicas}-{step}"}}}
                await live.patch(REPLICA_SETS, "web", seen)
                if expires and step % 5 == 4:
                    live.cluster.expire_watches()
                await live.sleep(0.2)
            await live.sleep(60)
            assert len(await live.pods_now()) == replicas
        assert len(made) == 4

    play(body, *PARTS, lag=lag)


def test_orphans_are_adopted():
    """A pod that the selector picks and nothing controls is taken over and counts."""

    async def body(live):
        await live.add(PODS, builders.pod("found", labels={"app": "web"}))
        await live.add(PODS, builders.pod("other", labels={"app": "db"}))
        await begin(live, 2)
        pods = {pod.metadata.name: pod for pod in await live.pods_now()}
        assert controller_of(pods["found"].metadata).name == "web"
        assert controller_of(pods["other"].metadata) is None
        assert len(pods) == 3
        await live.add(PODS, builders.pod("late", labels={"app": "web"}))
        await live.sleep(20)
        assert len(await live.pods_now()) == 3

    play(body, *PARTS)


def test_a_pod_that_is_picked_no_longer_is_released():
    """A pod whose labels are changed loses its owner, stays, and is made up for."""

    async def body(live):
        await begin(live, 2)
        first = names(await live.pods_now())[0]
        await live.patch(PODS, first, {"metadata": {"labels": {"app": "debug"}}})
        await live.sleep(20)
        pods = {pod.metadata.name: pod for pod in await live.pods_now()}
        assert len(pods) == 3
        assert controller_of(pods[first].metadata) is None

    play(body, *PARTS)


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        ("create", AlreadyExists("taken")),
        ("create", Unavailable("not now")),
        ("create", Conflict("changed")),
        ("delete", Conflict("changed")),
        ("delete", Unavailable("not now")),
        ("patch", NotFound("gone")),
        ("patch", Conflict("changed")),
        ("patch", Unavailable("not now")),
        ("get", NotFound("gone")),
        ("get", Unavailable("not now")),
    ],
)
def test_failing_requests_are_tried_again(verb, error):
    """Whatever five requests of a kind answer, the ReplicaSet reaches its size in the end."""
    failing = Failing(lambda request: request.verb == verb and failing.hits < 5, error)

    async def body(live):
        await begin(live, 4)
        assert len(await live.pods_now()) == 4
        await scale(live, 1)
        await live.sleep(20)
        assert len(await live.pods_now()) == 1
        status = (await live.get(REPLICA_SETS, "web")).status
        assert (status.replicas, status.ready_replicas) == (1, 1)
        assert failing.hits > 0

    play(body, *PARTS, faults=failing)


def test_a_pod_that_is_already_deleted_is_no_failure():
    """When someone else deletes pods at the same moment, no others are deleted in their place."""

    async def body(live):
        await begin(live, 4)
        for name in names(await live.pods_now())[:3]:
            await live.cluster.delete(PODS, name, namespace="shop", grace_period_s=0)
        await scale(live, 1)
        await live.sleep(20)
        assert len(await live.pods_now()) == 1

    play(body, *PARTS)


def test_a_pod_counts_as_available_after_its_time():
    """With minReadySeconds a ready pod is available only that much later."""

    async def body(live):
        await live.add_nodes("n1")
        extra = {"spec": {"minReadySeconds": 60}}
        await live.add(REPLICA_SETS, builders.replica_set("web", replicas=2, extra=extra))
        await live.sleep(20)
        status = (await live.get(REPLICA_SETS, "web")).status
        assert (status.ready_replicas, status.available_replicas) == (2, 0)
        await live.sleep(60)
        assert (await live.get(REPLICA_SETS, "web")).status.available_replicas == 2

    play(body, *PARTS)


def test_a_creation_that_is_refused_is_said_in_the_status():
    """The condition ReplicaFailure says why pods cannot be made, and goes when they can."""
    failing = Failing(lambda request: request.kind is PODS and request.verb == "create" and failing.hits < 9)

    async def body(live):
        await live.add_nodes("n1")
        await live.add(REPLICA_SETS, builders.replica_set("web", replicas=1))
        await live.sleep(0.1)
        (condition,) = (await live.get(REPLICA_SETS, "web")).status.conditions
        assert (condition.type, condition.status, condition.reason) == (
            "ReplicaFailure",
            "True",
            "FailedCreate",
        )
        await live.sleep(60)
        assert not (await live.get(REPLICA_SETS, "web")).status.conditions

    play(body, *PARTS, faults=failing)
