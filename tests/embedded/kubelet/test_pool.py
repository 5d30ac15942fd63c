from __future__ import annotations

import asyncio

import pytest

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.draws import NO_DELAY, Between, fixed
from kubetide.embedded.kubelet import KubeletPool, PodTimes, Settled
from kubetide.objects.kinds import LEASES, NODES, PODS
from kubetide.objects.node import node_condition
from kubetide.objects.pod import pod_condition
from kubetide.ports.errors import NotFound, Unavailable
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import before, hours, minutes, parse_rfc3339, seconds
from kubetide.watching import Informer

START = parse_rfc3339("2026-03-02T00:00:00Z")
TIMES = PodTimes(
    pull=fixed(seconds(10)),
    cached=fixed(seconds(1)),
    start=fixed(seconds(2)),
    ready=fixed(seconds(5)),
    stop=fixed(seconds(4)),
)


class World:
    """A cluster with kubelets on all nodes whose name begins with n."""

    def __init__(self, clock, faults=None, **options):
        self.clock = clock
        self.cluster = EmbeddedCluster(Store(), clock)
        self.pods = Informer(self.cluster, PODS, clock)
        self.nodes = Informer(self.cluster, NODES, clock)
        self.pool = KubeletPool(
            self.cluster.client(faults=faults) if faults else self.cluster,
            clock,
            pods=self.pods,
            nodes=self.nodes,
            **(
                {"seed": 1, "times": TIMES, "animates": lambda node: node.metadata.name.startswith("n")}
                | options
            ),
        )

    async def at(self, second):
        await self.clock.sleep(seconds(second) - (self.clock.now() - START))

    async def add_node(self, name="n1"):
        conditions = [
            {"type": "MemoryPressure", "status": "False"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-02T00:00:00Z"},
        ]
        body = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "conditions": conditions},
        }
        await self.cluster.create(NODES, body)

    async def add_pod(self, name="p", node="n1", image="web:1", grace=30, **spec):
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "containers": [{"name": "main", "image": image}],
                "terminationGracePeriodSeconds": grace,
            }
            | spec,
        }
        await self.cluster.create(PODS, body, namespace="default")
        if node:
            await self.cluster.bind(namespace="default", pod=name, node=node)

    async def pod(self, name="p"):
        return await self.cluster.get(PODS, name, namespace="default")

    async def exists(self, name="p"):
        try:
            await self.pod(name)
        except NotFound:
            return False
        return True

    async def ready(self, name="p"):
        condition = pod_condition(await self.pod(name), "Ready")
        return None if condition is None else condition.status

    async def delete(self, name="p", **options):
        await self.cluster.delete(PODS, name, namespace="default", **options)


def play(body, **options):
    async def main(clock):
        world = World(clock, **options)
        tasks = [asyncio.create_task(each.run()) for each in (world.pods, world.nodes, world.pool)]
        result = await body(world)
        for task in tasks:
            assert not task.done(), task
            task.cancel()
        return result

    return run_virtual(main, start=START)


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
    """A pod waits for an image that is on its way, and a later one finds it there; other nodes pull."""

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
    """Deletion outdates the steps that lay ahead."""

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


def test_an_oom_kill_restarts_the_container():
    """The first restart follows at once, the second after 10 s; the pod stays Running and is not ready meanwhile."""

    async def body(world):
        async def status():
            raw = await world.cluster.get(PODS.untyped, "p", namespace="default")
            assert raw["status"]["phase"] == "Running"
            return raw["status"]["containerStatuses"][0]

        await world.add_node()
        await world.add_pod()
        await world.at(20)
        world.pool.oom_kill(("default", "p"))
        world.pool.oom_kill(("default", "p"))
        await world.at(20.5)
        killed = await status()
        assert (killed["restartCount"], killed["ready"], killed["lastState"]) == (0, False, {})
        ended = killed["state"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)
        assert ended["startedAt"] < ended["finishedAt"] == "2026-03-02T00:00:20Z"
        assert await world.ready() == "False"
        await world.at(27.5)
        assert await world.ready() == "True"
        again = await status()
        assert (again["restartCount"], again["ready"], again["lastState"]) == (1, True, {"terminated": ended})
        assert again["state"]["running"]["startedAt"] > ended["finishedAt"]
        world.pool.crash(("default", "p"))
        await world.at(30)
        waits = await status()
        assert waits["state"] == {"waiting": {"reason": "CrashLoopBackOff"}}
        assert waits["lastState"]["terminated"]["reason"] == "Error"
        await world.at(44)
        assert await world.ready() == "False"
        await world.at(45)
        assert await world.ready() == "True"
        assert (await status())["restartCount"] == 2

    play(body)


def test_a_container_that_ran_for_long_is_started_again_at_once():
    """The back-off begins anew once the container has run for ten minutes."""

    async def body(world):
        await world.add_node()
        await world.add_pod()
        for second in (20, 700, 1400):
            await world.at(second)
            world.pool.oom_kill(("default", "p"))
            await world.at(second + 7.5)
            assert await world.ready() == "True"
        assert (await world.pod()).status.container_statuses[0].restart_count == 3

    play(body)


def test_a_crash_before_readiness_outdates_it():
    """A pod that crashes while it becomes ready is ready only after the restart."""

    async def body(world):
        await world.add_node()
        await world.add_pod()
        await world.at(16)
        world.pool.crash(("default", "p"))
        await world.at(17.5)
        assert await world.ready() == "False"
        await world.at(23.5)
        assert await world.ready() == "True"

    play(body)


@pytest.mark.parametrize(("health", "taint"), [("False", "not-ready"), ("Unknown", "unreachable")])
def test_an_unhealthy_node_is_tainted_and_loses_its_pods_readiness(health, taint):
    """The node's Ready condition, its taint and its pods' Ready condition fall, and rise again on recovery."""

    async def body(world):
        await world.add_node()
        await world.add_pod()
        await world.at(20)
        await world.pool.fail_node("n1", health)
        await world.at(21)
        node = await world.cluster.get(NODES, "n1")
        assert node_condition(node, "Ready").status == health
        assert [(each.key, each.effect) for each in node.spec.taints] == [
            (f"node.kubernetes.io/{taint}", "NoSchedule")
        ]
        assert await world.ready() == "False"
        await world.add_pod("late")
        await world.delete("p")
        await world.at(120)
        assert await world.exists("p"), "a kubelet that is down ends no pod"
        assert await world.ready("late") is None
        await world.pool.recover_node("n1")
        await world.at(140)
        node = await world.cluster.get(NODES, "n1")
        assert node_condition(node, "Ready").status == "True"
        assert not node.spec.taints
        assert not await world.exists("p")
        assert await world.ready("late") == "True"

    play(body)


def test_recovery_makes_ready_only_what_was_ready():
    """A pod that was not ready before the failure waits for its own time."""

    async def body(world):
        await world.add_node()
        await world.add_pod()
        await world.at(13)
        await world.pool.fail_node("n1")
        await world.at(14)
        await world.pool.recover_node("n1")
        await world.at(16)
        assert await world.ready() == "False"
        await world.at(18)
        assert await world.ready() == "True"

    play(body)


def test_heartbeats_confirm_every_five_minutes():
    """Heartbeat times move, transition times do not, and failing nodes are silent."""

    async def body(world):
        await world.add_node("n1")
        await world.add_node("n2")
        await world.at(1)
        await world.pool.fail_node("n2")
        await world.at(301)
        first, second = [await world.cluster.get(NODES, name) for name in ("n1", "n2")]
        ready = node_condition(first, "Ready")
        assert (ready.last_heartbeat_time, ready.last_transition_time) == (
            "2026-03-02T00:05:00Z",
            "2026-03-02T00:00:00Z",
        )
        assert node_condition(second, "Ready").last_heartbeat_time is None

    play(body)


def test_leases_are_renewed_on_request():
    """One renewal makes the missing leases and moves the others."""

    async def body(world):
        await world.add_node()
        await world.at(25)
        return await world.cluster.get(LEASES, "n1", namespace="kube-node-lease")

    lease = play(body, lease_renewal=seconds(10))
    assert lease.spec.renew_time == "2026-03-02T00:00:20.000000Z"
    assert lease.spec.holder_identity == "n1"


def test_one_pod_more_moves_no_other():
    """The times of a pod are drawn from its own uid."""

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
