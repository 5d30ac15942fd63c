"""The node loop's series of scale-downs: nodes that go, and the pods that are evicted from them."""

from __future__ import annotations

import pytest
from tests.nodes.live import SHORT, START
from tests.runtime.series.scraped import NO_GPU, reported

from kubetide.embedded.cloud import GroupSpec
from kubetide.objects.kinds import DAEMON_SETS, NODES, PODS
from kubetide.ports.cloud import GroupOptions
from kubetide.ports.errors import TooManyRequests
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds


def test_nodes_that_go_are_counted_by_why():
    """Empty nodes, drained ones and evictions; when all is over nothing is pending."""

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.deploy("small", replicas=2, cpu="300m")
        await world.after(minutes(5))
        await world.scale("web", 0)
        await world.after(minutes(2))
        idle = world.read()
        assert idle["unneeded_nodes_count",] > 0
        assert idle["node_taints_count", "DeletionCandidateOfClusterAutoscaler"] > 0
        await world.after(minutes(15))
        found = world.read()
        removed = {key[-1]: count for key, count in found.items() if key[0] == "scaled_down_nodes_total"}
        assert sum(removed.values()) == found["scaled_up_nodes_total", *NO_GPU] - len(world.nodes)
        drained = len([one for one in world.recorder.reasons if one.code == "NodeChosen"])
        assert removed.get("underutilized", 0) == drained
        assert removed["empty"] > 0
        moved = found["evicted_pods_total", "succeeded"]
        assert moved == sum(b'"op":"evictPod"' in bytes(one.commands) for one in world.recorder.records)
        assert found["pending_node_deletions",] == 0
        assert found["evicted_pods_total", "failed"] == 0
        assert found["last_activity", "scaleDown"] > START / 1e9

    reported(story, **SHORT)


@pytest.mark.parametrize(("whole", "pending"), [(True, 1), (False, 0)])
def test_nodes_that_wait_for_the_rest_of_their_group_are_pending(whole, pending):
    """Where one of two deletions is delayed, the other node waits if the group goes as a whole, and goes alone if not.

    As upstream, it is counted when the next scale-down begins, not when it begins to wait.
    """
    delay = {"delay-deletion.cluster-autoscaler.kubernetes.io/test": "true"}
    options = GroupOptions(zero_or_max_node_scaling=whole)

    async def story(world):
        assert world.read()["pending_node_deletions",] == 0
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(5))
        await world.cluster.patch(NODES, min(world.nodes), {"metadata": {"annotations": delay}})
        await world.scale("web", 0)
        deletions = {}
        while not deletions:
            await world.after(seconds(1))
            deletions = world.controller.state.memory.scale_down.deletions
        await world.after(seconds(5))
        assert {one.phase for one in deletions.values()} >= {"delaying"}
        assert world.read()["pending_node_deletions",] == 0
        await world.after(seconds(10))
        assert world.read()["pending_node_deletions",] == pending
        await world.after(minutes(3))
        assert world.read()["pending_node_deletions",] == 0
        assert not world.nodes

    reported(story, [GroupSpec(name="g", instance_type="m5.large", max_size=2, options=options)], **SHORT)


def test_pods_of_daemon_sets_are_evicted_and_not_counted():
    """The loop does not wait for them to go: as upstream, their evictions count neither as succeeded nor as failed."""

    async def story(world):
        await world.deploy(replicas=1, cpu="1500m")
        await world.after(minutes(5))
        labels = {"app": "agent"}
        template = {"metadata": {"labels": labels}, "spec": builders.pod_spec()}
        body = {
            "metadata": {"name": "agent"},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }
        agents = await world.cluster.create(DAEMON_SETS, body, namespace="default")
        meta = {"name": "agent", "uid": agents.metadata.uid}
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", **meta, "controller": True}
        on_node = {"spec": {"nodeName": world.nodes[0]}}
        await world.cluster.create(
            PODS, builders.pod("agent-1", owners=[owner], extra=on_node), namespace="default"
        )
        await world.scale("web", 0)
        await world.after(minutes(10))
        assert world.nodes == []
        assert any(b'"op":"evictPod"' in bytes(one.commands) for one in world.recorder.records)
        found = world.read()
        assert found["evicted_pods_total", "succeeded"] == found["evicted_pods_total", "failed"] == 0

    reported(story, daemonset_eviction_for_empty_nodes=True, **SHORT)


def test_a_pod_whose_eviction_is_refused_again_and_again_is_counted_once():
    """However often an eviction is refused, the pod counts as failed when its node is given back."""

    class NoEvictions:
        async def before(self, request):
            if request.subresource == "eviction":
                raise TooManyRequests("not now")

    async def story(world):
        await world.deploy(replicas=3, cpu="1500m")
        await world.after(minutes(5))
        await world.deploy("late", replicas=3, cpu="200m")
        await world.after(seconds(30))
        await world.scale("web", 1)
        await world.after(seconds(30))
        world.cluster.faults = NoEvictions()
        await world.after(minutes(9))
        found = world.read()
        refused = len([one for one in world.recorder.reasons if one.code == "DeletionFailed"])
        assert refused > 0
        assert found["evicted_pods_total", "failed"] == refused
        assert found["evicted_pods_total", "succeeded"] == 0

    reported(story, **SHORT)


def test_unready_nodes_that_go_are_unready():
    """The reason is the node's state when it went, before whether it was drained."""

    async def story(world):
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(8))
        sick = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
        await world.cluster.patch(NODES, world.nodes[0], {"spec": {"taints": [sick]}})
        await world.scale("web", 0)
        await world.after(seconds(30))
        found = world.read()
        assert (found["nodes_count", "ready"], found["nodes_count", "unready"]) == (1, 1)
        assert found["node_taints_count", sick["key"]] == 1
        await world.after(minutes(10))
        found = world.read()
        assert found["scaled_down_nodes_total", *NO_GPU, "unready"] == 1
        assert found["scaled_down_nodes_total", *NO_GPU, "empty"] == 1

    reported(story, scale_down_unready_time=minutes(3), max_node_startup_time=minutes(4), **SHORT)
