"""Queries that create a group and a configuration like others, as the API describes these.

Source: Elastic Scaling Service 2014-08-28, CreateScalingGroup and CreateScalingConfiguration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kubetide.clouds.common.creation import CREATE, CREATED
from kubetide.objects.base import Json
from kubetide.ports.cloud import NewGroup

_MIXED: Final = {"COST_OPTIMIZED", "COMPOSABLE"}
_GROUP_COPIED: Final = (
    "DefaultCooldown",
    "HealthCheckType",
    "MultiAZPolicy",
    "ScalingPolicy",
)
_MIX_COPIED: Final = (
    "CompensateWithOnDemand",
    "OnDemandBaseCapacity",
    "OnDemandPercentageAboveBaseCapacity",
    "SpotInstancePools",
    "SpotInstanceRemedy",
)
"""What says how a group mixes machines on demand and spot machines."""
_CONFIGURATION_COPIED: Final = (
    "DeploymentSetId",
    "HttpEndpoint",
    "HttpTokens",
    "ImageFamily",
    "ImageId",
    "InstanceDescription",
    "InstanceName",
    "InternetChargeType",
    "InternetMaxBandwidthIn",
    "InternetMaxBandwidthOut",
    "IoOptimized",
    "Ipv6AddressCount",
    "KeyPairName",
    "LoadBalancerWeight",
    "PasswordInherit",
    "RamRoleName",
    "ResourceGroupId",
    "SecurityEnhancementStrategy",
    "SpotStrategy",
    "UserData",
)
_SPOT_COPIED: Final = ("SpotDuration", "SpotInterruptionBehavior")
_SYSTEM_DISK: Final = {
    "SystemDiskAutoSnapshotPolicyId": "AutoSnapshotPolicyId",
    "SystemDiskBurstingEnabled": "BurstingEnabled",
    "SystemDiskCategory": "Category",
    "SystemDiskDescription": "Description",
    "SystemDiskEncrypted": "Encrypted",
    "SystemDiskKMSKeyId": "KMSKeyId",
    "SystemDiskName": "DiskName",
    "SystemDiskPerformanceLevel": "PerformanceLevel",
    "SystemDiskProvisionedIops": "ProvisionedIops",
    "SystemDiskSize": "Size",
}
_DATA_DISK: Final = (
    "AutoSnapshotPolicyId",
    "BurstingEnabled",
    "Category",
    "DeleteWithInstance",
    "Description",
    "Device",
    "DiskName",
    "Encrypted",
    "KMSKeyId",
    "PerformanceLevel",
    "ProvisionedIops",
    "Size",
    "SnapshotId",
)


def group_query(group: Json, new: NewGroup, pattern: str, vswitches: Sequence[str]) -> dict[str, str]:
    """Return what creates a group like the one that is described, without its configuration.

    Args:
        group: The pattern as the API describes it.
        new: What is asked for.
        pattern: The pattern's id.
        vswitches: Those of the new group.
    """
    query = {
        **_copied(group, _GROUP_COPIED),
        **(_copied(group, _MIX_COPIED) if group.get("MultiAZPolicy") in _MIXED else {}),
        "ScalingGroupName": new.id,
        "MinSize": "0",
        "MaxSize": str(new.max_size),
        "Tag.1.Key": CREATED,
        "Tag.1.Value": pattern,
        "Tag.1.Propagate": "false",
        **_numbered("VSwitchIds", vswitches),
        **_numbered("RemovalPolicy", (group.get("RemovalPolicies") or {}).get("RemovalPolicy") or ()),
    }
    if group.get("MaxInstanceLifetime"):
        query["MaxInstanceLifetime"] = str(group["MaxInstanceLifetime"])
    if group.get("EnableDesiredCapacity"):
        query["DesiredCapacity"] = "0"
    balancers = (group.get("LoadBalancerIds") or {}).get("LoadBalancerId") or ()
    if balancers:
        query["LoadBalancerIds"] = msgspec.json.encode(list(balancers)).decode()
    servers = (group.get("AlbServerGroups") or {}).get("AlbServerGroup") or ()
    query |= _listed("AlbServerGroup", servers, ("AlbServerGroupId", "Port", "Weight"))
    for number, one in enumerate((group.get("VServerGroups") or {}).get("VServerGroup") or (), 1):
        key = f"VServerGroup.{number}"
        attributes = (one.get("VServerGroupAttributes") or {}).get("VServerGroupAttribute") or ()
        query |= {f"{key}.{name}": text for name, text in _copied(one, ("LoadBalancerId",)).items()}
        query |= _listed(f"{key}.VServerGroupAttribute", attributes, ("VServerGroupId", "Port", "Weight"))
    return query


def configuration_query(configuration: Json, new: NewGroup, pattern: str) -> dict[str, str]:
    """Return what creates a configuration like the one that is described; arguments as ``group_query``."""
    copied = _copied(configuration, _CONFIGURATION_COPIED)
    if "ImageFamily" in copied:
        copied.pop("ImageId", None)
    if copied.get("SpotStrategy", "NoSpot") != "NoSpot":
        copied |= _copied(configuration, _SPOT_COPIED)
    tags = {one["Key"]: one["Value"] for one in (configuration.get("Tags") or {}).get("Tag") or ()}
    tags.pop(CREATE, None)
    groups = (configuration.get("SecurityGroupIds") or {}).get("SecurityGroupId") or ()
    categories = (configuration.get("SystemDiskCategories") or {}).get("SystemDiskCategory") or ()
    disk = {f"SystemDisk.{key}": configuration.get(name) for name, key in _SYSTEM_DISK.items()}
    if categories:
        disk.pop("SystemDisk.Category")
    return {
        **copied,
        "ScalingConfigurationName": new.id,
        "InstanceType": new.instance_type,
        "Tags": msgspec.json.encode({**tags, CREATED: pattern}).decode(),
        **(_numbered("SecurityGroupIds", groups) or _copied(configuration, ("SecurityGroupId",))),
        **_numbered("SystemDiskCategories", categories),
        **_copied(disk, tuple(disk)),
        **_data_disks((configuration.get("DataDisks") or {}).get("DataDisk") or ()),
    }


def _data_disks(disks: Sequence[Json]) -> dict[str, str]:
    """Return data disks as a query has them; of several categories the first that is to be had is taken."""
    query = _listed("DataDisk", disks, _DATA_DISK)
    for number, disk in enumerate(disks, 1):
        categories = (disk.get("Categories") or {}).get("Category") or ()
        if categories:
            query.pop(f"DataDisk.{number}.Category", None)
            query |= _numbered(f"DataDisk.{number}.Categories", categories)
    return query


def _copied(source: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Return what the source has of these, as a query has it."""
    return {name: _text(source[name]) for name in names if source.get(name) not in (None, "")}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _numbered(key: str, values: Sequence[Any]) -> dict[str, str]:
    return {f"{key}.{number}": _text(one) for number, one in enumerate(values, 1)}


def _listed(key: str, parts: Sequence[Json], names: Sequence[str]) -> dict[str, str]:
    return {
        f"{key}.{number}.{name}": text
        for number, part in enumerate(parts, 1)
        for name, text in _copied(part, names).items()
    }
