"""The node loop on an embedded cluster whose machines are of Auto Scaling groups, on a server of AWS's protocol."""

from __future__ import annotations

from contextlib import suppress

import pytest

pytest.importorskip("moto", reason="moto is a development dependency")

from tests.clouds.aws.moto_aws import CREDENTIALS, SlowAws, make_group, moto_server
from tests.nodes.live import FREE, SHORT, World, play, replayed

from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.cloud import AwsCloud
from kubetide.clouds.aws.types import InstanceTypes
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.nodes.controller import NodesController
from kubetide.nodes.settings import Settings
from kubetide.objects.kinds import NODES
from kubetide.ports.errors import NotFound
from kubetide.runtime.guard import guarded_cloud, guarded_cluster
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds

pytestmark = pytest.mark.slow


class AtOnce:
    """Calls without a thread, which virtual time does not have."""

    def __init__(self, client):
        self.client = client

    async def __call__(self, operation, parameters):
        return self.client._call(operation, parameters)


class AwsWorld(World):
    """A world whose node loop scales groups of AWS; each of their instances joins as a node once it is up."""

    def __init__(self, clock, groups, *, server, stock_out=(), **settings):
        super().__init__(clock, ())
        self.server, self.names = server, groups
        self.aws = SlowAws(AtOnce(server.client), clock, boot_s=60, stock_out=set(stock_out))
        specs = [NodeSpec(name, 0, 9) for name in groups]
        self.aws_cloud = AwsCloud(AwsApi(self.aws), clock, groups=specs, types=InstanceTypes(None))
        self.controller = NodesController(
            guarded_cluster(self.cluster, FREE),
            guarded_cloud(self.aws_cloud, FREE),
            clock,
            self.recorder,
            self.board,
            Settings(**settings),
            seed=1,
            caches=self.caches,
        )
        self.cloud.run = self.join_and_leave

    async def join_and_leave(self):
        """Keep the nodes those that the groups' instances make, as kubelets and the cloud's controller do."""
        here = set()
        while True:
            seen = {}
            api = AwsApi(self.aws)
            for group in await api.groups_by_name(self.names):
                for one in group["Instances"]:
                    seen[one["InstanceId"]] = group["AutoScalingGroupName"], one["AvailabilityZone"]
            for name in sorted(seen.keys() - here):
                group, zone = seen[name]
                extra = {"spec": {"providerID": f"aws:///{zone}/{name}"}}
                await self.cluster.create(
                    NODES, builders.node(name, cpu=self.cpu(group), memory="7Gi", extra=extra)
                )
            for name in sorted(here - seen.keys()):
                with suppress(NotFound):
                    await self.cluster.delete(NODES, name)
            here = set(seen)
            await self.clock.sleep(seconds(10))

    def cpu(self, group):
        return "2"

    def sizes(self):
        found = self.server.asg.describe_auto_scaling_groups(AutoScalingGroupNames=list(self.names))
        return {
            one["AutoScalingGroupName"]: (one["DesiredCapacity"], len(one["Instances"]))
            for one in found["AutoScalingGroups"]
        }


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        with moto_server() as found:
            yield found


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
        gone = sorted(before - set(world.nodes))
        assert sorted(world.aws.ended) == [(name, True) for name in gone], (
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
