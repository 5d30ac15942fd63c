"""Many groups of fifteen machines: providers over answers that are made once, so that their own time can be measured."""

from __future__ import annotations

import json
import time
from collections import Counter

import msgspec
from tests.clouds.fakes import alibaba, azure, gce, tencent
from tests.clouds.fakes.direct import asked_of
from tests.clouds.fakes.fleet import Clock, Fleet
from tests.conformance.clouds_aws_world import PretendedAws

from kubetide.clouds.alibaba.api import AlibabaApi
from kubetide.clouds.alibaba.api import refusal as alibaba_refusal
from kubetide.clouds.alibaba.cloud import AlibabaCloud
from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.cloud import AwsCloud
from kubetide.clouds.aws.types import InstanceTypes
from kubetide.clouds.azure.api import ComputeApi as AzureApi
from kubetide.clouds.azure.api import Subscription
from kubetide.clouds.azure.api import refusal as azure_refusal
from kubetide.clouds.azure.cloud import AzureCloud
from kubetide.clouds.azure.settings import AzureSettings
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.rest import Response, Rest
from kubetide.clouds.gce.api import ComputeApi as GceApi
from kubetide.clouds.gce.api import refusal as gce_refusal
from kubetide.clouds.gce.cloud import GceCloud
from kubetide.clouds.gce.settings import GceSettings, parse_discoveries
from kubetide.clouds.tencent.api import TencentApi
from kubetide.clouds.tencent.api import refusal as tencent_refusal
from kubetide.clouds.tencent.cloud import TencentCloud
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


async def token():
    return "a-token"


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


def gce_cloud(fleet, clock, *, bulk=False):
    answers = Answers(gce.FakeGce(fleet, page=500))
    discovery = parse_discoveries(("mig:namePrefix=g,max=20",))
    settings = GceSettings(project=gce.PROJECT, location=gce.ZONE, discovery=discovery, bulk_listing=bulk)
    api = GceApi(Rest(answers, clock, gce_refusal), clock, token, gce.PROJECT)
    return answers, GceCloud(api, settings, clock)


def gce_cloud_in_bulk(fleet, clock):
    return gce_cloud(fleet, clock, bulk=True)


def azure_cloud(fleet, clock):
    answers = Answers(azure.FakeAzure(fleet, page=500))
    where = Subscription(azure.SUBSCRIPTION, azure.GROUP, "http://azure")
    api = AzureApi(Rest(answers, clock, azure_refusal), clock, token, where)
    return answers, AzureCloud(api, AzureSettings(nodes=nodes_of(fleet)), clock)


def tencent_cloud(fleet, clock):
    async def keys():
        return tencent.KEYS

    answers = Answers(tencent.FakeTencent(fleet, clock, 100))
    rest = Rest(answers, clock, tencent_refusal)
    api = TencentApi(rest, clock, keys, tencent.REGION, endpoint=lambda _service: "http://tencent/")
    return answers, TencentCloud(api, nodes_of(fleet), tencent.REGION, clock)


def alibaba_cloud(fleet, clock):
    async def keys():
        return alibaba.KEYS

    answers = Answers(alibaba.FakeAlibaba(fleet, clock))
    rest = Rest(answers, clock, alibaba_refusal)
    api = AlibabaApi(rest, clock, keys, alibaba.REGION, endpoint=lambda _host: "http://alibaba/")
    return answers, AlibabaCloud(api, nodes_of(fleet), alibaba.REGION, clock)


CLOUDS = {
    "aws": aws_cloud,
    "gce": gce_cloud,
    "gce, in bulk": gce_cloud_in_bulk,
    "azure": azure_cloud,
    "tencent": tencent_cloud,
    "alibaba": alibaba_cloud,
}
