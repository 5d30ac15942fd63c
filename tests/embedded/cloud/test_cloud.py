from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import (
    CATALOGUE,
    GROUP_LABEL,
    CallFailure,
    CloudFaults,
    EmbeddedCloud,
    GroupSpec,
    InstanceType,
    Window,
)
from kubetide.embedded.draws import fixed
from kubetide.objects.kinds import NODES
from kubetide.objects.node import Taint, node_condition
from kubetide.ports.errors import CloudError
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.quantity import whole
from kubetide.units.time import after, minutes, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00Z")
GROUP = GroupSpec(
    name="web",
    instance_type="m5.large",
    max_size=10,
    boot=fixed(seconds(60)),
    ready=fixed(seconds(10)),
    shutdown=fixed(seconds(30)),
)


def play(*groups, body, faults=None, catalogue=CATALOGUE, seed=7):
    """Run ``body(cloud, cluster, clock)`` with the machines alive."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock)
        cloud = EmbeddedCloud(
            cluster, clock, seed=seed, groups=groups, catalogue=catalogue, faults=faults or CloudFaults()
        )
        await cloud.start()
        machines = asyncio.create_task(cloud.run())
        result = await body(cloud, cluster, clock)
        assert not machines.done(), machines
        machines.cancel()
        return result

    return run_virtual(main, start=START)


async def nodes_of(cluster):
    return list((await cluster.list(NODES)).items)


def test_a_machine_becomes_a_ready_node_step_by_step():
    """Ordered at 0 s, registered with the not-ready taint after boot, Ready and untainted after that."""

    async def body(cloud, cluster, clock):
        await cloud.increase_size("web", 1)
        await clock.sleep(seconds(59))
        assert await nodes_of(cluster) == []
        assert (await cloud.refresh())[0].instances[0].state == "Creating"
        await clock.sleep(seconds(2))
        (node,) = await nodes_of(cluster)
        assert (await cloud.refresh())[0].instances[0].state == "Running"
        assert [taint.key for taint in node.spec.taints] == ["node.kubernetes.io/not-ready"]
        assert node_condition(node, "Ready").status == "False"
        await clock.sleep(seconds(10))
        (node,) = await nodes_of(cluster)
        assert not node.spec.taints
        ready = node_condition(node, "Ready")
        assert (ready.status, ready.last_transition_time) == ("True", "2026-03-02T00:01:10Z")
        return node, (await cloud.refresh())[0].instances[0]

    node, instance = play(GROUP, body=body)
    assert node.spec.provider_id == instance.provider_id == f"embedded:///zone-a/{node.metadata.name}"
    assert node.metadata.labels["node.kubernetes.io/instance-type"] == "m5.large"
    assert node.metadata.labels["kubernetes.io/hostname"] == node.metadata.name
    assert node.metadata.labels["topology.kubernetes.io/zone"] == "zone-a"
    assert node.metadata.labels[GROUP_LABEL] == "web"
    assert node.status.allocatable == {"cpu": "1930m", "memory": "7518Mi", "pods": "29"}


def test_other_taints_survive_becoming_ready():
    """Only the not-ready taint goes; those of the group and of others stay."""
    spec = replace(GROUP, taints=(Taint(key="team", value="a", effect="NoSchedule"),))

    async def body(cloud, cluster, clock):
        await cloud.increase_size("web", 1)
        await clock.sleep(seconds(65))
        (node,) = await nodes_of(cluster)
        raw = await cluster.get(NODES.untyped, node.metadata.name)
        taints = [*raw["spec"]["taints"], {"key": "other", "effect": "NoExecute"}]
        await cluster.patch(NODES, node.metadata.name, {"spec": {"taints": taints}})
        await clock.sleep(seconds(10))
        return (await nodes_of(cluster))[0].spec.taints

    assert [taint.key for taint in play(spec, body=body)] == ["team", "other"]


def test_initial_machines_are_ready_at_once():
    """Machines of the start need no boot time and cost from the start."""

    async def body(cloud, cluster, clock):
        await clock.sleep(minutes(30))
        return await nodes_of(cluster), cloud.counts()["web"], cloud.spent()

    nodes, counts, spent = play(replace(GROUP, initial=3), body=body)
    assert [node_condition(node, "Ready").status for node in nodes] == ["True"] * 3
    assert not any(node.spec.taints for node in nodes)
    assert (counts.creating, counts.running, counts.deleting, counts.failed) == (0, 3, 0, 0)
    assert spent == pytest.approx(3 * 0.096 / 2)


def test_deletion_takes_the_node_away_when_the_machine_ends():
    """The node of a deleted machine remains until the machine has shut down, and is paid until then."""

    async def body(cloud, cluster, clock):
        (node,) = await nodes_of(cluster)
        await cloud.delete_nodes("web", [node.spec.provider_id])
        assert cloud.counts()["web"].deleting == 1
        assert cloud.cost_per_hour() == 0.096
        await clock.sleep(seconds(29))
        assert len(await nodes_of(cluster)) == 1
        await clock.sleep(seconds(2))
        assert await nodes_of(cluster) == []
        assert cloud.cost_per_hour() == 0.0
        assert (await cloud.refresh())[0].instances == ()

    play(replace(GROUP, initial=1), body=body)


def test_a_machine_deleted_while_it_boots_never_joins():
    """Deleting an order removes it at once, and no node joins."""

    async def body(cloud, cluster, clock):
        await cloud.increase_size("web", 1)
        (instance,) = (await cloud.refresh())[0].instances
        await cloud.delete_nodes("web", [instance.provider_id])
        assert (await cloud.refresh())[0].instances == ()
        await clock.sleep(minutes(5))
        assert await nodes_of(cluster) == []

    play(GROUP, body=body)


def test_stock_out_marks_the_instances_until_they_are_deleted():
    """In a stock-out an order is accepted, its instance carries OutOfResource, and it costs nothing."""
    faults = CloudFaults(stock_outs=(Window(START, after(START, minutes(10)), group="web"),))

    async def body(cloud, cluster, clock):
        await cloud.increase_size("web", 2)
        (group,) = await cloud.refresh()
        assert group.target_size == 2
        assert {each.error.error_class for each in group.instances} == {"OutOfResource"}
        assert {each.error.error_code for each in group.instances} == {"InsufficientInstanceCapacity"}
        assert cloud.cost_per_hour() == 0.0
        assert cloud.counts()["web"].failed == 2
        await cloud.delete_nodes("web", [each.provider_id for each in group.instances])
        assert (await cloud.refresh())[0].target_size == 0
        await clock.sleep(minutes(10))
        await cloud.increase_size("web", 1)
        await clock.sleep(minutes(2))
        assert len(await nodes_of(cluster)) == 1

    play(GROUP, body=body, faults=faults)


def test_a_zone_without_stock_is_passed_over():
    """A group with several zones orders where there is stock, the emptiest zone first."""
    faults = CloudFaults(stock_outs=(Window(START, zone="b"),))

    async def body(cloud, cluster, clock):
        await cloud.increase_size("web", 4)
        return [each.provider_id.split("/")[3] for each in (await cloud.refresh())[0].instances]

    assert play(replace(GROUP, zones=("a", "b", "c")), body=body, faults=faults) == ["a", "c", "a", "c"]


def test_a_boot_failure_runs_but_never_registers():
    """A machine that fails to boot is Running for the cloud and unknown to the cluster."""
    faults = CloudFaults(boot_failures=(Window(START),))

    async def body(cloud, cluster, clock):
        await cloud.increase_size("web", 1)
        await clock.sleep(minutes(30))
        assert await nodes_of(cluster) == []
        assert (await cloud.refresh())[0].instances[0].state == "Running"

    play(GROUP, body=body, faults=faults)
    play(replace(GROUP, join_failure=1.0), body=body)


def test_calls_fail_in_their_window_only():
    """A call failure raises CloudError with its class and code, and changes nothing."""
    failure = CallFailure(
        Window(START, after(START, minutes(1))), calls=("increase_size",), error_code="throttled"
    )

    async def body(cloud, cluster, clock):
        with pytest.raises(CloudError, match="increase_size web: the cloud's API is not available") as caught:
            await cloud.increase_size("web", 1)
        assert (caught.value.error_class, caught.value.error_code) == ("Other", "throttled")
        assert (await cloud.refresh())[0].target_size == 0
        await clock.sleep(minutes(1))
        await cloud.increase_size("web", 1)

    play(GROUP, body=body, faults=CloudFaults(call_failures=(failure,)))


def test_the_quota_holds_over_all_groups():
    """An order that would pass the quota is refused as OutOfResource."""

    async def body(cloud, cluster, clock):
        await cloud.increase_size("web", 2)
        with pytest.raises(CloudError, match="quota of 3") as caught:
            await cloud.increase_size("other", 2)
        assert caught.value.error_class == "OutOfResource"
        await cloud.increase_size("other", 1)

    play(GROUP, replace(GROUP, name="other"), body=body, faults=CloudFaults(quota=3))


def test_refresh_gives_the_same_objects_while_nothing_changes():
    """An unchanged cloud is the same tuple, and an unchanged group the same object."""

    async def body(cloud, cluster, clock):
        first = await cloud.refresh()
        assert await cloud.refresh() is first
        await cloud.increase_size("web", 1)
        second = await cloud.refresh()
        assert second is not first
        assert second[0] is first[0]
        assert second[1] is not first[1]

    play(GROUP, replace(GROUP, name="other"), body=body)


def test_a_wrong_catalogue_entry_shows_in_the_template_only():
    """The template promises what the catalogue says (4 GiB); the machines have what they have (16 GiB)."""
    real = replace(CATALOGUE["c5d.large"], memory_bytes=16 << 30, catalogue_memory_bytes=4 << 30)

    async def body(cloud, cluster, clock):
        template = (await cloud.refresh())[0].template
        await cloud.increase_size("web", 1)
        await clock.sleep(minutes(2))
        return template, (await nodes_of(cluster))[0]

    template, node = play(replace(GROUP, instance_type="c5d.large"), body=body, catalogue={"c5d.large": real})
    assert template.source == (
        "catalogue of the embedded cloud, instance type c5d.large: 2 CPU, 4Gi memory, 29 pods"
    )
    assert whole(template.node.status.capacity["memory"]) == 4 << 30
    assert whole(node.status.capacity["memory"]) == 16 << 30
    reserved = real.reserved_memory_bytes
    assert whole(template.node.status.allocatable["memory"]) == (4 << 30) - reserved
    assert whole(node.status.allocatable["memory"]) == (16 << 30) - reserved


def test_an_unknown_instance_type_has_no_template_and_cannot_grow():
    """The group stays visible and says what is wrong."""

    async def body(cloud, cluster, clock):
        (group,) = await cloud.refresh()
        assert group.template is None
        assert group.template_error == "node group web uses the unknown instance type z9.nano"
        with pytest.raises(CloudError, match=r"unknown instance type z9\.nano"):
            await cloud.increase_size("web", 1)

    play(replace(GROUP, instance_type="z9.nano"), body=body)


def test_the_same_seed_makes_the_same_machines():
    """Names and boot times are functions of the seed; one more group moves none of them."""
    drawn = replace(GROUP, boot=GroupSpec(name="x", instance_type="", max_size=1).boot)

    async def body(cloud, cluster, clock):
        await cloud.increase_size("web", 3)
        await clock.sleep(minutes(5))
        nodes = [node for node in await nodes_of(cluster) if node.metadata.labels[GROUP_LABEL] == "web"]
        return json.dumps([(node.metadata.name, node.metadata.creation_timestamp) for node in nodes])

    first = play(drawn, body=body)
    assert first == play(drawn, replace(GROUP, name="a", initial=2), body=body)
    assert first != play(drawn, body=body, seed=8)


COMMANDS = st.lists(
    st.tuples(
        st.sampled_from(["increase", "decrease", "delete", "wait"]),
        st.sampled_from(["a", "b"]),
        st.integers(1, 4),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(commands=COMMANDS, seed=st.integers(0, 5))
def test_any_commands_leave_cloud_and_cluster_agreeing(commands, seed):
    """After any commands the bounds hold, and in the end nodes and running instances are the same."""
    groups = [replace(GROUP, name="a", max_size=5), replace(GROUP, name="b", min_size=1, max_size=3)]

    async def body(cloud, cluster, clock):
        spent = 0.0
        for command, name, number in commands:
            group = next(each for each in await cloud.refresh() if each.id == name)
            try:
                if command == "increase":
                    await cloud.increase_size(name, number)
                elif command == "decrease":
                    await cloud.decrease_target_size(name, number)
                elif command == "delete":
                    await cloud.delete_nodes(name, [each.provider_id for each in group.instances[:number]])
                else:
                    await clock.sleep(seconds(20 * number))
            except CloudError:
                unchanged = next(each for each in await cloud.refresh() if each.id == name)
                assert unchanged is group
            for each in await cloud.refresh():
                assert each.min_size <= each.target_size <= each.max_size
                assert each.target_size == sum(one.state != "Deleting" for one in each.instances)
            assert cloud.spent() >= spent
            spent = cloud.spent()
        await clock.sleep(minutes(3))
        running = {one.provider_id for each in await cloud.refresh() for one in each.instances}
        nodes = await nodes_of(cluster)
        assert {node.spec.provider_id for node in nodes} == running
        assert all(node_condition(node, "Ready").status == "True" for node in nodes)
        assert not any(node.spec.taints for node in nodes)
        assert cloud.cost_per_hour() == pytest.approx(0.096 * len(running))

    play(*groups, body=body, seed=seed)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: replace(GROUP, min_size=3, max_size=2), "node group web: needs 0 <= min_size"),
        (lambda: replace(GROUP, initial=11), "node group web: needs 0 <= min_size"),
        (lambda: replace(GROUP, zones=()), "node group web: zones is empty"),
        (lambda: replace(GROUP, join_failure=2.0), "join_failure 2.0 is not between 0 and 1"),
        (
            lambda: InstanceType(
                "t", cpu_milli=1000, memory_bytes=1 << 30, price_per_hour=0, reserved_cpu_milli=1000
            ),
            "instance type t: reserves 1000m CPU",
        ),
    ],
)
def test_bad_settings_are_named(make, message):
    """A group or type that cannot be is refused with its name and field."""
    with pytest.raises(ValueError, match=message):
        make()
