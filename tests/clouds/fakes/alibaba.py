"""Alibaba Cloud, as its API documentation says: the actions that a provider needs, each request's signature checked."""

from __future__ import annotations

import json
import re

from tests.clouds.fakes.server import Answer, Asked

from kubetide.clouds.alibaba.signing import Call, signed_headers
from kubetide.clouds.common.tokens import Keys
from kubetide.units.time import format_rfc3339, minutes, parse_rfc3339

REGION = "cn-hangzhou"
KEYS = Keys("an-id", "a-secret", "a-token")
_VERSIONS = {"ess": "2014-08-28", "ecs": "2014-05-26", "vpc": "2016-04-28"}
_HOSTS = {
    "ess": "ess.aliyuncs.com",
    "ecs": f"ecs.{REGION}.aliyuncs.com",
    "vpc": f"vpc.{REGION}.aliyuncs.com",
}
_STATES = {"Running": "InService", "Creating": "Pending", "Deleting": "Removing"}


class FakeAlibaba:
    """The APIs over a fleet; ``errors`` are (action, code, status) to give. ``desired`` is EnableDesiredCapacity.

    ``answers`` are given in the place of others, by action; ``types`` are further types of machines.

    ``groups`` are what single groups have besides the rest, ``configurations`` those that are not the usual one, both by
    id; ``created`` holds the queries that made them. Tags are known late, unless ``knows_tags``. ``rules``, ``alarms`` and
    ``tasks`` are those of the region.
    """

    def __init__(self, fleet, clock, *, desired=True):
        self.fleet, self.clock, self.desired = fleet, clock, desired
        self.errors: list[tuple[str, str, int]] = []
        self.answers: dict[str, object] = {}
        self.types: list[dict] = []
        self.calls: list[str] = []
        self.nonces: set[str] = set()
        self.refused = None
        self.groups: dict[str, dict] = {}
        self.configurations: dict[str, dict] = {}
        self.created: dict[str, dict] = {}
        self.knows_tags = True
        self.rules: list[dict] = []
        self.alarms: list[dict] = []
        self.tasks: list[dict] = []

    def __call__(self, asked: Asked) -> Answer:
        headers, action = asked.headers, asked.headers["x-acs-action"]
        service = headers["host"].partition(".")[0]
        assert asked.method == "POST"
        assert headers["host"] == _HOSTS[service]
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
        if action in self.answers:
            return Answer(self.answers[action])
        given = {key: value for key, value in asked.query.items() if key != "RegionId"}
        found = getattr(self, f"_{action}")(given)
        return Answer(found, 400 if "Code" in found else 200)

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
        if "Tag.1.Key" in given:
            assert given.keys() == {"Tag.1.Key", "Tag.1.Value", "PageSize", "PageNumber"}
            tag = given["Tag.1.Key"], given["Tag.1.Value"]
            there = [
                name for name in sorted(self.fleet.groups) if self.knows_tags and tag in self._tags(name)
            ]
            size = int(given["PageSize"])
            start = size * (int(given["PageNumber"]) - 1)
            found = [self._group(name) for name in there[start : start + size]]
            return {"TotalCount": len(there), "ScalingGroups": {"ScalingGroup": found}}
        requested = [value for key, value in given.items() if key.startswith("ScalingGroupId.")]
        assert len(requested) <= int(given.get("PageSize", "10"))
        found = [self._group(name) for name in requested if name in self.fleet.groups]
        return {"TotalCount": len(found), "ScalingGroups": {"ScalingGroup": found}}

    def _DescribeScalingConfigurations(self, given):
        usual = {
            "InstanceType": "ecs.g6.large",
            "SpotStrategy": "SpotAsPriceGo",
            "Tags": {"Tag": [{"Key": "team", "Value": "shop"}]},
        }
        requested = given["ScalingConfigurationId.1"]
        found = {"ScalingConfigurationId": requested, **self.configurations.get(requested, usual)}
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
            {"InstanceTypeId": "ecs.g6.4xlarge", "CpuCoreCount": 16, "MemorySize": 64.0, "GPUAmount": 0},
            {"InstanceTypeId": "ecs.g8y.large", "CpuCoreCount": 2, "MemorySize": 8.0, "GPUAmount": 0},
        ]
        for one in types:
            one["CpuArchitecture"] = "ARM" if one["InstanceTypeId"].startswith("ecs.g8y.") else "X86"
        types += self.types
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

    def _DescribeScalingRules(self, given):
        return _paged("ScalingRules", "ScalingRule", self.rules, given)

    def _DescribeAlarms(self, given):
        return _paged("AlarmList", "Alarm", self.alarms, given)

    def _DescribeScheduledTasks(self, given):
        return _paged("ScheduledTasks", "ScheduledTask", self.tasks, given)

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

    def _DescribeVSwitches(self, given):
        assert given.keys() == {"VSwitchId"}
        zone = f"{REGION}-{given['VSwitchId'][-1]}"
        return {
            "TotalCount": 1,
            "VSwitches": {"VSwitch": [{"VSwitchId": given["VSwitchId"], "ZoneId": zone}]},
        }

    def _CreateScalingGroup(self, given):
        unknown = [key for key in given if not _GROUP_KEY.fullmatch(key)]
        assert not unknown, unknown
        name = given["ScalingGroupName"]
        assert re.fullmatch(r"[A-Za-z0-9][-_.A-Za-z0-9]{1,63}", name)
        if any(self._group(one)["ScalingGroupName"] == name for one in self.fleet.groups):
            return _refused("InvalidScalingGroupName.Duplicate")
        made = f"asg-made{len(self.calls)}"
        self.created[made] = given
        self.groups[made] = {
            "ScalingGroupName": name,
            "ActiveScalingConfigurationId": "",
            "EnableDesiredCapacity": "DesiredCapacity" in given,
            "LifecycleState": "Inactive",
            "MaxSize": int(given["MaxSize"]),
            "VSwitchIds": {"VSwitchId": [one for key, one in given.items() if key.startswith("VSwitchIds.")]},
        }
        self.fleet.add(made)
        return {"ScalingGroupId": made}

    def _CreateScalingConfiguration(self, given):
        unknown = [key for key in given if not _CONFIGURATION_KEY.fullmatch(key)]
        assert not unknown, unknown
        assert given["ScalingGroupId"] in self.fleet.groups
        assert ("ImageId" in given) != ("ImageFamily" in given)
        assert ("SecurityGroupId" in given) != ("SecurityGroupIds.1" in given)
        made = f"asc-made{len(self.calls)}"
        self.created[made] = given
        tags = [{"Key": key, "Value": value} for key, value in json.loads(given["Tags"]).items()]
        shown = {key: given[key] for key in ("InstanceType", "SpotStrategy", "UserData") if key in given}
        self.configurations[made] = {**shown, "Tags": {"Tag": tags}}
        return {"ScalingConfigurationId": made}

    def _EnableScalingGroup(self, given):
        assert given.keys() == {"ScalingGroupId", "ActiveScalingConfigurationId"}
        assert given["ActiveScalingConfigurationId"] in self.configurations
        self.groups[given["ScalingGroupId"]] |= {
            "ActiveScalingConfigurationId": given["ActiveScalingConfigurationId"],
            "LifecycleState": "Active",
        }
        return {}

    def _DeleteScalingGroup(self, given):
        assert given.keys() == {"ScalingGroupId", "ForceDelete"}
        assert given["ForceDelete"] == "false"
        name = given["ScalingGroupId"]
        if self.fleet.machines(name):
            return _refused("InstanceInUse")
        del self.fleet.groups[name]
        self.groups.pop(name, None)
        for one, made in self.created.items():
            if made.get("ScalingGroupId") == name:
                self.configurations.pop(one, None)
        return {}

    def _tags(self, name):
        given = self.created.get(name, {})
        return {
            (value, given[key.replace(".Key", ".Value")])
            for key, value in given.items()
            if re.fullmatch(r"Tag\.\d+\.Key", key)
        }

    def _group(self, name):
        target, living = self.fleet.groups[name].target, self.fleet.living(name)
        running = sum(self.fleet.state(one) == "Running" for one in living)
        usual = {
            "ScalingGroupName": name,
            "ActiveScalingConfigurationId": f"asc-{name}",
            "EnableDesiredCapacity": self.desired,
        }
        given = usual | self.groups.get(name, {})
        assert given.get("LifecycleState", "Active") == "Active" or not target, "it makes no machines yet"
        return given | {
            "ScalingGroupId": name,
            "DesiredCapacity": target if given["EnableDesiredCapacity"] else 0,
            "ActiveCapacity": running,
            "PendingCapacity": target - running,
            "InitCapacity": 0,
        }


_GROUP_KEY = re.compile(
    r"ScalingGroupName|MinSize|MaxSize|DesiredCapacity|DefaultCooldown|HealthCheckType|MaxInstanceLifetime|MultiAZPolicy"
    r"|ScalingPolicy|LoadBalancerIds|RemovalPolicy\.[123]|VSwitchIds\.\d+|Tag\.\d+\.(Key|Value|Propagate)"
    r"|AlbServerGroup\.\d+\.(AlbServerGroupId|Port|Weight)|VServerGroup\.\d+\.LoadBalancerId"
    r"|VServerGroup\.\d+\.VServerGroupAttribute\.\d+\.(VServerGroupId|Port|Weight)|CompensateWithOnDemand"
    r"|OnDemandBaseCapacity|OnDemandPercentageAboveBaseCapacity|SpotInstancePools|SpotInstanceRemedy"
)
_CONFIGURATION_KEY = re.compile(
    r"ScalingGroupId|ScalingConfigurationName|InstanceType|ImageId|ImageFamily|IoOptimized|SecurityGroupId"
    r"|SecurityGroupIds\.\d+|InternetChargeType|InternetMaxBandwidth(In|Out)|KeyPairName|RamRoleName|UserData|Tags"
    r"|SystemDisk\.(Category|Size|DiskName|Description|PerformanceLevel|Encrypted|KMSKeyId)|SystemDiskCategories\.\d+"
    r"|DataDisk\.\d+\.(Size|Category|Device|DeleteWithInstance|Encrypted|DiskName|PerformanceLevel|SnapshotId|Categories\.\d+)"
    r"|LoadBalancerWeight|PasswordInherit|SpotStrategy|SpotDuration|SpotInterruptionBehavior|Ipv6AddressCount|InstanceName"
    r"|SecurityEnhancementStrategy|DeploymentSetId|ResourceGroupId"
)
"""What a group and a configuration may be created with."""


def _refused(code):
    return {"Code": code, "Message": code, "RequestId": "r"}


def _paged(several, one, entries, given):
    assert given.keys() == {"PageSize", "PageNumber"}
    number, size = int(given["PageNumber"]), int(given["PageSize"])
    assert 1 <= size <= 50
    start = size * (number - 1)
    found = {one: entries[start : start + size]}
    return {"TotalCount": len(entries), "PageNumber": number, "PageSize": size, several: found}
