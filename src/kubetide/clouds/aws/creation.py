"""Auto Scaling groups that can be created: like a pattern, with another instance type, in one of its zones.

A group is a pattern when it has the tag ``kubetide.dev/create``, whose value names instance types, separated by
spaces. How a machine joins this cluster (image, user data, role, security groups, subnets) cannot be guessed, so it is
taken from what the pattern launches. A group that was created names its pattern in the tag ``kubetide.dev/created-from``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.groups import Asg, Launch, Override
from kubetide.clouds.aws.instance_types import InstanceType
from kubetide.clouds.aws.launches import Launched
from kubetide.clouds.aws.tags import EKS, RESOURCE
from kubetide.clouds.common.creation import (
    CREATE,
    CREATED,
    HAS_NO_MAXIMUM,
    pattern_warnings,
    types_in,
    unlike_architecture,
)
from kubetide.objects.base import Json
from kubetide.ports.cloud import NewGroup
from kubetide.ports.errors import CloudError

_ON_DEMAND: Final[Mapping[str, int]] = {"OnDemandBaseCapacity": 0, "OnDemandPercentageAboveBaseCapacity": 100}
_COPIED: Final = (
    "CapacityRebalance",
    "HealthCheckGracePeriod",
    "HealthCheckType",
    "MaxInstanceLifetime",
    "PlacementGroup",
    "ServiceLinkedRoleARN",
)
"""Settings of the pattern that what is created has as well."""
_AWS: Final = "aws:"
_STORAGE: Final = f"{RESOURCE}ephemeral-storage"


def types_to_create(group: Asg) -> tuple[str, ...]:
    """Return the instance types that the group is a pattern for, each once; none where it is no pattern."""
    return types_in(dict(group.tags).get(CREATE))


def pattern_of(group: Asg) -> str | None:
    """Return the name of the pattern that the group was created from; None where this program did not create it."""
    return dict(group.tags).get(CREATED)


def warnings_of(group: Asg, launched: Launched, types: Mapping[str, InstanceType]) -> list[str]:
    """Return what keeps a pattern, or some of its instance types, from being of use."""
    asked = types_to_create(group)
    if not asked:
        return []
    unfit = _unfit(asked, launched, types)
    return pattern_warnings(f"tag {CREATE}", asked, _obstacle(group, launched), types, unfit)


def usable_types(group: Asg, launched: Launched, types: Mapping[str, InstanceType]) -> tuple[str, ...]:
    """Return the instance types that groups like it can be created with; none where it is no pattern, or of no use."""
    asked = types_to_create(group)
    if not asked or _obstacle(group, launched):
        return ()
    unfit = _unfit(asked, launched, types)
    return tuple(name for name in asked if name in types and name not in unfit)


def _unfit(asked: Sequence[str], launched: Launched, types: Mapping[str, InstanceType]) -> dict[str, str]:
    own = next((types[name].arch for name in launched.types if name in types), "")
    reasons = {name: unlike_architecture(own, types[name].arch) for name in asked if name in types}
    return {name: reason for name, reason in reasons.items() if reason}


def _obstacle(group: Asg, launched: Launched) -> str:
    if group.launch.template is None:
        return "it has no launch template; give it one in the place of its launch configuration"
    if launched.spot:
        return "its launch template asks for spot instances; say so in a mixed instances policy"
    if any(key == f"{EKS}nodegroup-name" for key, _ in group.tags):
        return "EKS manages it; tag a group that you manage yourself"
    if group.max_size < 1:
        return HAS_NO_MAXIMUM
    return ""


def would_be(pattern: Asg, name: str, instance_type: str, zone: str) -> tuple[Asg, Launched]:
    """Return the group that would be created, and what it would launch."""
    launch = Launch(
        template=pattern.launch.template,
        mixed=True,
        overrides=(Override(instance_type, None, ""),),
        distribution=_distribution(pattern),
    )
    tags = tuple((each["Key"], each["Value"]) for each in _tags(pattern, _as_json(pattern.tags)))
    group = Asg(name, 0, pattern.max_size, 0, (zone,), (), tags, launch)
    return group, Launched(types=(instance_type,))


async def create(api: AwsApi, pattern: Asg, raw: Json, new: NewGroup) -> None:
    """Create the group. Raises CloudError.

    Args:
        api: The calls.
        pattern: The group that it is to be like.
        raw: The pattern as AWS describes it.
        new: What is asked for; one instance type in one zone.
    """
    template, zones = pattern.launch.template, new.zones or ()
    if template is None or len(zones) != 1:
        raise CloudError(f"node group {new.id}: a group is created from a launch template, in one zone")
    request: Json = {
        "AutoScalingGroupName": new.id,
        "MinSize": 0,
        "MaxSize": new.max_size,
        "DesiredCapacity": 0,
        "MixedInstancesPolicy": {
            "LaunchTemplate": {
                "LaunchTemplateSpecification": {template.key: template.name, "Version": template.version},
                "Overrides": [{"InstanceType": new.instance_type}],
            },
            "InstancesDistribution": _distribution(pattern),
        },
        "Tags": [
            {**each, "ResourceId": new.id, "ResourceType": "auto-scaling-group"}
            for each in _tags(pattern, raw.get("Tags") or ())
        ],
        **{name: raw[name] for name in _COPIED if raw.get(name)},
    }
    subnets = [each for each in (raw.get("VPCZoneIdentifier") or "").split(",") if each]
    if subnets:
        request["VPCZoneIdentifier"] = ",".join(await _subnets_in(api, subnets, zones[0], new.id))
    else:
        request["AvailabilityZones"] = [zones[0]]
    await api.create_group(request)


async def _subnets_in(api: AwsApi, subnets: Sequence[str], zone: str, group: str) -> list[str]:
    described = await api.subnets(subnets)
    found = sorted(each["SubnetId"] for each in described if each.get("AvailabilityZone") == zone)
    if not found:
        raise CloudError(f"node group {group}: its pattern has no subnet in zone {zone} any more")
    return found


def _distribution(pattern: Asg) -> Json:
    return dict(pattern.launch.distribution or _ON_DEMAND)


def _tags(pattern: Asg, tags: Sequence[Json]) -> list[Json]:
    """Return the tags of a group like the pattern: its own without those of AWS and of its type of machine."""
    copied = [
        {
            "Key": each["Key"],
            "Value": each.get("Value") or "",
            "PropagateAtLaunch": bool(each.get("PropagateAtLaunch")),
        }
        for each in tags
        if each["Key"] != CREATE
        and not each["Key"].startswith((_AWS, EKS))
        and (RESOURCE not in each["Key"] or each["Key"].endswith(_STORAGE))
    ]
    return [*copied, {"Key": CREATED, "Value": pattern.name, "PropagateAtLaunch": False}]


def _as_json(tags: Sequence[tuple[str, str]]) -> list[Json]:
    return [{"Key": key, "Value": value} for key, value in tags]
