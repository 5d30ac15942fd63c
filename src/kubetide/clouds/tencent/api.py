"""The calls to Tencent Cloud that the provider makes, signed and typed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from kubetide.clouds.common.entries import Entries, read_entries
from kubetide.clouds.common.pagination import check_whole, each_once, known_total
from kubetide.clouds.common.placeholders import FailedActivity
from kubetide.clouds.common.rest import (
    UNREADABLE,
    Request,
    Response,
    Rest,
    cause_of_status,
    decoded_without_nulls,
    retry_after,
)
from kubetide.clouds.common.scaling_policies import needs_right
from kubetide.clouds.common.tokens import Keys
from kubetide.clouds.tencent.model import (
    Group,
    Instance,
    InstanceType,
    LaunchConfiguration,
    ScalingPolicy,
    ScheduledAction,
    Subnet,
    Zone,
)
from kubetide.clouds.tencent.signing import Stamp, authorization
from kubetide.objects.base import Json
from kubetide.ports.clock import Clock
from kubetide.ports.errors import CloudCause, CloudError
from kubetide.units.time import Instant, format_rfc3339, seconds

Credentials = Callable[[], Awaitable[Keys]]
"""Returns keys that are valid now."""

_PAGE, _ATTEMPTS = 100, 5
_VALUES_OF_A_FILTER = 5
_CAUSES: Sequence[tuple[str, CloudCause]] = (
    ("ResourceInsufficient", "OutOfCapacity"),
    ("ResourcesSoldOut", "OutOfCapacity"),
    ("RequestLimitExceeded", "Throttled"),
    ("LimitExceeded", "Quota"),
    ("QuotaExceeded", "Quota"),
    ("AuthFailure", "Permission"),
    ("UnauthorizedOperation", "Permission"),
)


class Service(NamedTuple):
    """One of the APIs."""

    name: str
    version: str

    @property
    def host(self) -> str:
        return f"{self.name}.tencentcloudapi.com"


SCALING = Service("as", "2018-04-19")
MACHINES = Service("cvm", "2017-03-12")
NETWORKS = Service("vpc", "2017-03-12")


class _Error(msgspec.Struct, frozen=True, rename="pascal"):
    code: str = ""
    message: str = ""


class _Failure(msgspec.Struct, frozen=True, rename="pascal"):
    error: _Error | None = None
    request_id: str = ""


class _Envelope(msgspec.Struct, frozen=True, rename="pascal"):
    response: msgspec.Raw


class _Activity(msgspec.Struct, frozen=True, rename="pascal"):
    status_code: str = ""
    status_message: str = ""
    detailed_status_message_set: tuple[_Error, ...] | None = None


class _Listed(msgspec.Struct, frozen=True, rename="pascal"):
    """Every list of these APIs: one of the sets is there."""

    total_count: int | None = None
    auto_scaling_group_set: tuple[Any, ...] | None = None
    launch_configuration_set: tuple[Any, ...] | None = None
    auto_scaling_instance_set: tuple[Instance, ...] | None = None
    instance_type_config_set: tuple[InstanceType, ...] | None = None
    subnet_set: tuple[Subnet, ...] | None = None
    zone_set: tuple[Zone, ...] | None = None
    activity_set: tuple[_Activity, ...] | None = None
    scaling_policy_set: tuple[Any, ...] | None = None
    scheduled_action_set: tuple[Any, ...] | None = None


_EntriesOf = Callable[[_Listed], Sequence[Any] | None]
"""Returns the one of the sets that an action answers with."""


def refusal(response: Response) -> CloudError | None:
    """Return what an answer of the API refuses, None for a good answer."""
    try:
        envelope = msgspec.json.decode(response.body, type=_Envelope)
        failure = msgspec.json.decode(envelope.response, type=_Failure)
    except UNREADABLE:
        return _unreadable(response)
    if failure.error is None:
        # The API answers 200 to refusals as well; what has another status is not of the API.
        return None if response.status == 200 else _unreadable(response)
    code = failure.error.code
    return CloudError(
        f"[TencentCloudSDKError] Code={code}, Message={failure.error.message}, RequestId={failure.request_id}",
        error_code=code,
        cause=_cause(code),
    )


def _unreadable(response: Response) -> CloudError:
    text = response.body.decode("utf-8", "replace")[:200]
    return CloudError(
        f"HTTP {response.status}: {text}",
        error_code=str(response.status),
        cause=cause_of_status(response.status),
        retry_after=retry_after(response.headers),
        may_be_done=response.status == 200,
    )


def _cause(code: str) -> CloudCause:
    return next((cause for start, cause in _CAUSES if code.startswith(start)), "Other")


class TencentApi:
    """Auto Scaling of one region.

    Args:
        rest: Sends the requests.
        clock: The time that requests are signed with.
        credentials: Makes keys.
        region: ``ap-guangzhou``.
        endpoint: Makes the URL of a service's host.
    """

    def __init__(
        self,
        rest: Rest,
        clock: Clock,
        credentials: Credentials,
        region: str,
        *,
        endpoint: Callable[[Service], str] = lambda service: f"https://{service.host}/",
    ) -> None:
        self._rest, self._clock, self._credentials = rest, clock, credentials
        self._region, self._endpoint = region, endpoint

    async def groups(self, ids: Sequence[str]) -> Entries[Group]:
        """Return those of the groups that exist, a hundred a call."""
        found: list[Any] = []
        for start in range(0, len(ids), _PAGE):
            parameters = {"AutoScalingGroupIds": list(ids[start : start + _PAGE]), "Limit": _PAGE}
            found += (
                await self._read(SCALING, "DescribeAutoScalingGroups", parameters)
            ).auto_scaling_group_set or ()
        return read_entries(found, Group, "AutoScalingGroupId")

    async def groups_with_tag(self, key: str) -> Entries[Group]:
        """Return all groups that have the tag, whatever its value."""
        action, what = "DescribeAutoScalingGroups", f"groups with the tag {key}"
        found = await self._pages(
            action, "tag-key", [key], lambda listed: listed.auto_scaling_group_set, what
        )
        return read_entries(found, Group, "AutoScalingGroupId")

    async def group_model(self, group: str) -> Json:
        """Return one group whole."""
        parameters = {"AutoScalingGroupIds": [group], "Limit": 1}
        return await self._one("DescribeAutoScalingGroups", parameters, "AutoScalingGroupSet")

    async def configuration_model(self, configuration: str) -> Json:
        """Return one launch configuration whole; passwords are never in it."""
        parameters = {"LaunchConfigurationIds": [configuration], "Limit": 1}
        return await self._one("DescribeLaunchConfigurations", parameters, "LaunchConfigurationSet")

    async def configurations_named(self, name: str) -> Sequence[LaunchConfiguration]:
        """Return the launch configurations of that name."""
        parameters = {"Filters": [{"Name": "launch-configuration-name", "Values": [name]}], "Limit": _PAGE}
        return (await self._configurations(parameters)).found

    async def launch_configurations(self, ids: Sequence[str]) -> Entries[LaunchConfiguration]:
        """Return those of the launch configurations that exist, a hundred a call."""
        found: list[LaunchConfiguration] = []
        problems: dict[str, str] = {}
        for start in range(0, len(ids), _PAGE):
            parameters = {"LaunchConfigurationIds": list(ids[start : start + _PAGE]), "Limit": _PAGE}
            part = await self._configurations(parameters)
            found += part.found
            problems |= part.problems
        return Entries(found, problems)

    async def _configurations(self, parameters: Mapping[str, Any]) -> Entries[LaunchConfiguration]:
        listed = await self._read(SCALING, "DescribeLaunchConfigurations", parameters)
        return read_entries(
            listed.launch_configuration_set or (), LaunchConfiguration, "LaunchConfigurationId"
        )

    async def instances(self, group: str) -> list[Instance]:
        """Return all instances of a group, each once; a list that changes between two pages is begun anew."""
        what = f"instances of {group}"
        for _ in range(_ATTEMPTS):
            found, total = await self._instances_once(group, what)
            if total is not None:
                return check_whole(each_once(found, lambda one: one.instance_id), total, what)
        raise CloudError(f"the list of {what} changed while it was read, {_ATTEMPTS} times")

    async def _instances_once(self, group: str, what: str) -> tuple[list[Instance], int | None]:
        """Return the pages of a group's list and its length, None where that changed on the way."""
        found: list[Instance] = []
        total: int | None = None
        while total is None or len(found) < total:
            parameters = {
                "Filters": [{"Name": "auto-scaling-group-id", "Values": [group]}],
                "Limit": _PAGE,
                "Offset": len(found),
            }
            page = await self._read(SCALING, "DescribeAutoScalingInstances", parameters)
            counted = known_total(page.total_count, what)
            if total is not None and counted != total:
                return found, None
            total = counted
            listed = page.auto_scaling_instance_set or ()
            if not listed:
                break
            found += listed
        return found, total

    async def instance_type(self, name: str) -> InstanceType | None:
        """Return a type of machine, None where it is unknown."""
        parameters = {"Filters": [{"Name": "instance-type", "Values": [name]}]}
        listed = await self._read(MACHINES, "DescribeInstanceTypeConfigs", parameters)
        return next(iter(listed.instance_type_config_set or ()), None)

    async def subnet_zone(self, subnet: str) -> str:
        """Return the name of a subnet's zone, empty for an unknown subnet."""
        listed = await self._read(NETWORKS, "DescribeSubnets", {"SubnetIds": [subnet]})
        return next((one.zone for one in listed.subnet_set or ()), "")

    async def zones(self) -> dict[str, str]:
        """Return the zones' numbers by name. Raises CloudError, also for a region without zones."""
        listed = await self._read(MACHINES, "DescribeZones", {})
        found = {one.zone: one.zone_id for one in listed.zone_set or ()}
        if not found:
            raise CloudError(f"cvm:DescribeZones returned no zone of {self._region}")
        return found

    async def failed_activity(self, group: str, since: Instant) -> FailedActivity | None:
        """Return why the group's last failed activity since then failed, None without one."""
        parameters = {
            "Filters": [
                {"Name": "auto-scaling-group-id", "Values": [group]},
                {"Name": "activity-status-code", "Values": ["FAILED", "PARTIALLY_SUCCESSFUL"]},
            ],
            "StartTime": format_rfc3339(since),
            "Limit": 1,
        }
        listed = await self._read(SCALING, "DescribeAutoScalingActivities", parameters)
        for one in listed.activity_set or ():
            detail = next(iter(one.detailed_status_message_set or ()), _Error(one.status_code))
            message = detail.message or one.status_message
            return FailedActivity(detail.code, _cause(detail.code), message)
        return None

    async def scaling_policies(self, groups: Sequence[str]) -> Entries[ScalingPolicy]:
        """Return the scaling policies of these groups. Raises CloudError, which names the right that is missing."""
        found = await self._of_groups(
            "DescribeScalingPolicies", groups, lambda listed: listed.scaling_policy_set
        )
        return read_entries(found, ScalingPolicy, "AutoScalingPolicyId")

    async def scheduled_actions(self, groups: Sequence[str]) -> Entries[ScheduledAction]:
        """Return the scheduled actions of these groups, also those that have ended. Raises as ``scaling_policies``."""
        found = await self._of_groups(
            "DescribeScheduledActions", groups, lambda listed: listed.scheduled_action_set
        )
        return read_entries(found, ScheduledAction, "ScheduledActionId")

    async def set_size(self, group: str, size: int) -> None:
        """Set a group's desired capacity."""
        await self._change("ModifyAutoScalingGroup", {"AutoScalingGroupId": group, "DesiredCapacity": size})

    async def remove(self, group: str, instances: Sequence[str]) -> None:
        """Remove instances of a group, which lowers its desired capacity."""
        await self._change("RemoveInstances", {"AutoScalingGroupId": group, "InstanceIds": list(instances)})

    async def create_configuration(self, body: Json) -> str:
        """Create a launch configuration, and return its id."""
        answer = await self._change("CreateLaunchConfiguration", body)
        return str(answer.get("LaunchConfigurationId") or "")

    async def create_group(self, body: Json) -> str:
        """Create a group, and return its id."""
        answer = await self._change("CreateAutoScalingGroup", body)
        return str(answer.get("AutoScalingGroupId") or "")

    async def delete_group(self, group: str) -> None:
        """Delete a group; Tencent refuses that while it has instances."""
        await self._change("DeleteAutoScalingGroup", {"AutoScalingGroupId": group})

    async def delete_configuration(self, configuration: str) -> None:
        """Delete a launch configuration; Tencent refuses that while a group has it."""
        await self._change("DeleteLaunchConfiguration", {"LaunchConfigurationId": configuration})

    async def _of_groups(self, action: str, groups: Sequence[str], entries: _EntriesOf) -> list[Any]:
        """Return a list's entries of these groups, as many groups a call as a filter takes."""
        found: list[Any] = []
        with needs_right(f"as:{action}"):
            for start in range(0, len(groups), _VALUES_OF_A_FILTER):
                part = groups[start : start + _VALUES_OF_A_FILTER]
                what = f"as:{action} of {', '.join(part)}"
                found += await self._pages(action, "auto-scaling-group-id", part, entries, what)
        return found

    async def _pages(
        self, action: str, filter_: str, values: Sequence[str], entries: _EntriesOf, what: str
    ) -> list[Any]:
        """Return all entries of a list that a filter leaves."""
        found: list[Any] = []
        while True:
            parameters = {
                "Filters": [{"Name": filter_, "Values": list(values)}],
                "Limit": _PAGE,
                "Offset": len(found),
            }
            listed = await self._read(SCALING, action, parameters)
            page = entries(listed) or ()
            found += page
            if not page or len(found) >= known_total(listed.total_count, what):
                return check_whole(found, listed.total_count, what)

    async def _one(self, action: str, parameters: Mapping[str, Any], key: str) -> Json:
        response = await self._rest.read(partial(self._request, SCALING, action, parameters))
        found = msgspec.json.decode(response.body)["Response"].get(key) or []
        if not found:
            raise CloudError(f"as:{action} returned nothing for {parameters}")
        model: Json = found[0]
        return model

    async def _read(self, service: Service, action: str, parameters: Mapping[str, Any]) -> _Listed:
        response = await self._rest.read(partial(self._request, service, action, parameters))
        try:
            envelope = msgspec.json.decode(response.body, type=_Envelope)
            listed = decoded_without_nulls(envelope.response, _Listed)
        except UNREADABLE as error:
            raise CloudError(f"{service.name}:{action}: the answer cannot be read: {error}") from error
        if listed == _Listed():
            raise CloudError(f"{service.name}:{action}: the answer has no list")
        return listed

    async def _change(self, action: str, parameters: Mapping[str, Any]) -> Json:
        response = await self._rest.change(await self._request(SCALING, action, parameters))
        answer: Json = msgspec.json.decode(response.body)["Response"]
        return answer

    async def _request(self, service: Service, action: str, parameters: Mapping[str, Any]) -> Request:
        keys, now, body = await self._credentials(), self._clock.now(), msgspec.json.encode(parameters)
        stamp = Stamp(now // seconds(1), format_rfc3339(now)[:10])
        signed = {
            "content-type": "application/json",
            "host": service.host,
            "x-tc-action": action,
        }
        headers = {
            "Content-Type": signed["content-type"],
            "Host": service.host,
            "X-TC-Action": action,
            "X-TC-Version": service.version,
            "X-TC-Region": self._region,
            "X-TC-Timestamp": str(stamp.seconds),
            "Authorization": authorization(keys, stamp, service.name, signed, body),
        }
        if keys.token:
            headers["X-TC-Token"] = keys.token
        return Request("POST", self._endpoint(service), {}, headers, body)
