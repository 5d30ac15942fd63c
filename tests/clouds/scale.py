"""Many groups of fifteen machines: providers over answers that are made once, so that their own time can be measured."""

from __future__ import annotations

import json
import time
from collections import Counter

import msgspec
from tests.clouds.fakes.direct import asked_of
from tests.clouds.fakes.fleet import Clock, Fleet
from tests.clouds.vendors import Alibaba, Azure, Gce, Tencent
from tests.conformance.clouds_aws_world import PretendedAws

from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.cloud import AwsCloud
from kubetide.clouds.aws.types import InstanceTypes
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.rest import Response
from kubetide.units.time import minutes

MACHINES = 15
ACTIONS = ("x-tc-action", "x-acs-action")
"""Headers in which the call is named, where the path does not name it."""


class Answers:
    """A server's answers, each made once, so that only the provider's own time is measured.

    Attributes:
        calls: How often each call was made.
        read: The answers that were given since ``calls`` was empty.
    """

    def __init__(self, server):
        self._server, self._made, self.calls, self.read = server, {}, Counter(), []

    def begin(self):
        self.calls.clear()
        self.read.clear()

    async def __call__(self, request):
        asked = asked_of(request)
        action = next(
            (asked.headers[name] for name in ACTIONS if name in asked.headers), asked.path.rpartition("/")[2]
        )
        self.calls[action] += 1
        key = (request.method, request.url, tuple(sorted(request.query.items())), request.body, action)
        if key not in self._made:
            self._made[key] = json.dumps(self._server(asked).body).encode()
        self.read.append(self._made[key])
        return Response(200, {}, self._made[key])


class Counted:
    """Calls of AWS, which are answered without a server."""

    def __init__(self, aws):
        self._aws, self.calls, self.read = aws, Counter(), []

    def begin(self):
        self.calls.clear()

    async def __call__(self, operation, parameters):
        self.calls[operation] += 1
        return await self._aws(operation, parameters)


class Minute:
    """The result of one refresh at rest.

    Attributes:
        cpu_s: CPU time of this process.
        floor_s: The same of reading all answers as plain JSON; 0 where there are no bytes.
        sizes: How many instances each group has.
        calls: Of the API, by name.
    """

    def __init__(self, cpu_s, floor_s, groups, calls):
        self.cpu_s, self.floor_s, self.calls = cpu_s, floor_s, dict(calls)
        self.sizes = [len(group.instances) for group in groups]


async def refreshed(make, groups):
    """Refresh that many groups three times, a minute apart, and return the last Minute.

    ``make(fleet, clock)`` returns Answers and Cloud.
    """
    clock = Clock()
    fleet = Fleet(clock, shown_s=0)
    for number in range(groups):
        fleet.add(f"g{number:04}", running=MACHINES)
    answers, cloud = make(fleet, clock)
    for _ in range(2):
        await cloud.refresh()
        await clock.sleep(minutes(1))
    answers.begin()
    begun = time.process_time()
    found = await cloud.refresh()
    done = time.process_time()
    for answer in answers.read:
        msgspec.json.decode(answer)
    floor_s = time.process_time() - done if answers.read else 0.0
    return Minute(done - begun, floor_s, found, answers.calls)


def nodes_of(fleet):
    """Return the flags ``--nodes`` of all groups."""
    return tuple(NodeSpec(name, 0, 20) for name in fleet.groups)


def aws_cloud(fleet, clock):
    aws = PretendedAws(clock)
    groups = [
        {
            "AutoScalingGroupName": name,
            "MinSize": 0,
            "MaxSize": 20,
            "DesiredCapacity": MACHINES,
            "AvailabilityZones": ["eu-west-1a"],
            "Instances": [
                {
                    "InstanceId": f"i-{machine.name}",
                    "AvailabilityZone": "eu-west-1a",
                    "LifecycleState": "InService",
                    "HealthStatus": "Healthy",
                }
                for machine in fleet.machines(name)
            ],
            "Tags": [{"Key": "k8s.io/cluster-autoscaler/node-template/label/pool", "Value": name}],
            "LaunchConfigurationName": "lc",
        }
        for name in fleet.groups
    ]
    configurations = [{"LaunchConfigurationName": "lc", "InstanceType": "m5.large"}]
    aws.set_world({"groups": groups, "launch_configurations": configurations})
    answers = Counted(aws)
    return answers, AwsCloud(
        AwsApi(answers), clock, groups=nodes_of(fleet), discovery=(), types=InstanceTypes(AwsApi(answers))
    )


def cloud_of(vendor, **how):
    """Return what makes answers and provider of a vendor; ``how`` as of the vendor."""

    def make(fleet, _clock):
        here = vendor(fleet=fleet, page=500, **how).named(*nodes_of(fleet))
        here.send = Answers(here.fake)
        return here.send, here.connect()

    return make


FOUND = {"discovery": ("mig:namePrefix=g,max=20",)}
CLOUDS = {
    "aws": aws_cloud,
    "gce": cloud_of(Gce, **FOUND),
    "gce, in bulk": cloud_of(Gce, **FOUND, bulk=True),
    "azure": cloud_of(Azure),
    "tencent": cloud_of(Tencent),
    "alibaba": cloud_of(Alibaba),
}
