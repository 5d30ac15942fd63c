"""Tencent Cloud, as its API documentation says: the actions that a provider needs, each request's signature checked."""

from __future__ import annotations

import json
import re

from tests.clouds.fakes.server import Answer, Asked

from kubetide.clouds.common.tokens import Keys
from kubetide.clouds.tencent.signing import Stamp, authorization
from kubetide.units.time import Instant, format_rfc3339, minutes, seconds

REGION = "ap-guangzhou"
KEYS = Keys("AKIDEXAMPLE", "a-secret")
_VERSIONS = {"as": "2018-04-19", "cvm": "2017-03-12", "vpc": "2017-03-12"}
_STATES = {"Running": "IN_SERVICE", "Creating": "CREATING", "Deleting": "TERMINATING"}


class FakeTencent:
    """The three APIs over a fleet.

    ``page`` instances a page at most; ``errors`` are codes to give, by action. ``groups`` are what single groups have
    besides the rest, ``configurations`` those that are not the usual one, both by id. ``answers`` are given in the place of
    others, by action. Tags are known late, unless ``knows_tags``. ``policies`` and ``actions`` are the scaling policies and
    scheduled actions of the region.
    """

    def __init__(self, fleet, clock, page=1):
        self.fleet, self.clock, self.page = fleet, clock, page
        self.errors: list[tuple[str, str]] = []
        self.answers: dict[str, dict] = {}
        self.calls: list[str] = []
        self.refused = None
        self.bodies: list[tuple[str, str, dict]] = []
        self.groups: dict[str, dict] = {}
        self.configurations: dict[str, dict] = {}
        self.knows_tags = True
        self.policies: list[dict] = []
        self.actions: list[dict] = []

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
        code = next((code for failing, code in self.errors if failing == action), None)
        if code is not None:
            self.errors.remove((action, code))
            return _answer({"Error": {"Code": code, "Message": code}})
        if action in self.answers:
            return _answer(self.answers[action])
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
        assert given.keys() <= {"AutoScalingGroupIds", "Filters", "Limit", "Offset"}
        assert not {"AutoScalingGroupIds", "Filters"} <= given.keys()
        if "Filters" in given:
            (filter_,) = given["Filters"]
            assert filter_["Name"] == "tag-key"
            (key,) = filter_["Values"]
            found = [one for one in map(self._group, self.fleet.groups) if _has_tag(one, key)]
            found = found if self.knows_tags else []
            start = given["Offset"]
            return {"TotalCount": len(found), "AutoScalingGroupSet": found[start : start + self.page]}
        assert len(given["AutoScalingGroupIds"]) <= given["Limit"] <= 100
        found = [self._group(name) for name in given["AutoScalingGroupIds"] if name in self.fleet.groups]
        return {"TotalCount": len(found), "AutoScalingGroupSet": found}

    def _as_DescribeLaunchConfigurations(self, given):
        assert given.keys() <= {"LaunchConfigurationIds", "Filters", "Limit", "Offset"}
        if "Filters" in given:
            (filter_,) = given["Filters"]
            assert filter_["Name"] == "launch-configuration-name"
            named = self.configurations.items()
            ids = [one for one, body in named if body["LaunchConfigurationName"] in filter_["Values"]]
        else:
            ids = given["LaunchConfigurationIds"]
        usual = {"InstanceType": "S5.LARGE8", "InstanceChargeType": "SPOTPAID"}
        found = [{"LaunchConfigurationId": one, **self.configurations.get(one, usual)} for one in ids]
        return {"TotalCount": len(found), "LaunchConfigurationSet": found}

    def _as_DescribeAutoScalingInstances(self, given):
        assert given.keys() == {"Filters", "Limit", "Offset"}
        assert given["Limit"] <= 100
        (filter_,) = given["Filters"]
        assert filter_["Name"] == "auto-scaling-group-id"
        (name,) = filter_["Values"]
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

    def _as_DescribeScalingPolicies(self, given):
        return self._of_groups("ScalingPolicySet", self.policies, given)

    def _as_DescribeScheduledActions(self, given):
        return self._of_groups("ScheduledActionSet", self.actions, given)

    def _of_groups(self, key, entries, given):
        assert given.keys() == {"Filters", "Limit", "Offset"}
        assert given["Limit"] <= 100
        (filter_,) = given["Filters"]
        assert filter_["Name"] == "auto-scaling-group-id"
        assert 1 <= len(filter_["Values"]) <= 5
        found = [one for one in entries if one["AutoScalingGroupId"] in filter_["Values"]]
        start = given["Offset"]
        return {"TotalCount": len(found), key: found[start : start + self.page]}

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

    def _as_CreateLaunchConfiguration(self, given):
        unknown = [key for key in given if not _CONFIGURATION_KEY.fullmatch(key)]
        assert not unknown, unknown
        assert ("InstanceType" in given) != ("InstanceTypes" in given)
        assert ("ImageId" in given) != ("ImageFamily" in given)
        assert not _has_null(given)
        name = given["LaunchConfigurationName"]
        assert len(name.encode()) <= 60
        if any(one["LaunchConfigurationName"] == name for one in self.configurations.values()):
            return _refused("InvalidParameterValue.LaunchConfigurationNameDuplicated")
        made = f"asc-made-{len(self.calls)}"
        self.configurations[made] = given
        return {"LaunchConfigurationId": made}

    def _as_CreateAutoScalingGroup(self, given):
        unknown = [key for key in given if not _GROUP_KEY.fullmatch(key)]
        assert not unknown, unknown
        assert not _has_null(given)
        name = given["AutoScalingGroupName"]
        assert len(name.encode()) <= 55
        assert given["LaunchConfigurationId"] in self.configurations
        assert given["MinSize"] <= given["DesiredCapacity"] <= given["MaxSize"]
        assert given["VpcId"]
        assert given["SubnetIds"]
        if any(self._group(one)["AutoScalingGroupName"] == name for one in self.fleet.groups):
            return _refused("InvalidParameterValue.GroupNameDuplicated")
        made = f"asg-made-{len(self.calls)}"
        tags = [{"Key": one["Key"], "Value": one["Value"]} for one in given["Tags"]]
        shown = {"SubnetIdSet": given["SubnetIds"], "Tags": tags}
        self.groups[made] = {**given, **shown}
        self.fleet.add(made, running=given["DesiredCapacity"])
        return {"AutoScalingGroupId": made}

    def _as_DeleteAutoScalingGroup(self, given):
        assert given.keys() == {"AutoScalingGroupId"}
        name = given["AutoScalingGroupId"]
        if self.fleet.machines(name):
            return _refused("ResourceInUse.InstanceInGroup")
        del self.fleet.groups[name]
        self.groups.pop(name, None)
        return {}

    def _as_DeleteLaunchConfiguration(self, given):
        assert given.keys() == {"LaunchConfigurationId"}
        used = {self._group(one)["LaunchConfigurationId"] for one in self.fleet.groups}
        if given["LaunchConfigurationId"] in used:
            return _refused("ResourceInUse.LaunchConfigurationIdInUse")
        del self.configurations[given["LaunchConfigurationId"]]
        return {}

    def _cvm_DescribeInstanceTypeConfigs(self, given):
        assert given["Filters"][0]["Name"] == "instance-type"
        (name,) = given["Filters"][0]["Values"]
        found = [{"InstanceType": name, **TYPES[name]}] if name in TYPES else []
        return {"InstanceTypeConfigSet": found}

    def _cvm_DescribeZones(self, _given):
        zones = [{"Zone": f"ap-guangzhou-{number}", "ZoneId": f"10000{number}"} for number in (3, 4)]
        return {"TotalCount": len(zones), "ZoneSet": zones}

    def _vpc_DescribeSubnets(self, given):
        (subnet,) = given["SubnetIds"]
        return {
            "SubnetSet": [{"SubnetId": subnet, "Zone": f"ap-guangzhou-{4 if subnet == 'subnet-4' else 3}"}]
        }

    def _group(self, name):
        usual = {
            "AutoScalingGroupId": name,
            "AutoScalingGroupName": name,
            "LaunchConfigurationId": f"asc-{name}",
            "DesiredCapacity": self.fleet.groups[name].target,
            "SubnetIdSet": ["subnet-1"],
            "Tags": [{"Key": "k8s.io/cluster-autoscaler/node-template/label/team", "Value": "shop"}],
        }
        return usual | self.groups.get(name, {}) | {"DesiredCapacity": self.fleet.groups[name].target}


TYPES = {
    "S5.MEDIUM4": {"CPU": 2, "Memory": 4, "GPU": 0},
    "S5.LARGE8": {"CPU": 4, "Memory": 8, "GPU": 0},
    "S5.4XLARGE32": {"CPU": 16, "Memory": 32, "GPU": 0},
    "GN7.2XLARGE32": {"CPU": 8, "Memory": 32, "GPU": 1},
}
_CONFIGURATION_KEY = re.compile(
    r"LaunchConfigurationName|ImageId|ProjectId|InstanceType|SystemDisk|DataDisks|InternetAccessible"
    r"|LoginSettings|SecurityGroupIds|EnhancedService|UserData|InstanceChargeType|InstanceMarketOptions"
    r"|InstanceTypes|CamRoleName|InstanceTypesCheckPolicy|InstanceTags|Tags|HostNameSettings"
    r"|InstanceNameSettings|InstanceChargePrepaid|DiskTypePolicy|HpcClusterId|IPv6InternetAccessible"
    r"|DisasterRecoverGroupIds|ImageFamily|DedicatedClusterId|Metadata|NetworkInterfaces"
)
_GROUP_KEY = re.compile(
    r"AutoScalingGroupName|LaunchConfigurationId|MaxSize|MinSize|VpcId|DefaultCooldown|DesiredCapacity"
    r"|LoadBalancerIds|ProjectId|ForwardLoadBalancers|SubnetIds|TerminationPolicies|Zones|RetryPolicy"
    r"|ZonesCheckPolicy|Tags|ServiceSettings|Ipv6AddressCount|MultiZoneSubnetPolicy|HealthCheckType"
    r"|LoadBalancerHealthCheckGracePeriod|InstanceAllocationPolicy|SpotMixedAllocationPolicy"
    r"|CapacityRebalance|InstanceNameIndexSettings|HostNameIndexSettings"
    r"|ConcurrentScaleOutForDesiredCapacity"
)
"""What a configuration and a group may be created with."""


def _has_tag(group, key):
    return any(one["Key"] == key for one in group["Tags"])


def _has_null(value):
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    return value is None or (isinstance(value, list) and any(map(_has_null, value)))


def _refused(code):
    return {"Error": {"Code": code, "Message": code}}


def _answer(body):
    return Answer({"Response": {**body, "RequestId": "r"}})
