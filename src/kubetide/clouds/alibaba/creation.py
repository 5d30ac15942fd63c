"""Scaling groups that can be created: like a pattern, with another type of machine, in one of its zones.

A group is a pattern when its scaling configuration has the tag ``kubetide.dev/create``, whose value names types,
separated by spaces: the API of 2014 shows the tags of configurations, and not those of groups. What was created goes by
its name, not by its id, which nobody knows beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from kubetide.clouds.alibaba.api import AlibabaApi
from kubetide.clouds.alibaba.model import InstanceType, ScalingConfiguration, ScalingGroup, Tags
from kubetide.clouds.alibaba.queries import configuration_query, group_query
from kubetide.clouds.alibaba.template import build_node, offering
from kubetide.clouds.alibaba.templates import Templates
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
    unlike_architecture,
    unreadable,
)
from kubetide.clouds.common.template import kube_proxy
from kubetide.ports.cloud import NewGroup, NodeGroup, NodeTemplate
from kubetide.ports.errors import CloudError

CALLED: Final = "a scaling group"
_LONGEST = 60
"""Names of groups have 64 characters; a caller may append some."""
_ACK: Final = ("ack.aliyun.com", "ack.alibabacloud.com/")
_MARK: Final = f"tag {CREATE} of the scaling configuration"
_EXISTS: Final = "InvalidScalingGroupName.Duplicate"


def types_to_create(configuration: ScalingConfiguration) -> tuple[str, ...]:
    """Return the types that a group of the configuration is a pattern for, each once."""
    return types_in(configuration.tag(CREATE))


def pattern_of(configuration: ScalingConfiguration) -> str | None:
    """Return the id of the pattern that its group was created from; None where this program did not create it."""
    return configuration.tag(CREATED)


def obstacle_of(group: ScalingGroup, configuration: ScalingConfiguration, max_size: int) -> str:
    """Return why no group can be created like this one, empty where one can."""
    found = {
        "ACK manages it; tag the configuration of a group that you manage yourself": any(
            one.key.startswith(_ACK) for one in configuration.listed_tags
        ),
        HAS_NO_MAXIMUM: max_size < 1,
        "it is not of ECS instances": group.group_type not in {"", "ECS"},
        "it has no vSwitches; give it some": not group.vswitches,
        "its scaling configuration has no user data, by which its machines would join": not configuration.user_data,
        "its scaling configuration names its machines' hosts, and a second group would have the same names": bool(
            configuration.host_name
        ),
        "its scaling configuration describes network interfaces, which are not copied; name security groups": bool(
            (configuration.network_interfaces or {}).get("NetworkInterface")
        ),
        "its spot machines have a price limit, which is for their type": (
            configuration.spot_strategy == "SpotWithPriceLimit"
        ),
        "its machines are on dedicated hosts, which take one family of types": bool(
            configuration.dedicated_host_id or configuration.dedicated_host_cluster_id
        ),
    }
    return next((text for text, holds in found.items() if holds), "")


def warnings_of(
    group: ScalingGroup,
    configuration: ScalingConfiguration,
    types: Mapping[str, InstanceType],
    max_size: int,
    problems: Mapping[str, str],
) -> list[str]:
    """Return what keeps a pattern, or some of its types, from being of use; ``problems`` are types that cannot be read."""
    asked = types_to_create(configuration)
    if not asked:
        return []
    obstacle = obstacle_of(group, configuration, max_size)
    lost = {name: one for name, one in problems.items() if name not in types}
    return pattern_warnings(_MARK, asked, obstacle, types, lost | _unfit(configuration, types))


def _unfit(configuration: ScalingConfiguration, types: Mapping[str, InstanceType]) -> dict[str, str]:
    own = types.get(configuration.instance_type)
    if own is None:
        return {}
    others = {name: types[name] for name in types_to_create(configuration) if name in types}
    reasons = {
        name: unlike_architecture(own.cpu_architecture, one.cpu_architecture) for name, one in others.items()
    }
    return {name: reason for name, reason in reasons.items() if reason}


def candidates_like(
    group: ScalingGroup,
    configuration: ScalingConfiguration,
    types: Mapping[str, InstanceType],
    *,
    region: str,
    zones: Sequence[str],
    max_size: int,
) -> Iterator[Candidate | None]:
    """Yield the groups that could be created like one, with types there are, in those zones."""
    if obstacle_of(group, configuration, max_size):
        return
    tags = Tags(tag=tuple(one for one in configuration.listed_tags if one.key != CREATE))
    unfit = _unfit(configuration, types)
    for kind in types_to_create(configuration):
        if kind not in types or kind in unfit:
            continue
        for zone in zones:
            name = candidate_name(group.scaling_group_id, kind, zone, longest=_LONGEST)
            own = replace(configuration, instance_type=kind, tags=tags)
            node = build_node(name, own, types[kind], region, zone=zone)
            source = (
                f"scaling configuration {configuration.scaling_configuration_id} with instance type {kind}"
            )
            template = NodeTemplate(node=node, pods=(kube_proxy(name),), source=source)
            view = NodeGroup(template=template, offerings=(offering(own, zone),))
            yield make_candidate(
                group.scaling_group_id,
                view,
                group_id=name,
                max_size=max_size,
                instance_type=kind,
                zone=zone,
            )


async def create(api: AlibabaApi, pattern: ScalingGroup, new: NewGroup, vswitches: Sequence[str]) -> str:
    """Create a group with its configuration, enable it, and return its id. Raises CloudError.

    What is left of one that could not be made is deleted.

    Args:
        api: The calls.
        pattern: The group that it is to be like.
        new: What is asked for.
        vswitches: Those of the pattern in the zone that is asked for.
    """
    pattern_id = pattern.scaling_group_id
    group = await api.group_model(pattern_id)
    configuration = await api.configuration_model(pattern_id, pattern.active_scaling_configuration_id)
    with copying(f"the scaling group {pattern_id}"):
        asked = group_query(group, new, pattern_id, vswitches)
        own_configuration = configuration_query(configuration, new, pattern_id)
    try:
        made = await api.create_group(asked)
    except CloudError as error:
        if error.error_code == _EXISTS:
            raise name_is_taken(new.id, CALLED, error.error_code) from error
        raise
    try:
        own = await api.create_configuration(made, own_configuration)
        await api.enable_group(made, own)
    except CloudError:
        with suppress(CloudError):
            await api.delete_group(made)
        raise
    return made


class Patterns:
    """What groups that others may be like offer and lack.

    Args:
        templates: Scaling configurations, types of machines and zones.
        region: Where they are.
    """

    def __init__(self, templates: Templates, region: str) -> None:
        self._templates, self._region = templates, region

    async def warnings(self, group: ScalingGroup, max_size: int) -> list[str]:
        """Return what keeps a pattern, or some of its types, from being of use. Raises CloudError."""
        configuration = await self._templates.configuration(group)
        if not types_to_create(configuration):
            return []
        types = await self._templates.types()
        warnings = warnings_of(group, configuration, types, max_size, self._templates.type_problems)
        try:
            await self._templates.zones.grouped(group.vswitches)
        except CloudError as error:
            warnings.append(f"no group can be created like this one: its vSwitches {unreadable(error)}")
        return warnings

    async def candidates(self, group: ScalingGroup, max_size: int) -> list[Candidate | None]:
        """Return the groups that could be created like one. Raises CloudError."""
        configuration = await self._templates.configuration(group)
        if not types_to_create(configuration):
            return []
        zones = sorted(await self._templates.zones.grouped(group.vswitches))
        types = await self._templates.types()
        return list(
            candidates_like(group, configuration, types, region=self._region, zones=zones, max_size=max_size)
        )
