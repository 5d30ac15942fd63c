"""Auto Scaling groups of AWS's protocol and nodes of a real control plane: kwok's nodes represent the instances."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

pytest.importorskip("moto", reason="moto is a development dependency")

from tests.clouds.aws.moto_aws import CREDENTIALS, REGION, make_group, moto_server
from tests.plane.kwok import skip_without_kwok
from tests.plane.towns import SOON, kubetide_run, town

from kubetide.objects.kinds import DEPLOYMENTS, NODES
from kubetide.ports.errors import NotFound
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import milliseconds

pytestmark = pytest.mark.slow

GROUP = "workers"
FLAGS = ("--act", "--controllers=nodes", *SOON)
CLOUD = ("--cloud-provider=aws", f"--nodes=0:5:{GROUP}")
LOOK = milliseconds(500)


@pytest.fixture
def aws(monkeypatch):
    """A server with one group of machines of two cores, where AWS's own variables lead."""
    skip_without_kwok()
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with moto_server() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        monkeypatch.setenv("AWS_REGION", REGION)
        make_group(server, GROUP, max_size=5)
        yield server


class Instances:
    """The group's instances: each joins as a node of its name, and leaves when it ends.

    Attributes:
        sizes: The desired and the present numbers of instances.
        joined: The names of all that ever joined.
    """

    def __init__(self, place, server):
        self.place, self.server = place, server
        self.sizes = (0, 0)
        self.joined: set[str] = set()

    def group(self):
        found = self.server.asg.describe_auto_scaling_groups(AutoScalingGroupNames=[GROUP])
        return found["AutoScalingGroups"][0]

    def states(self):
        """Return the state of every instance that there ever was, by its id."""
        found = self.server.ec2.describe_instances()["Reservations"]
        return {one["InstanceId"]: one["State"]["Name"] for each in found for one in each["Instances"]}

    async def run(self):
        cluster, here = self.place.cluster, set()
        while True:
            group = await asyncio.to_thread(self.group)
            zones = {one["InstanceId"]: one["AvailabilityZone"] for one in group["Instances"]}
            self.sizes = (group["DesiredCapacity"], len(zones))
            for name in sorted(zones.keys() - here):
                extra = {"spec": {"providerID": f"aws:///{zones[name]}/{name}"}}
                await cluster.create(NODES, builders.node(name, cpu="2", memory="7Gi", extra=extra))
                self.joined.add(name)
            for name in sorted(here - zones.keys()):
                with suppress(NotFound):
                    await cluster.delete(NODES, name)
            here = set(zones)
            await self.place.clock.sleep(LOOK)


@asynccontextmanager
async def instances_of(place, server):
    found = Instances(place, server)
    task = asyncio.create_task(found.run())
    try:
        yield found
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_the_group_follows_the_load(audited, aws, tmp_path):
    """From zero to what the pods need, and back: the instances of drained nodes end, and the group gets smaller by them.

    Most of it is the minute after which the provider asks AWS again, as upstream's.
    """

    async def run(clock):
        async with (
            town(audited, clock, tmp_path, by_kwok=True) as place,
            instances_of(place, aws) as instances,
        ):
            cluster, home = place.cluster, place.home
            body = builders.deployment("web", replicas=3, cpu="1500m")
            await cluster.create(DEPLOYMENTS, body, namespace=home)
            async with kubetide_run(place, "kubetide-on-aws", *FLAGS, cloud=CLOUD):
                await place.until("three pods run", lambda: len(place.running("web")) == 3)
                assert instances.sizes == (3, 3)
                await cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}}, namespace=home)
                await place.until("one machine is left", lambda: instances.sizes == (1, 1))
                await place.until("one node is left", lambda: len(place.nodes.objects) == 1)
            [(_, left)] = place.nodes.objects
            [pod] = place.running("web")
            assert pod.spec.node_name == left
            assert len(instances.joined) == 3
            ended = {name for name, state in instances.states().items() if state == "terminated"}
            assert ended == instances.joined - {left}

    run_real(run)
