"""The series of the node loop: on a living cluster in virtual time, held against what the cluster became."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from tests.nodes.frozen import World as Frozen
from tests.nodes.frozen import group, node, pod, replica_set
from tests.nodes.live import SHORT, START, play
from tests.runtime.series.reading import read
from tests.runtime.series.scraped import NO_GPU, SMALL, Scraped, reported

from kubetide.embedded.cloud import GPU_LABEL, CallFailure, CloudFaults, GroupSpec, Window
from kubetide.nodes.series import NodesSeries
from kubetide.nodes.series.node_gauges import NodeGauges
from kubetide.objects.kinds import DAEMON_SETS, NODES, PODS
from kubetide.ports.cloud import GroupOptions
from kubetide.ports.errors import CloudError, TooManyRequests
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.exposition import Registry
from kubetide.units.time import after, milliseconds, minutes, seconds


def test_before_the_first_tick_only_what_is_configured_is_reported():
    """Limits are there at once; values that were never measured are missing, or zero."""

    async def main(clock):
        found = Scraped(clock, cores_total="8:64", memory_total="1:2").read()
        assert found["cpu_limits_cores", "minimum"] == 8
        assert found["cpu_limits_cores", "maximum"] == 64
        assert found["memory_limits_bytes", "minimum"] == 1 << 30
        assert found["memory_limits_bytes", "maximum"] == 2 << 30
        assert not any(name[0] in {"nodes_count", "last_activity", "skipped_pods_count"} for name in found)

    run_virtual(main, start=START)


def test_counters_are_zero_from_the_start():
    """As upstream's: without it a rate would not see the first time."""

    async def main(clock):
        found = Scraped(clock).read()
        counted = {key for key, value in found.items() if key[0].endswith(("_total", "_events_count"))}
        assert not any(found[key] for key in counted)
        assert {key[1:] for key in counted if key[0] == "skipped_scale_events_count"} == {
            (direction, f"{resource}ResourceLimit")
            for direction in ("down", "up")
            for resource in ("Cpu", "Memory")
        }
        assert {key[-1] for key in counted if key[0] == "errors_total"} >= {"apiCallError", "internalError"}
        for name, values in {
            "failed_scale_ups_total": {"apiCallError", "cloudProviderError", "timeout"},
            "failed_node_creations_total": {"apiCallError", "cloudProviderError", "timeout"},
            "scaled_down_nodes_total": {"empty", "underutilized", "unready"},
            "evicted_pods_total": {"failed", "succeeded"},
        }.items():
            assert {key[-1] for key in counted if key[0] == name} == values
        assert not any(key[0] == "scaled_up_nodes_total" for key in counted)

    run_virtual(main, start=START)


def test_nodes_that_come_are_counted():
    """Requested nodes, ready nodes, cores and memory are those of the cluster."""

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.after(seconds(25))
        waiting = world.read()
        assert waiting["scaled_up_nodes_total", *NO_GPU] == 6
        assert waiting["unschedulable_pods_count", "unschedulable"] == 6
        assert waiting["nodes_count", "unregistered"] + waiting["nodes_count", "notStarted"] == 6
        await world.after(minutes(5))
        found = world.read()
        assert found["nodes_count", "ready"] == len(world.nodes) == 6
        assert found["unschedulable_pods_count", "unschedulable"] == 0
        assert found["scaled_up_nodes_total", *NO_GPU] == 6
        assert found["cluster_safe_to_autoscale",] == 1
        assert found["node_groups_count", "autoscaled"] == 1
        assert found["node_groups_count", "autoprovisioned"] == found["nodes_count", "suspended"] == 0
        assert found["max_nodes_count",] == 10
        nodes = (await world.cluster.list(NODES)).items
        assert found["cluster_cpu_current_cores",] == sum(int(one.status.capacity["cpu"]) for one in nodes)
        ticks = found["function_duration_seconds_count", "main"]
        assert ticks == len([one for one in world.recorder.records if one.phase == 0])
        begun = found["last_activity", "main"]
        assert world.clock.now() / 1e9 - 10 <= begun <= world.clock.now() / 1e9
        assert found["last_activity", "scaleUp"] < found["last_activity", "autoscaling"] == begun

    reported(story)


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
    """Nobody waits for them to go, so as upstream they are no evictions that succeeded or failed."""

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


def test_the_last_activity_is_told_in_whole_seconds():
    """As upstream; a scale-down without candidates is one, too."""

    async def main(clock):
        world = Scraped(clock, (SMALL,))
        async with world.running():
            await world.after(minutes(1))
            found = world.read()
        for activity in ("main", "mainSuccessful", "autoscaling", "scaleDown"):
            told = found["last_activity", activity]
            assert told == int(told) > START / 1e9, activity

    run_virtual(main, start=after(START, milliseconds(250)))


def test_pods_that_would_not_go_are_counted_once():
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


def test_refused_increases_and_machines_that_fail_are_counted():
    """A stock-out has the cloud's code; a machine that never joins is a timeout and is removed."""
    out = Window(START, after(START, minutes(4)), group="first")
    groups = (
        GroupSpec(name="first", instance_type="m5.large", max_size=6),
        GroupSpec(name="second", instance_type="m5.xlarge", max_size=6),
    )

    async def story(world):
        await world.deploy(replicas=5, cpu="1500m")
        await world.after(minutes(10))
        found = world.read()
        failures = [one for one in world.recorder.reasons if one.code == "FailedInstance"]
        failed = {key[-1]: count for key, count in found.items() if key[0] == "failed_scale_ups_total"}
        assert failures
        assert sum(failed.values()) == len(failures)
        unmade = {key[1]: count for key, count in found.items() if key[0] == "failed_node_creations_total"}
        assert sum(unmade.values()) == sum(dict(one.fields)["instances"] for one in failures)
        assert set(unmade) == set(failed)

    reported(story, groups, faults=CloudFaults(stock_outs=(out,)))


def test_each_group_is_reported_with_the_flag():
    """Bounds, target, health and backoff; a reason that was shown stays at 0, and a deleted group disappears."""
    out = Window(START, after(START, minutes(4)), group="first")
    groups = (
        GroupSpec(name="first", instance_type="m5.large", min_size=0, max_size=6),
        GroupSpec(name="second", instance_type="m5.xlarge", min_size=1, max_size=7),
    )

    async def story(world):
        assert not any(key[0].startswith("node_group_") for key in world.read())
        registry, state = Registry(), world.controller.state
        state.settings = msgspec.structs.replace(state.settings, emit_per_nodegroup_metrics=True)
        NodesSeries(registry, world.controller, world.clock)
        found = lambda: read(registry, "cluster_autoscaler_node_group_")  # noqa: E731
        assert found() == {}
        await world.after(seconds(11))
        assert found()["backoff_status", "first", ""] == 0
        await world.deploy(replicas=3, cpu="1500m")
        await world.after(minutes(2))
        shown = found()
        assert [shown["min_count", name] for name in ("first", "second")] == [0, 1]
        assert [shown["max_count", name] for name in ("first", "second")] == [6, 7]
        for name, known in world.controller.state.groups.items():
            assert shown["target_count", name] == known.target_size
        assert shown["healthiness", "second"] == 1
        [(reason, value)] = [
            (key[2], value) for key, value in shown.items() if key[:2] == ("backoff_status", "first")
        ]
        assert (bool(reason), value) == (True, 1)
        await world.after(minutes(30))
        assert found()["backoff_status", "first", reason] == 0
        del world.controller.state.groups["first"]
        assert not any(key[1] == "first" for key in found())

    reported(story, groups, faults=CloudFaults(stock_outs=(out,)))


def test_machines_that_never_join_time_out_and_are_removed():
    """After the provision time the scale-up has failed, and the machines are deleted and counted."""
    groups = (GroupSpec(name="lost", instance_type="m5.large", max_size=3, join_failure=1.0),)

    async def story(world):
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(12))
        found = world.read()
        assert found["failed_scale_ups_total", *NO_GPU, "timeout"] == 1
        assert found["failed_node_creations_total", "timeout"] == 2
        removed = [one for one in world.recorder.reasons if one.code == "UnregisteredRemoved"]
        assert found["old_unregistered_nodes_removed_count",] == len(removed) > 0

    reported(story, groups, max_node_provision_time=minutes(5))


def test_a_tick_that_fails_is_counted_by_whose_error_it_was():
    """An error of the cloud's and a bug are counted separately."""

    async def story(world):
        refresh = world.cloud.refresh
        failing = iter([CloudError("down"), CloudError("down"), ValueError("a bug")])

        async def failing_refresh():
            error = next(failing, None)
            if error is not None:
                raise error
            return await refresh()

        world.controller._gatherer._cloud.refresh = failing_refresh
        await world.after(minutes(1))
        found = world.read()
        assert found["errors_total", "cloudProviderError"] == 2
        assert found["errors_total", "internalError"] == 1
        assert found["errors_total", "apiCallError"] == 0
        world.controller.health.failures = 0

    reported(story)


def test_listening_changes_no_record():
    """The records are those of a loop that nobody listens to."""

    async def story(world):
        await world.deploy(replicas=4, cpu="1500m")
        await world.after(minutes(4))

    assert reported(story).recorder.lines == play(story).recorder.lines


def test_gpu_nodes_are_reported_apart():
    """Nodes with the cloud's GPU label have its value and their resource as labels."""
    groups = (GroupSpec(name="gpu", instance_type="g4dn.xlarge", max_size=3),)

    async def story(world):
        await world.deploy(replicas=2, cpu="3")
        await world.after(minutes(5))
        [node, _] = (await world.cluster.list(NODES)).items
        kind = node.metadata.labels[GPU_LABEL]
        found = world.read()
        assert found["scaled_up_nodes_total", "", kind, "nvidia.com/gpu"] == 2
        assert found["scaled_up_gpu_nodes_total", kind, "nvidia.com/gpu"] == 2

    reported(story, groups)


def test_an_increase_that_the_cloud_refuses_is_a_failed_scale_up():
    """The call's failure counts by whose error it was, not by the cloud's code, as upstream's."""
    window = Window(START, after(START, minutes(2)))

    async def story(world):
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(1))
        found = world.read()
        assert found["failed_scale_ups_total", *NO_GPU, "cloudProviderError"] == 1
        assert found["failed_node_creations_total", "cloudProviderError"] == 2
        assert ("scaled_up_nodes_total", *NO_GPU) not in found

    reported(story, faults=CloudFaults(call_failures=(CallFailure(window),)))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            CloudError("gone", error_code="404", error_type="nodeGroupDoesNotExistError"),
            "nodeGroupDoesNotExistError",
        ),
        (ValueError("a bug"), "internalError"),
    ],
)
def test_a_failed_scale_up_has_the_type_of_its_error(error, reason):
    """As upstream, the series and the group's backoff agree on it."""

    async def story(world):
        async def refuse(_group, _delta):
            raise error

        world.cloud.increase_size = refuse
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(1))
        found = world.read()
        assert found["failed_scale_ups_total", *NO_GPU, reason] == 1
        assert found["failed_node_creations_total", reason] == 2
        assert found["failed_scale_ups_total", *NO_GPU, "cloudProviderError"] == 0
        [entry] = world.controller.state.memory.backoff.values()
        assert entry.error_code == reason
        world.controller.health.failures = 0

    reported(story)


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


def test_pods_that_are_still_to_be_made_are_counted_apart():
    """With proactive scale-up those that fit nowhere count up to the limit, and so do those beyond it; else there is no such value."""
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


def test_groups_that_are_created_and_deleted_are_counted():
    """A created group counts as autoprovisioned while it is there; creations and deletions are counted."""
    offered = (GroupSpec(name="auto", instance_type="m5.large", max_size=3),)

    async def story(world):
        assert ("created_node_groups_total", "autoprovisioned") not in world.read()
        await world.deploy(replicas=1)
        await world.after(minutes(4))
        found = world.read()
        assert found["created_node_groups_total", "autoprovisioned"] == 1
        assert found["node_groups_count", "autoprovisioned"] == 1
        assert found["node_groups_count", "autoscaled"] == 0
        await world.scale("web", 0)
        await world.after(minutes(12))
        found = world.read()
        assert found["deleted_node_groups_total", "autoprovisioned"] == 1
        assert found["node_groups_count", "autoprovisioned"] == 0

    reported(story, (), creatable=offered, node_autoprovisioning_enabled=True, **SHORT)
