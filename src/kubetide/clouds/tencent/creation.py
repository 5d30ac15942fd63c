"""Auto Scaling groups that can be created: like a pattern, with another type of machine, in one of its zones.

A group is a pattern when it has the tag ``kubetide.dev/create``, whose value names types, separated by spaces. What
was created goes by its name, not by its id, which nobody knows beforehand, and has a launch configuration of that name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from kubetide.clouds.common.creation import (
    CREATE,
    CREATED,
    HAS_NO_MAXIMUM,
    Candidate,
    candidate_name,
    copying,
    make_candidate,
    name_is_taken,
    pattern_warnings,
    types_in,
)
from kubetide.clouds.common.readings import attempt
from kubetide.clouds.tencent.api import TencentApi
from kubetide.clouds.tencent.model import Group, InstanceType, LaunchConfiguration, Tag
from kubetide.clouds.tencent.template import PREFIX
from kubetide.clouds.tencent.templates import Templates
from kubetide.objects.base import Json
from kubetide.objects.nulls import without_nulls
from kubetide.ports.cloud import NewGroup, NodeGroup, NodeTemplate
from kubetide.ports.errors import CloudError

CALLED: Final = "an Auto Scaling group"
_LONGEST = 51
"""Names of groups have 55 bytes; a caller may append some."""
_RESOURCES: Final = f"{PREFIX}resources/"
_STORAGE: Final = f"{_RESOURCES}ephemeral-storage"
_RESERVED: Final = "tencentcloud:"
_GROUP_COPIED: Final = (
    "CapacityRebalance",
    "DefaultCooldown",
    "HealthCheckType",
    "InstanceAllocationPolicy",
    "Ipv6AddressCount",
    "LoadBalancerHealthCheckGracePeriod",
    "ProjectId",
    "RetryPolicy",
    "ServiceSettings",
    "SpotMixedAllocationPolicy",
    "VpcId",
)
_GROUP_RENAMED: Final = {
    "LoadBalancerIdSet": "LoadBalancerIds",
    "ForwardLoadBalancerSet": "ForwardLoadBalancers",
    "TerminationPolicySet": "TerminationPolicies",
}
_CONFIGURATION_COPIED: Final = (
    "CamRoleName",
    "DataDisks",
    "DisasterRecoverGroupIds",
    "DiskTypePolicy",
    "EnhancedService",
    "HostNameSettings",
    "IPv6InternetAccessible",
    "InstanceChargeType",
    "InstanceMarketOptions",
    "InstanceNameSettings",
    "InstanceTags",
    "InternetAccessible",
    "LoginSettings",
    "NetworkInterfaces",
    "ProjectId",
    "SecurityGroupIds",
    "SystemDisk",
    "UserData",
)
_GROUP_EXISTS: Final = "InvalidParameterValue.GroupNameDuplicated"
_CONFIGURATION_EXISTS: Final = "InvalidParameterValue.LaunchConfigurationNameDuplicated"


def tag_of(tags: Iterable[Tag] | None, key: str) -> str | None:
    """Return the value of the tag, None without it."""
    return next((one.value for one in tags or () if one.key == key), None)


def types_to_create(group: Group) -> tuple[str, ...]:
    """Return the types that the group is a pattern for, each once; none where it is no pattern."""
    return types_in(tag_of(group.tags, CREATE))


def pattern_of(group: Group) -> str | None:
    """Return the id of the pattern that the group was created from; None where this program did not create it."""
    return tag_of(group.tags, CREATED)


def obstacle_of(group: Group, configuration: LaunchConfiguration | None, max_size: int) -> str:
    """Return why no group can be created like this one, empty where one can."""
    if configuration is None:
        return f"its launch configuration {group.launch_configuration_id} cannot be read"
    index = group.host_name_index_settings
    names = group.auto_scaling_group_name, configuration.launch_configuration_name
    found = {
        "TKE manages it; tag a group that you manage yourself": any(one.startswith("tke-") for one in names),
        HAS_NO_MAXIMUM: max_size < 1,
        "it has no subnets; give it some": not group.subnets,
        "its launch configuration has no user data, by which its machines would join": not configuration.user_data,
        "its spot machines have a maximum price, which is for their type; mix them with others": (
            configuration.instance_charge_type == "SPOTPAID"
        ),
        "its machines are paid by the month": configuration.instance_charge_type == "PREPAID",
        "its machines are of a dedicated cluster or a computing cluster, which has types of its own": bool(
            configuration.dedicated_cluster_id or configuration.hpc_cluster_id
        ),
        "it numbers the host names of its machines, and a second group would have the same": (
            index is not None and index.enabled
        ),
    }
    return next((text for text, holds in found.items() if holds), "")


def name_of(pattern: str, kind: str, zone: str) -> str:
    """Return the name of the group that would be created, in lower case as all of a provider id."""
    return candidate_name(pattern, kind, zone, longest=_LONGEST).lower()


def would_be(pattern: Group, name: str, subnets: Sequence[str]) -> Group:
    """Return the group that would be created, as far as a node depends on it."""
    tags = tuple(Tag(key=one["Key"], value=one["Value"]) for one in _tags(pattern))
    return msgspec.structs.replace(
        pattern, auto_scaling_group_id=name, subnet_id_set=tuple(subnets), tags=tags
    )


async def create(api: TencentApi, pattern: Group, new: NewGroup, subnets: Sequence[str]) -> str:
    """Create a launch configuration and a group of it, and return the group's id.

    What is left of one that could not be made is deleted.

    Args:
        api: The calls.
        pattern: The group that it is to be like.
        new: What is asked for.
        subnets: Those of the pattern in the zone that is asked for.

    Raises: CloudError.
    """
    group = await api.group_model(pattern.auto_scaling_group_id)
    configuration = await api.configuration_model(pattern.launch_configuration_id)
    tags = _tags(pattern)
    with copying(f"the launch configuration {pattern.launch_configuration_id}"):
        own = _configuration_body(configuration, new, pattern)
    made = await _create_configuration(api, own)
    body = {
        **_copied(group, _GROUP_COPIED),
        **{name: group[key] for key, name in _GROUP_RENAMED.items() if group.get(key)},
        "AutoScalingGroupName": new.id,
        "LaunchConfigurationId": made,
        "MinSize": 0,
        "MaxSize": new.max_size,
        "DesiredCapacity": 0,
        "SubnetIds": list(subnets),
        "Tags": [{**one, "ResourceType": "auto-scaling-group"} for one in tags],
    }
    try:
        return await api.create_group(without_nulls(body))
    except CloudError as error:
        with suppress(CloudError):
            await api.delete_configuration(made)
        if error.error_code == _GROUP_EXISTS:
            raise name_is_taken(new.id, CALLED, error.error_code) from error
        raise


async def _create_configuration(api: TencentApi, body: Json) -> str:
    try:
        return await api.create_configuration(body)
    except CloudError as error:
        if error.error_code != _CONFIGURATION_EXISTS:
            raise
        # One that an earlier process left behind; one that is in use cannot be deleted.
        found = await api.configurations_named(body["LaunchConfigurationName"])
        ours = [one for one in found if tag_of(one.tags, CREATED) is not None]
        if not ours:
            raise
        for one in ours:
            await api.delete_configuration(one.launch_configuration_id)
        return await api.create_configuration(body)


async def delete(api: TencentApi, group: Group, configuration: LaunchConfiguration | None) -> None:
    """Delete a group that was created, and the configuration that was created for it. Raises CloudError."""
    await api.delete_group(group.auto_scaling_group_id)
    if configuration and configuration.launch_configuration_name == group.auto_scaling_group_name:
        with suppress(CloudError):  # the group is gone; the next one of this name replaces what is left
            await api.delete_configuration(configuration.launch_configuration_id)


def _configuration_body(configuration: Json, new: NewGroup, pattern: Group) -> Json:
    image = "ImageFamily" if configuration.get("ImageFamily") else "ImageId"
    body = {
        **_copied(configuration, _CONFIGURATION_COPIED),
        image: configuration[image],
        "LaunchConfigurationName": new.id,
        "InstanceType": new.instance_type,
        "Tags": [
            {
                "Key": CREATED,
                "Value": pattern.auto_scaling_group_id,
                "ResourceType": "launch-configuration",
            }
        ],
    }
    login = body.pop("LoginSettings", None) or {}
    if login.get("KeyIds"):
        body["LoginSettings"] = {"KeyIds": login["KeyIds"]}
    elif login.get("KeepImageLogin"):
        body["LoginSettings"] = {"KeepImageLogin": True}
    found: Json = without_nulls(body)
    return found


def _copied(source: Json, names: Sequence[str]) -> Json:
    return {name: source[name] for name in names if source.get(name) not in (None, "", [], {})}


def _tags(pattern: Group) -> list[Json]:
    """Return the tags of a group like the pattern: its own without those of Tencent's and of its type of machine."""
    copied = [
        {"Key": one.key, "Value": one.value}
        for one in pattern.tags or ()
        if one.key not in {CREATE, CREATED}
        and not one.key.startswith(_RESERVED)
        and (not one.key.startswith(_RESOURCES) or one.key == _STORAGE)
    ]
    return [*copied, {"Key": CREATED, "Value": pattern.auto_scaling_group_id}]


class Patterns:
    """What groups that others may be like offer and lack.

    Args:
        templates: Launch configurations, types of machines, subnets and zones.
    """

    def __init__(self, templates: Templates) -> None:
        self._templates = templates

    async def warnings(self, group: Group | None, max_size: int) -> list[str]:
        """Return what keeps a pattern, or some of its types, from being of use. Raises CloudError."""
        asked = () if group is None else types_to_create(group)
        if group is None or not asked:
            return []
        known = await self._templates.types_named(asked)
        unfit = {
            name: "it has GPUs, which a template does not show" for name, size in known.items() if size.gpu
        }
        obstacle = await self._obstacle(group, max_size)
        return pattern_warnings(f"tag {CREATE}", asked, obstacle, known, unfit)

    async def _obstacle(self, group: Group, max_size: int) -> str:
        configuration = await self._templates.configuration(group.launch_configuration_id)
        return obstacle_of(group, configuration, max_size)

    async def candidates(self, group: Group, max_size: int) -> list[Candidate | None]:
        """Return the groups that could be created like one. Raises CloudError."""
        asked = types_to_create(group)
        if not asked or await self._obstacle(group, max_size):
            return []
        types = await self._templates.types_named(asked)
        return [
            await self._candidate(group, size, zone, subnets, max_size)
            for zone, subnets in (await self._templates.zones.grouped(group.subnets)).items()
            for size in types.values()
            if not size.gpu
        ]

    async def _candidate(
        self, pattern: Group, size: InstanceType, zone: str, subnets: Sequence[str], max_size: int
    ) -> Candidate | None:
        kind = size.instance_type
        name = name_of(pattern.auto_scaling_group_id, kind, zone)
        group = would_be(pattern, name, subnets)
        node, _ = await attempt(self._templates.node_of(group, size, name))
        if node is None:
            return None
        source = f"launch configuration {pattern.launch_configuration_id} with instance type {kind}"
        return make_candidate(
            pattern.auto_scaling_group_id,
            NodeGroup(
                template=NodeTemplate(node=node, source=source),
                offerings=self._templates.offerings(group, node, kind),
            ),
            group_id=name,
            max_size=max_size,
            instance_type=kind,
            zone=zone,
        )
