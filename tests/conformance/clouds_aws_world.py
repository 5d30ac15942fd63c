# ruff: noqa: N803  # parameters have the names of the API
"""A pretended AWS for the clouds suite: it answers calls from the state that a case gives, and notes them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from typing import Any

from kubetide.clouds.aws.api import CHANGES
from kubetide.clouds.aws.errors import api_error
from kubetide.units.time import Instant, after, format_rfc3339, seconds

_PAGE = 100


@cache
def instance_types() -> dict[str, dict[str, Any]]:
    """Return the types of the recordings, as the EC2 API would describe them."""
    listed = {
        "c6g.2xlarge": (8, 16384, 0, "arm64"),
        "g5.12xlarge": (48, 196608, 4, "x86_64"),
        "m5.large": (2, 8192, 0, "x86_64"),
        "m5.xlarge": (4, 16384, 0, "x86_64"),
        "m6a.large": (2, 8192, 0, "x86_64"),
        "p3.2xlarge": (8, 62464, 1, "x86_64"),
        "r6i.metal": (128, 1048576, 0, "x86_64"),
        "t3.nano": (2, 512, 0, "x86_64"),
    }
    return {
        name: {
            "InstanceType": name,
            "VCpuInfo": {"DefaultVCpus": cores},
            "MemoryInfo": {"SizeInMiB": memory},
            "GpuInfo": {"Gpus": [{"Count": gpus}]},
            "ProcessorInfo": {"SupportedArchitectures": [arch]},
        }
        for name, (cores, memory, gpus, arch) in listed.items()
    }


class PretendedAws:
    """Answers calls; ``calls`` are those since ``begin``, ``reads`` counts all that changed nothing by operation."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.world: dict[str, Any] = {}
        self.calls: list[dict[str, Any]] = []
        self.reads: dict[str, int] = {}

    def set_world(self, world: Mapping[str, Any]) -> None:
        self.world = copy.deepcopy(dict(world))

    def begin(self) -> None:
        self.calls = []

    def changes(self) -> list[dict[str, Any]]:
        return [call for call in self.calls if call["api"] in CHANGES]

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self.calls.append({"api": operation, "params": dict(parameters)})
        if operation not in CHANGES:
            self.reads[operation] = self.reads.get(operation, 0) + 1
        code = (self.world.get("errors") or {}).get(operation)
        if code:
            raise api_error(operation, code, "injected")
        answer: dict[str, Any] = getattr(self, operation)(**parameters)
        return answer

    def group(self, name: str) -> dict[str, Any] | None:
        return next((one for one in self.world["groups"] if one["AutoScalingGroupName"] == name), None)

    # ── operations ──────────────────────────────────────────────────────────────────────────────

    def DescribeAutoScalingGroups(
        self, *, AutoScalingGroupNames=None, Filters=(), MaxRecords=_PAGE, NextToken="0"
    ):
        found = [
            one
            for one in self.world["groups"]
            if (AutoScalingGroupNames is None or one["AutoScalingGroupName"] in AutoScalingGroupNames)
            and all(_matches(one, each) for each in Filters)
        ]
        size = min(self.world.get("page_size") or _PAGE, MaxRecords)
        start = int(NextToken)
        answer = {"AutoScalingGroups": copy.deepcopy(found[start : start + size])}
        if start + size < len(found):
            answer["NextToken"] = str(start + size)
        return answer

    def DescribeScalingActivities(self, *, AutoScalingGroupName):
        now: Instant = self.clock.now()
        return {
            "Activities": [
                {
                    "StatusCode": one["status"],
                    "StartTime": format_rfc3339(after(now, seconds(one["offset_s"]))),
                    "StatusMessage": one.get("message", ""),
                }
                for one in (self.world.get("activities") or {}).get(AutoScalingGroupName) or ()
            ]
        }

    def DescribeLaunchConfigurations(self, *, LaunchConfigurationNames, MaxRecords):
        held = self.world.get("launch_configurations") or ()
        found = [one for one in held if one["LaunchConfigurationName"] in LaunchConfigurationNames]
        return {"LaunchConfigurations": found}

    def DescribeLaunchTemplateVersions(self, *, LaunchTemplateName, Versions):
        found = [
            {"LaunchTemplateData": one["data"]}
            for one in self.world.get("launch_templates") or ()
            if one["name"] == LaunchTemplateName and one["version"] in Versions
        ]
        return {"LaunchTemplateVersions": found}

    def DescribeImages(self, *, ImageIds):
        return {"Images": [one for one in self.world.get("images") or () if one["ImageId"] in ImageIds]}

    def GetInstanceTypesFromInstanceRequirements(self, **_):
        return {
            "InstanceTypes": [{"InstanceType": one} for one in self.world.get("types_for_requirements") or ()]
        }

    def DescribeInstanceTypes(self):
        return {"InstanceTypes": list(instance_types().values())}

    def DescribeNodegroup(self, *, clusterName, nodegroupName):
        for one in self.world.get("nodegroups") or ():
            if (one.get("clusterName"), one.get("nodegroupName")) == (clusterName, nodegroupName):
                return {"nodegroup": one}
        raise api_error("DescribeNodegroup", "ResourceNotFoundException", "No node group found")

    def SetDesiredCapacity(self, *, AutoScalingGroupName, DesiredCapacity, HonorCooldown):
        self.group(AutoScalingGroupName)["DesiredCapacity"] = DesiredCapacity
        return {}

    def TerminateInstanceInAutoScalingGroup(self, *, InstanceId, ShouldDecrementDesiredCapacity):
        for one in self.world["groups"]:
            left = [each for each in one["Instances"] if each["InstanceId"] != InstanceId]
            if len(left) < len(one["Instances"]):
                one["Instances"] = left
                one["DesiredCapacity"] -= ShouldDecrementDesiredCapacity
        return {}


def _matches(group: dict[str, Any], each: dict[str, Any]) -> bool:
    tags = {tag["Key"]: tag.get("Value", "") for tag in group.get("Tags") or ()}
    if each["Name"] == "tag-key":
        return any(value in tags for value in each["Values"])
    return tags.get(each["Name"].removeprefix("tag:")) in each["Values"]
