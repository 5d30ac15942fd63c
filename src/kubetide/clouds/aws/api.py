"""The calls of AWS that this provider makes, over any client that can make one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from kubetide.clouds.common.pagination import PageTokens
from kubetide.objects.base import Json
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant, format_rfc3339

SERVICES: Final[Mapping[str, str]] = {
    "DescribeAutoScalingGroups": "autoscaling",
    "DescribeScalingActivities": "autoscaling",
    "DescribeLaunchConfigurations": "autoscaling",
    "SetDesiredCapacity": "autoscaling",
    "TerminateInstanceInAutoScalingGroup": "autoscaling",
    "CreateAutoScalingGroup": "autoscaling",
    "DeleteAutoScalingGroup": "autoscaling",
    "DescribeLaunchTemplateVersions": "ec2",
    "DescribeImages": "ec2",
    "DescribeInstanceTypes": "ec2",
    "DescribeSpotPriceHistory": "ec2",
    "DescribeSubnets": "ec2",
    "GetInstanceTypesFromInstanceRequirements": "ec2",
    "DescribeNodegroup": "eks",
    "DescribePolicies": "autoscaling",
    "DescribeScheduledActions": "autoscaling",
}
"""The service of each operation: the whole of what the program's role must be allowed."""

CHANGES: Final = frozenset({"SetDesiredCapacity", "TerminateInstanceInAutoScalingGroup"})
"""Operations that change groups which there are."""

CREATING: Final = frozenset({"CreateAutoScalingGroup", "DeleteAutoScalingGroup", "DescribeSubnets"})
"""Operations that are needed only where groups are created."""

DIAGNOSING: Final = frozenset({"DescribePolicies", "DescribeScheduledActions"})
"""Operations that no tick makes: for ``kubetide doctor`` alone."""

_GROUPS_OF_A_CALL: Final = 100
_CONFIGURATIONS_OF_A_CALL: Final = 50
_RECORDS_OF_A_CALL: Final = 100
_LINUX: Final = ("Linux/UNIX", "Linux/UNIX (Amazon VPC)")


class Caller(Protocol):
    """Makes calls of AWS."""

    async def __call__(self, operation: str, parameters: Json) -> Json:
        """Make one call, and return its answer as boto3 gives it. Raises CloudError."""
        ...


class AwsApi:
    """The calls, with all pages of each answer."""

    def __init__(self, call: Caller) -> None:
        self._call = call

    async def groups_by_name(self, names: Sequence[str]) -> list[Json]:
        """Return the Auto Scaling groups of these names that exist."""
        found: list[Json] = []
        for some in _in_parts(names, _GROUPS_OF_A_CALL):
            found += await self._groups({"AutoScalingGroupNames": some})
        return found

    async def groups_by_filter(self, filters: Sequence[Json]) -> list[Json]:
        """Return the Auto Scaling groups that match all filters."""
        return await self._groups({"Filters": list(filters)})

    async def activities(self, group: str) -> list[Json]:
        """Return the newest scaling activities of a group, newest first: one page."""
        answer = await self._call("DescribeScalingActivities", {"AutoScalingGroupName": group})
        return list(answer.get("Activities") or ())

    async def launch_configurations(self, names: Iterable[str]) -> list[Json]:
        """Return the launch configurations of these names that exist."""
        found: list[Json] = []
        for some in _in_parts(sorted(set(names)), _CONFIGURATIONS_OF_A_CALL):
            request = {"LaunchConfigurationNames": some, "MaxRecords": _CONFIGURATIONS_OF_A_CALL}
            found += await self._pages("DescribeLaunchConfigurations", request, "LaunchConfigurations")
        return found

    async def launch_template(self, key: str, name: str, version: str) -> Json | None:
        """Return the data of one version of a launch template; None when there is none.

        Args:
            key: ``LaunchTemplateName`` or ``LaunchTemplateId``.
            name: The name or the id.
            version: A number, ``$Latest`` or ``$Default``.
        """
        answer = await self._call("DescribeLaunchTemplateVersions", {key: name, "Versions": [version]})
        versions = answer.get("LaunchTemplateVersions") or ()
        return (versions[0].get("LaunchTemplateData") or {}) if versions else None

    async def image(self, image: str) -> Json | None:
        """Return a machine image; None when there is none."""
        answer = await self._call("DescribeImages", {"ImageIds": [image]})
        return next(iter(answer.get("Images") or ()), None)

    async def types_for(self, requirements: Json, image: Json | None) -> list[str]:
        """Return the names of the instance types that meet requirements, on what the image can run on."""
        request = {
            "ArchitectureTypes": [image["Architecture"]] if image and image.get("Architecture") else [],
            "VirtualizationTypes": [image["VirtualizationType"]]
            if image and image.get("VirtualizationType")
            else [],
            "InstanceRequirements": requirements,
        }
        found = await self._pages("GetInstanceTypesFromInstanceRequirements", request, "InstanceTypes")
        return [each["InstanceType"] for each in found if each.get("InstanceType")]

    async def instance_types(self) -> list[Json]:
        """Return all instance types of the region."""
        return await self._pages("DescribeInstanceTypes", {}, "InstanceTypes")

    async def spot_prices(self, types: Sequence[str], now: Instant) -> list[Json]:
        """Return the prices of Linux machines on the spot market that hold now, by type and zone."""
        request = {
            "InstanceTypes": list(types),
            "ProductDescriptions": list(_LINUX),
            # From now on: the newest price before it is part of the answer, and no older one.
            "StartTime": format_rfc3339(now),
        }
        return await self._pages("DescribeSpotPriceHistory", request, "SpotPriceHistory")

    async def nodegroup(self, cluster: str, name: str) -> Json | None:
        """Return a managed node group of EKS."""
        answer = await self._call("DescribeNodegroup", {"clusterName": cluster, "nodegroupName": name})
        found: Json | None = answer.get("nodegroup")
        return found

    async def scaling_policies(self) -> list[Json]:
        """Return the scaling policies of all groups of the region."""
        return await self._pages("DescribePolicies", {"MaxRecords": _RECORDS_OF_A_CALL}, "ScalingPolicies")

    async def scheduled_actions(self) -> list[Json]:
        """Return the scheduled actions of all groups of the region that are still to come."""
        request = {"MaxRecords": _RECORDS_OF_A_CALL}
        return await self._pages("DescribeScheduledActions", request, "ScheduledUpdateGroupActions")

    async def set_desired_capacity(self, group: str, size: int) -> None:
        """Set how many instances a group is to have, whatever its cooldown."""
        await self._call(
            "SetDesiredCapacity",
            {"AutoScalingGroupName": group, "DesiredCapacity": size, "HonorCooldown": False},
        )

    async def terminate(self, instance: str) -> None:
        """End an instance, and lower the size of its group by one."""
        await self._call(
            "TerminateInstanceInAutoScalingGroup",
            {"InstanceId": instance, "ShouldDecrementDesiredCapacity": True},
        )

    async def subnets(self, names: Sequence[str]) -> list[Json]:
        """Return the subnets of these ids, which must exist."""
        return await self._pages("DescribeSubnets", {"SubnetIds": list(names)}, "Subnets")

    async def create_group(self, request: Json) -> None:
        """Create an Auto Scaling group."""
        await self._call("CreateAutoScalingGroup", request)

    async def delete_group(self, group: str) -> None:
        """Delete an Auto Scaling group; AWS refuses while it has instances."""
        await self._call("DeleteAutoScalingGroup", {"AutoScalingGroupName": group, "ForceDelete": False})

    async def _groups(self, request: Json) -> list[Json]:
        operation = "DescribeAutoScalingGroups"
        found = await self._pages(
            operation, {**request, "MaxRecords": _GROUPS_OF_A_CALL}, "AutoScalingGroups"
        )
        if not all(each.get("AutoScalingGroupName") for each in found):
            # Else a group that there is would count as gone.
            raise CloudError(f"{operation}: the answer has a group without AutoScalingGroupName")
        return found

    async def _pages(self, operation: str, request: Json, field: str) -> list[Json]:
        found: list[Json] = []
        token: Any = None
        tokens = PageTokens(operation)
        while True:
            answer = await self._call(operation, {**request, "NextToken": token} if token else request)
            found += answer.get(field) or ()
            token = answer.get("NextToken")
            if not token:
                return found
            tokens.check(str(token))


def _in_parts(names: Sequence[str], size: int) -> list[list[str]]:
    return [list(names[at : at + size]) for at in range(0, len(names), size)]
