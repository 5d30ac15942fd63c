"""AWS behind its port of calls, as the battery of faults needs it: requests stand for calls of boto3."""

from __future__ import annotations

import json

from tests.clouds.fakes.server import Answer
from tests.clouds.vendors.vendor import Vendor

from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.cloud import AwsCloud
from kubetide.clouds.aws.errors import api_error
from kubetide.clouds.aws.types import InstanceTypes
from kubetide.clouds.common.rest import Request
from kubetide.ports.errors import CloudError

ZONE = "eu-west-1a"
_STATES = {"Running": "InService", "Creating": "Pending", "Deleting": "Terminating"}


class FakeAws:
    """Auto Scaling over a fleet; lists of groups have ``page`` of them a page."""

    def __init__(self, fleet, page):
        self.fleet, self.page = fleet, page

    def __call__(self, asked):
        return getattr(self, f"_{asked.headers['x-amz-action']}")(asked.body)

    def _DescribeAutoScalingGroups(self, given):
        assert len(given["AutoScalingGroupNames"]) <= given["MaxRecords"]
        start = int(given.get("NextToken", "0"))
        names = [one for one in given["AutoScalingGroupNames"] if one in self.fleet.groups]
        more = {"NextToken": str(start + self.page)} if start + self.page < len(names) else {}
        found = [self._group(one) for one in names[start : start + self.page]]
        return Answer({"AutoScalingGroups": found, **more})

    def _group(self, name):
        members = [
            {
                "InstanceId": f"i-{one.name}",
                "AvailabilityZone": ZONE,
                "LifecycleState": _STATES[self.fleet.state(one)],
            }
            for one in self.fleet.machines(name)
        ]
        return {
            "AutoScalingGroupName": name,
            "MinSize": 0,
            "MaxSize": 9,
            "DesiredCapacity": self.fleet.groups[name].target,
            "AvailabilityZones": [ZONE],
            "Instances": members,
            "Tags": [],
            "LaunchConfigurationName": "lc",
        }

    def _DescribeLaunchConfigurations(self, given):
        names = given["LaunchConfigurationNames"]
        found = [{"LaunchConfigurationName": one, "InstanceType": "m5.large"} for one in names]
        return Answer({"LaunchConfigurations": found})

    def _DescribeScalingActivities(self, _given):
        return Answer({"Activities": []})

    def _SetDesiredCapacity(self, given):
        assert not given["HonorCooldown"]
        self.fleet.set_target(given["AutoScalingGroupName"], given["DesiredCapacity"])
        return Answer({})

    def _TerminateInstanceInAutoScalingGroup(self, given):
        assert given["ShouldDecrementDesiredCapacity"]
        name = given["InstanceId"].removeprefix("i-")
        if any(self.fleet.end(one, name) for one in self.fleet.groups):
            return Answer({})
        return Answer({"Code": "ValidationError", "Message": f"{name} is not in service"}, 400)


class Aws(Vendor):
    """Auto Scaling groups; what boto3 makes of an answer has the types of its model, or is not there."""

    def make_fake(self, page):
        return FakeAws(self.fleet, page)

    def connect(self):
        """Return a provider that knows nothing yet."""
        return self.provider(self.address, self.nodes)

    def provider(self, address, nodes):
        async def call(operation, parameters):
            headers, body = {"X-Amz-Action": operation}, json.dumps(parameters).encode()
            answer = await self.send(Request("POST", f"{address}/", {}, headers, body))
            try:
                found = json.loads(answer.body)
            except (ValueError, RecursionError) as error:
                code = "ResponseParserError"
                raise CloudError(f"{operation}: {error}", error_code=code, may_be_done=True) from error
            if answer.status >= 300:
                raise api_error(operation, found.get("Code") or str(answer.status), str(found))
            return found

        return AwsCloud(AwsApi(call), self.clock, groups=nodes, types=InstanceTypes(None))

    def node_id(self, _group, machine):
        return f"aws:///{ZONE}/i-{machine}"
