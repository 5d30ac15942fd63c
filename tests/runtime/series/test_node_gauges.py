"""The gauges of nodes and waiting pods, of a node loop whose world does not change."""

from __future__ import annotations

from collections import Counter

from tests.nodes.frozen import World as Frozen
from tests.nodes.frozen import group, node, pod, replica_set
from tests.nodes.live import START
from tests.runtime.series.reading import read

from kubetide.nodes.series.node_gauges import NodeGauges
from kubetide.units.exposition import Registry


def gauges(world):
    """Return the gauges of a world that does not change, after a tick that is not the process's first."""
    world.state.memory.cleaned = True
    world.tick()
    registry = Registry()
    NodeGauges(registry).collect(world.state, world.now)
    return read(registry, "cluster_autoscaler_")


def test_taints_are_counted_by_kind():
    """Known taints by their key, those of flags by their kind, all others together."""
    keys = {
        "node.kubernetes.io/unschedulable": "node.kubernetes.io/unschedulable",
        "ToBeDeletedByClusterAutoscaler": "ToBeDeletedByClusterAutoscaler",
        "ignore-taint.cluster-autoscaler.kubernetes.io/a": "ignore-taint.cluster-autoscaler.kubernetes.io/",
        "startup-taint.cluster-autoscaler.kubernetes.io/b": "startup-taint",
        "mine/starting": "startup-taint",
        "status-taint.cluster-autoscaler.kubernetes.io/c": "status-taint",
        "mine/status": "status-taint",
        "team": "other",
        "dedicated": "other",
    }
    taints = [{"key": key, "effect": "NoSchedule"} for key in keys]
    settings = {"startup_taint": ("mine/starting",), "status_taint": ("mine/status",)}
    world = Frozen(
        groups=[group("g", nodes=["n"])], nodes=[node("n", spec={"taints": taints})], settings=settings
    )
    found = {key[1]: count for key, count in gauges(world).items() if key[0] == "node_taints_count"}
    assert found == Counter(keys.values())


def test_cores_and_memory_leave_out_what_goes():
    """Nodes that are being deleted do not count; virtual kubelets do here, though they use up no limit."""
    going = {"key": "ToBeDeletedByClusterAutoscaler", "value": str(START // 10**9), "effect": "NoSchedule"}
    nodes = [
        node("n1", cpu="4", memory="16Gi"),
        node("n2", cpu="8", memory="1Gi", spec={"taints": [going]}),
        node("n3", cpu="16", memory="2Gi", labels={"type": "virtual-kubelet"}),
    ]
    world = Frozen(groups=[group("g", nodes=["n1", "n2", "n3"])], nodes=nodes)
    found = gauges(world)
    assert found["cluster_cpu_current_cores",] == 20
    assert found["cluster_memory_current_bytes",] == 18 << 30


def test_the_most_nodes_are_bounded_by_groups_and_flag():
    """Without the flag it is what the groups may have together; with it the smaller of both."""
    groups = [group("a", maximum=10), group("b", maximum=5), group("to-be-made", maximum=7, exists=False)]
    for flag, most in ((0, 15), (12, 12), (100, 15)):
        world = Frozen(groups=groups, settings={"max_nodes_total": flag})
        assert gauges(world)["max_nodes_count",] == most


def test_pods_that_proactive_scale_up_injects_are_counted_apart():
    """With proactive scale-up, pods beyond the limit count as skipped; without it neither value exists."""
    for proactive, found in ((True, {"injected": 7, "skipped_injection": 2}), (False, {})):
        settings = {"enable_proactive_scaleup": proactive, "pod_injection_limit": 8}
        world = Frozen(
            groups=[group("g")],
            pods=[pod("p", cpu="1", of="web")],
            replica_sets=(replica_set("web", 10),),
            settings=settings,
        )
        waiting = {
            key[1]: count for key, count in gauges(world).items() if key[0] == "unschedulable_pods_count"
        }
        assert waiting == {"unschedulable": 1, "scheduler_unprocessed": 0, **found}


def test_pods_that_a_bypassed_scheduler_has_not_seen_are_counted_apart():
    """A pod that no scheduler has seen counts only for schedulers that are bypassed."""
    unseen = {"status": {"conditions": None}, "spec": {"schedulerName": "mine"}}
    pods = [pod("a"), pod("b", **unseen), pod("c", status={"conditions": None})]
    world = Frozen(groups=[group("g")], pods=pods, settings={"bypassed_scheduler_names": ("mine",)})
    found = gauges(world)
    assert found["unschedulable_pods_count", "unschedulable"] == 1
    assert found["unschedulable_pods_count", "scheduler_unprocessed"] == 1
