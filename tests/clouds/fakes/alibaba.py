"""Alibaba Cloud, as its API documentation says: the actions that a provider needs, each request's signature checked."""

from __future__ import annotations

from tests.clouds.fakes.server import Answer, Asked

from kubetide.clouds.alibaba.signing import Call, Keys, signed_headers
from kubetide.units.time import format_rfc3339, minutes, parse_rfc3339

REGION = "cn-hangzhou"
KEYS = Keys("an-id", "a-secret", "a-token")
_VERSIONS = {"ess": "2014-08-28", "ecs": "2014-05-26"}
_STATES = {"Running": "InService", "Creating": "Pending", "Deleting": "Removing"}


class Faults:
    """Makes the cloud fail."""

    def __init__(self, alibaba):
        self.alibaba = alibaba

    async def run_out(self, group):
        self.alibaba.fleet.sold_out.add(group)

    async def refuse(self, cause):
        self.alibaba.refused = {"Throttled": "Throttling.User", "Permission": "Forbidden.RAM"}[cause]

    async def heal(self):
        self.alibaba.refused = ""


class FakeAlibaba:
    """The two APIs over a fleet; ``errors`` are (action, code, status) to give. ``desired`` is EnableDesiredCapacity."""

    def __init__(self, fleet, clock, *, desired=True):
        self.fleet, self.clock, self.desired = fleet, clock, desired
        self.errors: list[tuple[str, str, int]] = []
        self.calls: list[str] = []
        self.nonces: set[str] = set()
        self.refused = ""

    def __call__(self, asked: Asked) -> Answer:
        headers, action = asked.headers, asked.headers["x-acs-action"]
        service = headers["host"].partition(".")[0]
        assert asked.method == "POST"
        assert headers["host"] == f"{service}.{REGION}.aliyuncs.com"
        assert headers["x-acs-version"] == _VERSIONS[service]
        assert headers["x-acs-signature-nonce"] not in self.nonces
        self.nonces.add(headers["x-acs-signature-nonce"])
        self._check_signature(asked)
        assert asked.query["RegionId"] == REGION
        self.calls.append(action)
        if self.refused:
            return Answer({"Code": self.refused, "Message": self.refused, "RequestId": "r"}, 400)
        for error in self.errors:
            if error[0] == action:
                self.errors.remove(error)
                return Answer({"Code": error[1], "Message": error[1], "RequestId": "r"}, error[2])
        given = {key: value for key, value in asked.query.items() if key != "RegionId"}
        return Answer(getattr(self, f"_{action}")(given))

    def _check_signature(self, asked):
        headers = asked.headers
        age = self.clock.now() - parse_rfc3339(headers["x-acs-date"])
        assert abs(age) < minutes(15), "the request is too old"
        call = Call(
            headers["x-acs-action"],
            headers["x-acs-version"],
            headers["host"],
            headers["x-acs-date"],
            headers["x-acs-signature-nonce"],
        )
        assert headers["authorization"] == signed_headers(KEYS, call, asked.query)["Authorization"]

    def _DescribeScalingGroups(self, given):
        wanted = [value for key, value in given.items() if key.startswith("ScalingGroupId.")]
        assert len(wanted) <= int(given.get("PageSize", "10"))
        found = [self._group(name) for name in wanted if name in self.fleet.groups]
        return {"TotalCount": len(found), "ScalingGroups": {"ScalingGroup": found}}

    def _DescribeScalingConfigurations(self, given):
        found = {
            "ScalingConfigurationId": given["ScalingConfigurationId.1"],
            "InstanceType": "ecs.g6.large",
            "SpotStrategy": "SpotAsPriceGo",
            "Tags": {"Tag": [{"Key": "team", "Value": "shop"}]},
        }
        return {"TotalCount": 1, "ScalingConfigurations": {"ScalingConfiguration": [found]}}

    def _DescribeScalingInstances(self, given):
        assert given.keys() == {"ScalingGroupId", "PageSize", "PageNumber"}
        size, name = int(given["PageSize"]), given["ScalingGroupId"]
        assert size <= 50
        listed = [
            {
                "ScalingGroupId": name,
                "InstanceId": f"i-{one.name}",
                "LifecycleState": _STATES[self.fleet.state(one)],
            }
            for one in self.fleet.machines(name)
        ]
        start = size * (int(given["PageNumber"]) - 1)
        return {
            "TotalCount": len(listed),
            "ScalingInstances": {"ScalingInstance": listed[start : start + size]},
        }

    def _DescribeInstanceTypes(self, given):
        types = [
            {"InstanceTypeId": "ecs.c6.large", "CpuCoreCount": 2, "MemorySize": 4.0, "GPUAmount": 0},
            {"InstanceTypeId": "ecs.g6.large", "CpuCoreCount": 2, "MemorySize": 8.0, "GPUAmount": 0},
        ]
        if "NextToken" not in given:
            return {"InstanceTypes": {"InstanceType": types[:1]}, "NextToken": "more"}
        return {"InstanceTypes": {"InstanceType": types[1:]}, "NextToken": ""}

    def _DescribeScalingActivities(self, given):
        assert given.keys() == {"ScalingGroupId", "PageSize"}
        activities = []
        if given["ScalingGroupId"] in self.fleet.sold_out:
            activities = [
                {
                    "StatusCode": "Failed",
                    "StatusMessage": "Fail to create instances",
                    "StartTime": format_rfc3339(self.clock.now())[:16] + "Z",
                    "ErrorCode": "OperationDenied.NoStock",
                    "ErrorMessage": "none left",
                }
            ]
        return {"TotalCount": len(activities), "ScalingActivities": {"ScalingActivity": activities}}

    def _ScaleWithAdjustment(self, given):
        assert given["AdjustmentType"] == "TotalCapacity"
        assert given["SyncActivity"] == "true"
        self.fleet.set_target(given["ScalingGroupId"], int(given["AdjustmentValue"]))
        return {"ScalingActivityId": "asa-1"}

    def _RemoveInstances(self, given):
        assert given.keys() == {"ScalingGroupId", "InstanceId.1"}
        ended = self.fleet.end(given["ScalingGroupId"], given["InstanceId.1"].removeprefix("i-"))
        assert ended, f"{given['InstanceId.1']} is not in service"
        return {"ScalingActivityId": "asa-2"}

    def _group(self, name):
        target, living = self.fleet.groups[name].target, self.fleet.living(name)
        running = sum(self.fleet.state(one) == "Running" for one in living)
        return {
            "ScalingGroupId": name,
            "ActiveScalingConfigurationId": f"asc-{name}",
            "EnableDesiredCapacity": self.desired,
            "DesiredCapacity": target if self.desired else 0,
            "ActiveCapacity": running,
            "PendingCapacity": target - running,
            "InitCapacity": 0,
        }
