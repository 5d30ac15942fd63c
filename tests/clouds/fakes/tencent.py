"""Tencent Cloud, as its API documentation says: the actions that a provider needs, each request's signature checked."""

from __future__ import annotations

import json

from tests.clouds.fakes.server import Answer, Asked

from kubetide.clouds.tencent.signing import Keys, Stamp, authorization
from kubetide.units.time import Instant, format_rfc3339, minutes, seconds

REGION = "ap-guangzhou"
KEYS = Keys("AKIDEXAMPLE", "a-secret")
_VERSIONS = {"as": "2018-04-19", "cvm": "2017-03-12", "vpc": "2017-03-12"}
_STATES = {"Running": "IN_SERVICE", "Creating": "CREATING", "Deleting": "TERMINATING"}


class Faults:
    """Makes the cloud fail."""

    def __init__(self, tencent):
        self.tencent = tencent

    async def run_out(self, group):
        self.tencent.fleet.sold_out.add(group)

    async def refuse(self, cause):
        codes = {"Throttled": "RequestLimitExceeded", "Permission": "UnauthorizedOperation"}
        self.tencent.refused = codes[cause]

    async def heal(self):
        self.tencent.refused = ""


class FakeTencent:
    """The three APIs over a fleet. ``page`` instances a page at most; ``errors`` are codes to give, by action."""

    def __init__(self, fleet, clock, page=1):
        self.fleet, self.clock, self.page = fleet, clock, page
        self.errors: list[tuple[str, str]] = []
        self.calls: list[str] = []
        self.refused = ""
        self.bodies: list[tuple[str, str, dict]] = []

    def __call__(self, asked: Asked) -> Answer:
        headers, action = asked.headers, asked.headers["x-tc-action"]
        service = headers["host"].partition(".")[0]
        assert asked.method == "POST"
        assert asked.path == "/"
        assert headers["host"] == f"{service}.tencentcloudapi.com"
        assert headers["x-tc-version"] == _VERSIONS[service]
        assert headers["x-tc-region"] == REGION
        self._check_signature(asked, service)
        self.calls.append(action)
        self.bodies.append((service, action, asked.body))
        if self.refused:
            return _answer({"Error": {"Code": self.refused, "Message": self.refused}})
        code = next((code for wanted, code in self.errors if wanted == action), None)
        if code is not None:
            self.errors.remove((action, code))
            return _answer({"Error": {"Code": code, "Message": code}})
        return _answer(getattr(self, f"_{service}_{action}")(asked.body))

    def _check_signature(self, asked, service):
        stamped = Instant(int(asked.headers["x-tc-timestamp"]) * seconds(1))
        assert abs(self.clock.now() - stamped) < minutes(5), "the request is too old"
        signed = {
            "content-type": asked.headers["content-type"],
            "host": asked.headers["host"],
            "x-tc-action": asked.headers["x-tc-action"],
        }
        stamp = Stamp(stamped // seconds(1), format_rfc3339(stamped)[:10])
        body = json.dumps(asked.body, separators=(",", ":"), ensure_ascii=False).encode()
        assert asked.headers["authorization"] == authorization(KEYS, stamp, service, signed, body)

    def _as_DescribeAutoScalingGroups(self, given):
        assert given.keys() <= {"AutoScalingGroupIds", "Limit", "Offset"}
        assert len(given["AutoScalingGroupIds"]) <= given["Limit"] <= 100
        found = [self._group(name) for name in given["AutoScalingGroupIds"] if name in self.fleet.groups]
        return {"TotalCount": len(found), "AutoScalingGroupSet": found}

    def _as_DescribeLaunchConfigurations(self, given):
        assert given.keys() <= {"LaunchConfigurationIds", "Limit", "Offset"}
        found = [
            {"LaunchConfigurationId": one, "InstanceType": "S5.LARGE8", "InstanceChargeType": "SPOTPAID"}
            for one in given["LaunchConfigurationIds"]
        ]
        return {"TotalCount": len(found), "LaunchConfigurationSet": found}

    def _as_DescribeAutoScalingInstances(self, given):
        assert given.keys() == {"Filters", "Limit", "Offset"}
        assert given["Limit"] <= 100
        (wanted,) = given["Filters"]
        assert wanted["Name"] == "auto-scaling-group-id"
        (name,) = wanted["Values"]
        listed = [
            {
                "AutoScalingGroupId": name,
                "InstanceId": f"ins-{one.name}",
                "LifeCycleState": _STATES[self.fleet.state(one)],
                "Zone": "ap-guangzhou-3",
            }
            for one in self.fleet.machines(name)
        ]
        start = given["Offset"]
        return {"TotalCount": len(listed), "AutoScalingInstanceSet": listed[start : start + self.page]}

    def _as_DescribeAutoScalingActivities(self, given):
        assert given.keys() == {"Filters", "StartTime", "Limit"}
        group, status = given["Filters"]
        assert group["Name"] == "auto-scaling-group-id"
        assert status == {"Name": "activity-status-code", "Values": ["FAILED", "PARTIALLY_SUCCESSFUL"]}
        if group["Values"][0] not in self.fleet.sold_out:
            return {"TotalCount": 0, "ActivitySet": []}
        detail = {"Code": "ResourceInsufficient.SpecifiedInstanceType", "Message": "none left"}
        activity = {"StatusCode": "FAILED", "StatusMessage": "", "DetailedStatusMessageSet": [detail]}
        return {"TotalCount": 1, "ActivitySet": [activity]}

    def _as_ModifyAutoScalingGroup(self, given):
        assert given.keys() == {"AutoScalingGroupId", "DesiredCapacity"}
        self.fleet.set_target(given["AutoScalingGroupId"], given["DesiredCapacity"])
        return {}

    def _as_RemoveInstances(self, given):
        assert given.keys() == {"AutoScalingGroupId", "InstanceIds"}
        for one in given["InstanceIds"]:
            ended = self.fleet.end(given["AutoScalingGroupId"], one.removeprefix("ins-"))
            assert ended, f"{one} is not in service"
        return {"ActivityId": "asa-1"}

    def _cvm_DescribeInstanceTypeConfigs(self, given):
        assert given["Filters"][0]["Name"] == "instance-type"
        return {"InstanceTypeConfigSet": [{"InstanceType": "S5.LARGE8", "CPU": 4, "Memory": 8, "GPU": 0}]}

    def _cvm_DescribeZones(self, _given):
        return {"TotalCount": 1, "ZoneSet": [{"Zone": "ap-guangzhou-3", "ZoneId": "100003"}]}

    def _vpc_DescribeSubnets(self, given):
        return {"SubnetSet": [{"SubnetId": given["SubnetIds"][0], "Zone": "ap-guangzhou-3"}]}

    def _group(self, name):
        return {
            "AutoScalingGroupId": name,
            "LaunchConfigurationId": f"asc-{name}",
            "DesiredCapacity": self.fleet.groups[name].target,
            "SubnetIdSet": ["subnet-1"],
            "Tags": [{"Key": "k8s.io/cluster-autoscaler/node-template/label/team", "Value": "shop"}],
        }


def _answer(body):
    return Answer({"Response": {**body, "RequestId": "r"}})
