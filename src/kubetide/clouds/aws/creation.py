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
from kubetide.objects.base import Json
from kubetide.ports.cloud import NewGroup
from kubetide.ports.errors import CloudError

CREATE: Final = "kubetide.dev/create"
CREATED: Final = "kubetide.dev/created-from"

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
    return tuple(dict.fromkeys(dict(group.tags).get(CREATE, "").split()))


def pattern_of(group: Asg) -> str | None:
    """Return the name of the pattern that the group was created from; None where this program did not create it."""
    return dict(group.tags).get(CREATED)


def is_usable(group: Asg, launched: Launched) -> bool:
    """Return whether groups like it can be created."""
    return bool(types_to_create(group)) and not _obstacle(group, launched)


def warnings_of(group: Asg, launched: Launched, types: Mapping[str, InstanceType]) -> list[str]:
    """Return what keeps a pattern, or some of its instance types, from being of use."""
    asked = types_to_create(group)
    if not asked:
        return []
    obstacle = _obstacle(group, launched)
    if obstacle:
        return [f"tag {CREATE}: no group can be created like this one: {obstacle}"]
    return [
        f"tag {CREATE}: instance type {name} is not known; correct it" for name in asked if name not in types
    ]


def _obstacle(group: Asg, launched: Launched) -> str:
    if group.launch.template is None:
        return "it has no launch template; give it one in the place of its launch configuration"
    if launched.spot:
        return "its launch template asks for spot instances; say so in a mixed instances policy"
    if any(key == f"{EKS}nodegroup-name" for key, _ in group.tags):
        return "EKS manages it; tag a group that you manage yourself"
    if group.max_size < 1:
        return "its maximum size is 0, and theirs would be, too"
    return ""


def candidate_id(pattern: str, instance_type: str, zone: str) -> str:
    """Return the name of the group that would be created."""
    return f"auto-{pattern}-{instance_type.replace('.', '-')}-{zone}"


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
        {"Key": each["Key"], "Value": each["Value"], "PropagateAtLaunch": bool(each.get("PropagateAtLaunch"))}
        for each in tags
        if each["Key"] != CREATE
        and not each["Key"].startswith((_AWS, EKS))
        and (RESOURCE not in each["Key"] or each["Key"].endswith(_STORAGE))
    ]
    return [*copied, {"Key": CREATED, "Value": pattern.name, "PropagateAtLaunch": False}]


def _as_json(tags: Sequence[tuple[str, str]]) -> list[Json]:
    return [{"Key": key, "Value": value} for key, value in tags]
