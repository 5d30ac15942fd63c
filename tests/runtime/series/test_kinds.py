"""Nodes are counted by kind, and devices that differ from the expected ones are reported."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.nodes.claims import claim, devices, slice_of, using
from tests.nodes.frozen import START, World, group, node, pod, template
from tests.runtime.series.reading import read
from tests.runtime.series.scraped import reported

from kubetide.embedded.cloud import CallFailure, CloudFaults, GroupSpec, Window
from kubetide.nodes.facts.devices import DeviceChanges
from kubetide.nodes.series.kinds import KindCounter, kind_of_group, kind_of_node
from kubetide.nodes.series.node_gauges import NodeGauges
from kubetide.nodes.templates.device_mismatch import Mismatch, compare, device_mismatches
from kubetide.objects.resource import DeviceAttribute, ResourcePool
from kubetide.units.exposition import Registry
from kubetide.units.time import after, minutes


def named(one, name):
    return replace(one, metadata=replace(one.metadata, name=name))


def made(*drivers):
    return replace(
        template(), slices=tuple(slice_of(f"t{at}", 1, driver=one) for at, one in enumerate(drivers))
    )


@pytest.mark.parametrize(
    ("drivers", "label"),
    [
        ((), ""),
        (("gpu.nvidia.com",), "gpu.nvidia.com"),
        (("gpu.nvidia.com", "compute-domain.nvidia.com"), "compute-domain.nvidia.com,gpu.nvidia.com"),
        (("tpu.google.com", "dra.net", "tpu.google.com"), "dra.net,tpu.google.com"),
        (("mine", "theirs"), "custom.driver"),
        (("dra.net", "a.mine", "gpu.nvidia.com"), "custom.driver,dra.net,gpu.nvidia.com"),
    ],
)
def test_drivers_are_named_once_and_in_order(drivers, label):
    """Those that upstream knows by name, all others together; of a group as of a node that is there."""
    slices = [
        named(in_pool(slice_of("n", 1, driver=one), f"p{at}"), f"n-{at}") for at, one in enumerate(drivers)
    ]
    world = World(groups=[group("g", made=made(*drivers))], nodes=[node("n")], devices=devices(slices=slices))
    assert kind_of_group(world.state, "g") == (label, "", "")
    assert kind_of_node(world.state, "n") == (label, "", "")
    assert kind_of_group(world.state, "gone") == kind_of_node(world.state, "gone") == ("", "", "")


GPUS = {"nvidia.com/gpu": "1"}
AMD = {"amd.com/gpu": "1", "nvidia.com/gpu": "0"}


@pytest.mark.parametrize(
    ("labelled", "capacity", "allocatable", "promised", "values"),
    [
        ("t4", GPUS, GPUS, {}, ("t4", "nvidia.com/gpu")),
        ("t4", GPUS, {}, {}, ("t4", "nvidia.com/gpu")),
        ("mi300", AMD, AMD, {}, ("mi300", "amd.com/gpu")),
        (None, GPUS, GPUS, {}, ("generic", "nvidia.com/gpu")),
        (None, GPUS, {}, {}, ("", "")),
        (None, {}, {}, GPUS, ("", "")),
        ("t4", {}, {}, GPUS, ("missing-gpu", "nvidia.com/gpu")),
        ("t4", {}, {}, {}, ("unexpected-label", "nvidia.com/gpu")),
    ],
)
def test_gpus_are_named_by_label_and_what_is_there(labelled, capacity, allocatable, promised, values):
    """As upstream's: a GPU without the cloud's label is generic, and a label without a GPU says which of both is wrong.

    Source: Cluster Autoscaler, ``GetGpuInfoForMetrics``.
    """
    labels = {} if labelled is None else {"gpu": labelled}
    status = {"capacity": capacity, "allocatable": allocatable}
    made = template(status={"capacity": promised, "allocatable": promised})
    world = World(
        groups=[group("g", made=made, nodes=["n"])],
        nodes=[node("n", labels=labels, status=status)],
        settings={"gpu_label": "gpu"},
    )
    world.tick()
    assert kind_of_node(world.state, "n") == ("", *values)


@pytest.mark.parametrize("capacity", [{}, GPUS])
def test_gpus_that_pods_claim_as_devices_are_named_by_their_driver(capacity):
    """GKE says so by a label, and then nothing about them is missing."""
    labels = {"cloud.google.com/gke-accelerator": "b200", "cloud.google.com/gke-gpu-dra-driver": "true"}
    there = node("n", labels=labels, status={"capacity": capacity})
    settings = {"gpu_label": "cloud.google.com/gke-accelerator"}
    world = World(groups=[group("g", nodes=["n"])], nodes=[there], settings=settings)
    world.tick()
    assert kind_of_node(world.state, "n") == ("", "b200", "dra_gpu.nvidia.com")


def test_the_older_counters_count_gpu_nodes_alone():
    """Dashboards that were built on upstream's deprecated counters of GPU nodes go on working."""
    registry = Registry()
    counter = KindCounter(registry, "removed_total", "removed_gpu_total", "Removed.", "reason")
    counter.add(2, ("dra.net", "t4", "nvidia.com/gpu"), "empty")
    counter.add(3, ("", "", ""), "empty")
    assert read(registry, "cluster_autoscaler_") == {
        ("removed_total", "", "", "", "empty"): 3,
        ("removed_total", "dra.net", "t4", "nvidia.com/gpu", "empty"): 2,
        ("removed_gpu_total", "t4", "nvidia.com/gpu", "empty"): 2,
    }


def test_a_group_is_reported_as_its_live_nodes_are():
    """The values of live nodes override those of the cloud."""
    world = World(
        groups=[group("g", made=made("dra.net"), nodes=["n"])],
        nodes=[node("n")],
        devices=devices(
            slices=[slice_of("n", 1, driver="gpu.nvidia.com"), slice_of("x", 1, driver="dra.net")]
        ),
    )
    world.tick(at=minutes(2))
    assert kind_of_group(world.state, "g")[0] == "dra.net"
    world.tick(at=minutes(3), devices=DeviceChanges(slices=(slice_of("n", 1, driver="dra.net"),)))
    assert kind_of_group(world.state, "g")[0] == "dra.net"


def test_scale_ups_have_the_drivers_of_their_group():
    """Requested nodes, and increases that the cloud refuses, have the drivers of their group."""
    groups = (
        GroupSpec(name="gpu", instance_type="m5.large", max_size=5, devices={"gpu.nvidia.com": 2, "my": 1}),
    )
    label = "custom.driver,gpu.nvidia.com"
    outage = Window(START, after(START, minutes(1)))

    async def story(world):
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(1))
        assert world.read()["failed_scale_ups_total", label, "", "", "cloudProviderError"] == 1
        await world.after(minutes(6))
        assert world.read()["scaled_up_nodes_total", label, "", ""] == 2

    reported(story, groups, faults=CloudFaults(call_failures=(CallFailure(outage),)))


def in_pool(one, name, pieces=1):
    return replace(one, spec=replace(one.spec, pool=ResourcePool(name, 1, pieces)))


def like(*names, count=1, driver="gpu.test", pool="p", pieces=1):
    """A slice with that many devices with these attributes."""
    one = in_pool(slice_of("n", count, driver=driver), pool, pieces)
    attributes = {name: DeviceAttribute(string_value="x") for name in names}
    each = tuple(replace(device, attributes=attributes or None) for device in one.spec.devices)
    return replace(one, spec=replace(one.spec, devices=each))


@pytest.mark.parametrize(
    ("expected", "there", "found"),
    [
        ([like("a", count=4)], [like("a", count=4, pool="other")], {}),
        ([like("a", count=4)], [like("a", count=3)], {"gpu.test": Mismatch(mismatch=1)}),
        ([like("a")], [like("b")], {"gpu.test": Mismatch(mismatch=1)}),
        ([like("a")], [like("a"), like("a", "b", pool="q")], {"gpu.test": Mismatch(extra=1)}),
        ([like("a"), like("b", pool="q")], [like("a")], {"gpu.test": Mismatch(missing=1)}),
        (
            [like("a")],
            [like("a", driver="more")],
            {"gpu.test": Mismatch(missing=1), "more": Mismatch(extra=1)},
        ),
        ([], [like("a", count=0)], {}),
        # A pool of which a piece is still to come says nothing yet.
        ([like("a", count=2)], [like("a", pieces=2)], {}),
        # Like devices of two pools are two groups; unlike ones of one pool too.
        (
            [like("a"), like("a", pool="q")],
            [like("a", count=2)],
            {"gpu.test": Mismatch(missing=1, mismatch=1)},
        ),
        (
            [like("a", pieces=2), like("b", pieces=2)],
            [like("b", pieces=2), like("c", pool="q"), like("a", pieces=2)],
            {"gpu.test": Mismatch(extra=1)},
        ),
    ],
)
def test_devices_are_compared_by_number_and_attributes(expected, there, found):
    """Whatever of a driver is left on both sides is a mismatch; the rest is missing, or extra."""
    seen = {}
    compare(expected, there, seen)
    assert seen == found


def test_a_node_that_brings_less_than_its_template_is_reported_until_that_learns():
    """Ready nodes count; once shown, a driver stays at 0."""
    young = node("n", created="2026-03-02T07:59:50Z")
    world = World(
        groups=[group("g", made=replace(template(), slices=(slice_of("t", 4),)), nodes=["n"])],
        nodes=[young],
        pods=[using("p", node="n")],
        devices=devices(slices=[slice_of("n", 3)], claims=[claim("p")]),
    )
    registry = Registry()
    gauges = NodeGauges(registry)

    def found():
        gauges.collect(world.state, world.now)
        shown = read(registry, "cluster_autoscaler_dra_node_template_resources_mismatch")
        return {key[1:]: value for key, value in shown.items()}

    world.tick()
    assert found() == {
        ("gpu.test", "missing"): 0,
        ("gpu.test", "extra"): 0,
        ("gpu.test", "mismatch"): 1,
    }
    world.tick(at=minutes(2))
    assert world.state.memory.templates["g"].from_node == "n"
    assert device_mismatches(world.state) == {}
    assert set(found().values()) == {0}


def test_devices_that_a_nodes_own_pods_have_are_no_difference():
    """A template leaves them out; other nodes of the group have them all."""
    own = using("agent", node="n1", kind="DaemonSet", of="agent")
    world = World(
        groups=[group("g", nodes=["n1", "n2"])],
        nodes=[node("n1"), node("n2")],
        pods=[own, pod("p", node="n2")],
        devices=devices(
            slices=[slice_of("n1", 2), slice_of("n2", 2)],
            claims=[claim("agent", device="gpu-0", on="n1", user="agent")],
        ),
    )
    world.tick(at=minutes(2))
    assert world.state.memory.templates["g"].slices != (slice_of("n1", 2),)
    assert device_mismatches(world.state) == {}


def test_without_devices_there_is_nothing_to_compare():
    """Where no pod requests devices, nothing is compared and no series is shown."""
    world = World(groups=[group("g", nodes=["n"])], nodes=[node("n")])
    world.tick()
    registry = Registry()
    NodeGauges(registry).collect(world.state, world.now)
    assert not any("mismatch" in key[0] for key in read(registry))
