"""The pool of kubelets: when pods start, become ready and end, and whose pods it leaves alone."""

from __future__ import annotations

import asyncio

from tests.embedded.kubelet.pool_world import START, TIMES, play

from kubetide.embedded.draws import NO_DELAY, Between, fixed
from kubetide.embedded.kubelet import KubeletPool, PodTimes, Settled
from kubetide.objects.kinds import NODES, PODS
from kubetide.objects.pod import pod_condition
from kubetide.ports.errors import Unavailable
from kubetide.units.time import before, hours, minutes, seconds


def test_a_pod_runs_and_becomes_ready_when_its_draws_say():
    """Pull 10 s and start 2 s lead to Running and not ready; 5 s later the pod is ready."""

    async def body(world):
        await world.add_node()
        await world.add_pod()
        await world.at(11.9)
        pod = await world.pod()
        assert pod.status.phase == "Pending"
        await world.at(12.1)
        pod = await world.pod()
        assert pod.status.phase == "Running"
        assert pod.status.start_time == "2026-03-02T00:00:00Z"
        ready = pod_condition(pod, "Ready")
        assert (ready.status, ready.reason) == ("False", "ContainersNotReady")
        assert ready.message == "containers with unready status: [main]"
        assert pod_condition(pod, "PodScheduled").status == "True"
        assert pod_condition(pod, "Initialized").status == "True"
        assert [status.ready for status in pod.status.container_statuses] == [False]
        await world.at(17.1)
        pod = await world.pod()
        for kind in ("Ready", "ContainersReady"):
            condition = pod_condition(pod, kind)
            assert (condition.status, condition.last_transition_time) == ("True", "2026-03-02T00:00:17Z")
        assert [status.ready for status in pod.status.container_statuses] == [True]
        raw = await world.cluster.get(PODS.untyped, "p", namespace="default")
        assert raw["status"]["podIP"] == raw["status"]["podIPs"][0]["ip"]
        assert (
            raw["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] == "2026-03-02T00:00:12Z"
        )

    play(body)


def test_an_image_on_the_node_is_not_pulled_again():
    """A pod waits for an image that is being pulled, and a later one finds it there; other nodes pull it again."""

    async def body(world):
        await world.add_node("n1")
        await world.add_node("n2")
        await world.add_pod("first")
        await world.at(4)
        await world.add_pod("same")
        await world.at(20)
        await world.add_pod("later")
        await world.add_pod("elsewhere", node="n2")
        await world.at(60)
        raws = (await world.cluster.list(PODS.untyped)).items
        return {
            raw["metadata"]["name"]: raw["status"]["containerStatuses"][0]["state"]["running"]["startedAt"][
                -3:-1
            ]
            for raw in raws
        }

    assert play(body) == {"first": "12", "same": "12", "later": "23", "elsewhere": "32"}


def test_readiness_without_delay_is_one_write():
    """A pod that is ready at once never shows up as Running and not ready."""

    async def body(world):
        seen = []
        world.pods.on_change(lambda _key, _old, new: seen.append(new and new.status.phase))
        await world.add_node()
        await world.add_pod()
        await world.at(30)
        assert await world.ready() == "True"
        return seen

    times = PodTimes(pull=NO_DELAY, start=NO_DELAY, ready=NO_DELAY)
    assert play(body, times=times).count("Running") == 1


def test_a_deleted_pod_disappears_after_its_stop_time():
    """A running pod ends after the drawn stop time; one that never ran disappears at once."""

    async def body(world):
        await world.add_node()
        await world.add_pod()
        await world.at(20)
        await world.delete()
        await world.at(23.9)
        assert (await world.pod()).metadata.deletion_timestamp is not None
        await world.at(24.1)
        assert not await world.exists()
        await world.add_pod("q")
        await world.delete("q")
        await world.at(25)
        assert not await world.exists("q")

    play(body)


def test_the_grace_period_bounds_the_stop_time():
    """A pod whose containers take longer than its grace period disappears when that is over."""

    async def body(world):
        await world.add_node()
        await world.add_pod(grace=2)
        await world.at(20)
        await world.delete()
        await world.at(22.1)
        assert not await world.exists()

    play(body)


def test_a_pod_deleted_while_it_starts_never_runs():
    """A deletion cancels the steps that are still to come."""

    async def body(world):
        phases = []
        world.pods.on_change(lambda _key, _old, new: phases.append(new and new.status.phase))
        await world.add_node()
        await world.add_pod()
        await world.at(5)
        await world.delete()
        await world.at(60)
        return phases

    assert "Running" not in play(body)


def test_pods_of_a_deleted_node_are_collected():
    """40 s after the node is deleted its pods are deleted too, also those that were ending."""

    async def body(world):
        await world.add_node()
        await world.add_pod("running")
        await world.add_pod("ending", grace=600)
        await world.at(20)
        await world.delete("ending")
        await world.cluster.delete(NODES, "n1")
        await world.add_pod("late", node="")
        await world.at(50)
        await world.delete("running")
        await world.at(59)
        assert await world.exists("running")
        await world.at(61)
        assert not await world.exists("running")
        assert not await world.exists("ending")
        assert await world.exists("late"), "a pod without a node is not the kubelets'"

    play(body, times=PodTimes(stop=fixed(minutes(5))))


def test_nodes_of_others_are_left_alone():
    """Pods on nodes that are not animated neither start nor end."""

    async def body(world):
        await world.add_node("other")
        await world.add_pod(node="other")
        await world.at(60)
        assert (await world.pod()).status.phase == "Pending"
        await world.delete()
        await world.at(120)
        assert await world.exists()

    play(body)


def test_a_pod_bound_before_its_node_is_known_starts_when_it_comes():
    """The order in which the two are observed does not matter."""

    async def body(world):
        await world.add_pod()
        await world.at(10)
        await world.add_node()
        await world.at(28)
        assert await world.ready() == "True"
        await world.at(100)
        assert await world.exists()

    play(body)


def test_settled_pods_have_been_ready_for_long():
    """Pods taken on until the given time are ready at once, since the given time; later ones start as usual."""

    async def body(world):
        await world.add_node()
        await world.add_pod("old")
        await world.at(1)
        old = await world.pod("old")
        assert old.status.start_time == "2026-03-01T23:00:00Z"
        assert pod_condition(old, "Ready").last_transition_time == "2026-03-01T23:00:00Z"
        await world.add_pod("new", image="other:1")
        await world.at(2)
        assert await world.ready("new") is None
        await world.at(19)
        assert await world.ready("new") == "True"

    play(body, settled=Settled(until=START, since=before(START, hours(1))))


def test_one_more_pod_changes_the_times_of_no_other():
    """The times of each pod are drawn from its own uid."""

    async def run(world, extra):
        await world.add_node()
        if extra:
            await world.add_pod("another", image="other:1")
        await world.add_pod()
        await world.at(60)
        return pod_condition(await world.pod(), "Ready").last_transition_time

    times = PodTimes(pull=Between(seconds(1), seconds(30)), ready=Between(seconds(1), seconds(20)))
    alone = play(lambda world: run(world, extra=False), times=times)
    assert alone == play(lambda world: run(world, extra=True), times=times)


def test_a_failing_server_is_asked_again():
    """A status that could not be written is written a second later."""

    class Down:
        left = 3

        async def before(self, request):
            if request.verb == "patch" and self.left:
                self.left -= 1
                raise Unavailable("try later")

    async def body(world):
        await world.add_node()
        await world.add_pod()
        await world.at(20.5)
        assert await world.ready() == "True"
        assert pod_condition(await world.pod(), "Ready").last_transition_time == "2026-03-02T00:00:20Z"

    play(body, faults=Down())


def test_a_running_pod_is_taken_over():
    """A pool that starts on a cluster in use leaves ready pods alone and ends them when they are deleted."""

    async def body(world):
        await world.add_node()
        await world.add_pod()
        await world.at(20)
        again = KubeletPool(
            world.cluster, world.clock, pods=world.pods, nodes=world.nodes, seed=1, times=TIMES
        )
        version = (await world.pod()).metadata.resource_version
        task = asyncio.create_task(again.run())
        await world.at(100)
        assert (await world.pod()).metadata.resource_version == version
        await world.delete()
        await world.at(105)
        assert not await world.exists()
        task.cancel()

    play(body)
