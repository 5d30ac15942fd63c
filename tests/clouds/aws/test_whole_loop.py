"""The node loop on an embedded cluster whose machines are of Auto Scaling groups, on a server of AWS's protocol."""

from __future__ import annotations

import pytest

pytest.importorskip("moto", reason="moto is a development dependency")

from tests.clouds.aws.moto_aws import SlowAws, make_group
from tests.clouds.joining import JoiningWorld
from tests.nodes.live import SHORT, play, replayed

from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.cloud import AwsCloud
from kubetide.clouds.aws.types import InstanceTypes
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.units.time import minutes

pytestmark = pytest.mark.slow


class AtOnce:
    """Calls without a thread, which virtual time does not have."""

    def __init__(self, client):
        self.client = client

    async def __call__(self, operation, parameters):
        return self.client._call(operation, parameters)


class AwsWorld(JoiningWorld):
    """A world whose node loop scales groups of AWS."""

    def __init__(self, clock, groups, *, server, stock_out=(), **settings):
        self.server = server
        self.aws = SlowAws(AtOnce(server.client), clock, boot_s=60, stock_out=set(stock_out))
        super().__init__(clock, groups, provider=self.make, **settings)

    def make(self, clock):
        specs = [NodeSpec(name, 0, 9) for name in self.names]
        return AwsCloud(AwsApi(self.aws), clock, groups=specs, types=InstanceTypes(None))

    async def machines(self):
        return {
            one["InstanceId"]: (
                group["AutoScalingGroupName"],
                f"aws:///{one['AvailabilityZone']}/{one['InstanceId']}",
            )
            for group in await AwsApi(self.aws).groups_by_name(self.names)
            for one in group["Instances"]
        }

    def sizes(self):
        found = self.server.asg.describe_auto_scaling_groups(AutoScalingGroupNames=list(self.names))
        return {
            one["AutoScalingGroupName"]: (one["DesiredCapacity"], len(one["Instances"]))
            for one in found["AutoScalingGroups"]
        }


def test_load_up_and_down(server):
    """Load grows the group, machines join and take the pods; without it the idle ones end, with decrement."""
    make_group(server, "workers", max_size=9)

    async def story(world):
        await world.deploy(replicas=5, cpu="1500m")
        await world.after(minutes(6))
        assert world.pending == []
        assert world.sizes() == {"workers": (5, 5)}
        before = set(world.nodes)
        await world.scale("web", 1)
        await world.after(minutes(15))
        assert world.pending == []
        assert world.sizes() == {"workers": (1, 1)}
        assert len(world.nodes) == 1
        assert set(world.nodes) < before
        removed = sorted(before - set(world.nodes))
        assert sorted(world.aws.ended) == [(name, True) for name in removed], (
            "those that were drained, and no other"
        )
        [left] = world.nodes
        assert {pod.spec.node_name for pod in world.informers["pods"].objects.values()} == {left}

    def world_of(clock, groups, **settings):
        return AwsWorld(clock, groups, server=server, **settings)

    world = play(story, ("workers",), world_of=world_of, **SHORT)
    assert replayed(world) > 50


def test_another_group_takes_over_a_stock_out(server):
    """Where one group's machines cannot be had, it backs off, its orders are given up, and another group grows."""
    for name in ("short", "stocked"):
        make_group(server, name, max_size=9)

    async def story(world):
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(20))
        assert world.pending == []
        assert "short" in world.aws.failed_at, "it was tried"
        sizes = world.sizes()
        assert sizes["stocked"] == (2, 2)
        assert sizes["short"][0] == 0

    def world_of(clock, groups, **settings):
        return AwsWorld(clock, groups, server=server, stock_out=("short",), **settings)

    world = play(story, ("short", "stocked"), world_of=world_of, expander="least-nodes")
    assert replayed(world) > 10
