"""The series of the node loop on a living cluster in virtual time, held against what the cluster became."""

from __future__ import annotations

import msgspec
from tests.nodes.live import SHORT, START, play
from tests.runtime.series.reading import read
from tests.runtime.series.scraped import NO_GPU, SMALL, Scraped, reported

from kubetide.embedded.cloud import GPU_LABEL, CloudFaults, GroupSpec, Window
from kubetide.nodes.series import NodesSeries
from kubetide.objects.kinds import NODES
from kubetide.runtime.timing.clock import run_virtual
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
    """As upstream: without the zero a rate would miss the first increase."""

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


def test_the_last_activity_is_reported_in_whole_seconds():
    """As upstream; a scale-down without candidates is an activity, too."""

    async def main(clock):
        world = Scraped(clock, (SMALL,))
        async with world.running():
            await world.after(minutes(1))
            found = world.read()
        for activity in ("main", "mainSuccessful", "autoscaling", "scaleDown"):
            reported_at = found["last_activity", activity]
            assert reported_at == int(reported_at) > START / 1e9, activity

    run_virtual(main, start=after(START, milliseconds(250)))


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
