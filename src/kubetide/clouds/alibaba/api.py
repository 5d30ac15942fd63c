"""The calls to Alibaba Cloud that the provider makes, signed and typed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from kubetide.clouds.alibaba.endpoints import MACHINES, NETWORKS, SCALING, Service, host_of
from kubetide.clouds.alibaba.model import (
    Alarm,
    InstanceType,
    ScalingConfiguration,
    ScalingGroup,
    ScalingInstance,
    ScalingRule,
    ScheduledTask,
    VSwitch,
)
from kubetide.clouds.alibaba.signing import Call, query_string, signed_headers
from kubetide.clouds.common.entries import Entries, read_entries
from kubetide.clouds.common.pagination import PageTokens, check_whole, each_once, known_total
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
from kubetide.clouds.common.times import known_time
from kubetide.clouds.common.tokens import Keys
from kubetide.objects.base import Json
from kubetide.ports.clock import Clock
from kubetide.ports.errors import CloudCause, CloudError
from kubetide.units.seeds import uuid_of
from kubetide.units.time import Instant, format_rfc3339

T = TypeVar("T")
Credentials = Callable[[], Awaitable[Keys]]
"""Returns keys that are valid now."""

_FAILED = {"Failed", "Warning", "Rejected"}
_GROUPS_A_CALL, _ENTRIES_A_PAGE = 20, 50
_MARK = '{"cluster-autoscaler/alicloud/managed":"true"}'


class _Failure(msgspec.Struct, frozen=True, rename="pascal"):
    code: str = ""
    message: str = ""
    request_id: str = ""


class _Groups(msgspec.Struct, frozen=True, rename="pascal"):
    scaling_group: tuple[Any, ...] | None = None


class _Configurations(msgspec.Struct, frozen=True, rename="pascal"):
    scaling_configuration: tuple[ScalingConfiguration, ...] | None = None


class _Instances(msgspec.Struct, frozen=True, rename="pascal"):
    scaling_instance: tuple[ScalingInstance, ...] | None = None


class _Types(msgspec.Struct, frozen=True, rename="pascal"):
    instance_type: tuple[Any, ...] | None = None


class _VSwitches(msgspec.Struct, frozen=True, rename="pascal"):
    v_switch: tuple[VSwitch, ...] | None = None


class _Activity(msgspec.Struct, frozen=True, rename="pascal"):
    status_code: str = ""
    status_message: str = ""
    start_time: str = ""
    error_code: str = ""
    error_message: str = ""


class _Activities(msgspec.Struct, frozen=True, rename="pascal"):
    scaling_activity: tuple[_Activity, ...] | None = None


class _Rules(msgspec.Struct, frozen=True, rename="pascal"):
    scaling_rule: tuple[Any, ...] | None = None


class _Alarms(msgspec.Struct, frozen=True, rename="pascal"):
    alarm: tuple[Any, ...] | None = None


class _Tasks(msgspec.Struct, frozen=True, rename="pascal"):
    scheduled_task: tuple[Any, ...] | None = None


class _Listed(msgspec.Struct, frozen=True, rename="pascal"):
    """Every list of these APIs: one of the lists is there."""

    total_count: int | None = None
    next_token: str = ""
    scaling_groups: _Groups | None = None
    scaling_configurations: _Configurations | None = None
    scaling_instances: _Instances | None = None
    instance_types: _Types | None = None
    scaling_activities: _Activities | None = None
    v_switches: _VSwitches | None = None
    scaling_rules: _Rules = _Rules()
    alarm_list: _Alarms = _Alarms()
    scheduled_tasks: _Tasks = _Tasks()


_EntriesOf = Callable[[_Listed], Sequence[Any] | None]
"""Returns the one of the lists that an action answers with."""


def refusal(response: Response) -> CloudError | None:
    """Return what an answer of the API refuses, None for a good answer."""
    if response.status < 300:
        return None
    try:
        failure = msgspec.json.decode(response.body, type=_Failure)
    except UNREADABLE:
        failure = _Failure(message=response.body.decode("utf-8", "replace")[:200])
    code = failure.code or str(response.status)
    return CloudError(
        f"{code}: {failure.message} (request {failure.request_id})",
        error_code=code,
        cause=_cause(code) if failure.code else cause_of_status(response.status),
        retry_after=retry_after(response.headers),
    )


def _cause(code: str) -> CloudCause:
    if code == "OperationDenied.NoStock" or code.endswith(".NotEnoughStock"):
        return "OutOfCapacity"
    if code.startswith("QuotaExceed"):
        return "Quota"
    if code.startswith("Throttling"):
        return "Throttled"
    return "Permission" if code.startswith(("Forbidden", "NoPermission")) else "Other"


class AlibabaApi:
    """Elastic Scaling Service of one region.

    Args:
        rest: Sends the requests.
        clock: The time that requests are signed with.
        credentials: Makes keys.
        region: ``cn-hangzhou``.
        endpoint: Makes the URL of a host.
        seed: Of the words that make each request unlike all others.
    """

    def __init__(
        self,
        rest: Rest,
        clock: Clock,
        credentials: Credentials,
        region: str,
        *,
        endpoint: Callable[[str], str] = lambda host: f"https://{host}/",
        seed: int = 0,
    ) -> None:
        self._rest, self._clock, self._credentials, self._region = rest, clock, credentials, region
        self._endpoint, self._seed, self._signed = endpoint, seed, 0

    async def groups(self, ids: Sequence[str]) -> Entries[ScalingGroup]:
        """Return those of the groups that exist, twenty a call."""
        found: list[Any] = []
        for start in range(0, len(ids), _GROUPS_A_CALL):
            part = ids[start : start + _GROUPS_A_CALL]
            query = {f"ScalingGroupId.{number}": one for number, one in enumerate(part, 1)}
            if len(part) > 1:
                query["PageSize"] = str(_GROUPS_A_CALL)
            listed = await self._read(SCALING, "DescribeScalingGroups", query)
            found += (listed.scaling_groups.scaling_group if listed.scaling_groups else None) or ()
        return read_entries(found, ScalingGroup, "ScalingGroupId")

    async def groups_with_tag(self, key: str, value: str) -> Entries[ScalingGroup]:
        """Return all groups that have the tag."""
        found = await self._pages(
            "DescribeScalingGroups",
            {"Tag.1.Key": key, "Tag.1.Value": value},
            lambda listed: listed.scaling_groups.scaling_group if listed.scaling_groups else None,
            f"groups with the tag {key}",
            _GROUPS_A_CALL,
        )
        return read_entries(found, ScalingGroup, "ScalingGroupId")

    async def group_model(self, group: str) -> Json:
        """Return one group whole."""
        answer = await self._answer(SCALING, "DescribeScalingGroups", {"ScalingGroupId.1": group})
        return _first(answer, "ScalingGroups", "ScalingGroup", group)

    async def configuration_model(self, group: str, configuration: str) -> Json:
        """Return one scaling configuration whole; passwords are never in it."""
        query = {"ScalingConfigurationId.1": configuration, "ScalingGroupId": group}
        answer = await self._answer(SCALING, "DescribeScalingConfigurations", query)
        return _first(answer, "ScalingConfigurations", "ScalingConfiguration", configuration)

    async def zone_of(self, vswitch: str) -> str:
        """Return the zone of a vSwitch, empty for one that there is not."""
        listed = await self._read(NETWORKS, "DescribeVSwitches", {"VSwitchId": vswitch})
        found = (listed.v_switches.v_switch if listed.v_switches else None) or ()
        return next((one.zone_id for one in found), "")

    async def configuration(self, group: str, configuration: str) -> ScalingConfiguration | None:
        """Return a scaling configuration, None where it does not exist."""
        query = {"ScalingConfigurationId.1": configuration, "ScalingGroupId": group}
        listed = await self._read(SCALING, "DescribeScalingConfigurations", query)
        found = listed.scaling_configurations.scaling_configuration if listed.scaling_configurations else None
        return next(iter(found or ()), None)

    async def instances(self, group: str) -> list[ScalingInstance]:
        """Return all instances of a group."""
        found: list[ScalingInstance] = []
        while True:
            query = {
                "ScalingGroupId": group,
                "PageSize": str(_ENTRIES_A_PAGE),
                "PageNumber": str(len(found) // _ENTRIES_A_PAGE + 1),
            }
            listed = await self._read(SCALING, "DescribeScalingInstances", query)
            page = (listed.scaling_instances.scaling_instance if listed.scaling_instances else None) or ()
            found += page
            if _is_last(listed, page, found, f"instances of {group}", _ENTRIES_A_PAGE):
                found = each_once(found, lambda one: one.instance_id)
                if not all(one.instance_id for one in found):
                    raise CloudError(f"the list of instances of {group} has one without InstanceId")
                return check_whole(found, listed.total_count, f"instances of {group}")

    async def instance_types(self) -> Entries[InstanceType]:
        """Return all types of machines."""
        found: list[Any] = []
        query: dict[str, str] = {}
        tokens = PageTokens("ecs:DescribeInstanceTypes")
        while True:
            listed = await self._read(MACHINES, "DescribeInstanceTypes", query)
            found += (listed.instance_types.instance_type if listed.instance_types else None) or ()
            if not listed.next_token:
                return read_entries(found, InstanceType, "InstanceTypeId")
            tokens.check(listed.next_token)
            query = {"NextToken": listed.next_token}

    async def failed_activity(self, group: str, since: Instant) -> FailedActivity | None:
        """Return why the group's last failed activity since then failed, None without one."""
        query = {"ScalingGroupId": group, "PageSize": "10"}
        listed = await self._read(SCALING, "DescribeScalingActivities", query)
        found = (listed.scaling_activities.scaling_activity if listed.scaling_activities else None) or ()
        for one in found:
            started = known_time(one.start_time)
            if one.status_code not in _FAILED or started is None or started < since:
                continue
            code = one.error_code or one.status_message.partition(":")[0]
            return FailedActivity(code, _cause(code), one.error_message or one.status_message)
        return None

    async def scaling_rules(self) -> Entries[ScalingRule]:
        """Return the scaling rules of the region. Raises CloudError, which names the right that is missing."""
        found = await self._of_region(
            "DescribeScalingRules", lambda listed: listed.scaling_rules.scaling_rule
        )
        return read_entries(found, ScalingRule, "ScalingRuleId")

    async def alarms(self) -> Entries[Alarm]:
        """Return the alarms of the region that may execute scaling rules. Raises as ``scaling_rules``."""
        found = await self._of_region("DescribeAlarms", lambda listed: listed.alarm_list.alarm)
        return read_entries(found, Alarm, "AlarmTaskId")

    async def scheduled_tasks(self) -> Entries[ScheduledTask]:
        """Return the scheduled tasks of the region, also those that have ended. Raises as ``scaling_rules``."""
        found = await self._of_region(
            "DescribeScheduledTasks",
            lambda listed: listed.scheduled_tasks.scheduled_task,
        )
        return read_entries(found, ScheduledTask, "ScheduledTaskId")

    async def set_size(self, group: str, size: int) -> None:
        """Set a group's total capacity."""
        query = {
            "ScalingGroupId": group,
            "AdjustmentType": "TotalCapacity",
            "AdjustmentValue": str(size),
            "SyncActivity": "true",
            "ActivityMetadata": _MARK,
        }
        await self._change("ScaleWithAdjustment", query)

    async def remove(self, group: str, instance: str) -> None:
        """Remove one instance of a group."""
        await self._change("RemoveInstances", {"ScalingGroupId": group, "InstanceId.1": instance})

    async def create_group(self, query: Mapping[str, str]) -> str:
        """Create a group without a configuration, and return its id."""
        return str((await self._change("CreateScalingGroup", query)).get("ScalingGroupId") or "")

    async def create_configuration(self, group: str, query: Mapping[str, str]) -> str:
        """Create a configuration of a group, and return its id."""
        answer = await self._change("CreateScalingConfiguration", {**query, "ScalingGroupId": group})
        return str(answer.get("ScalingConfigurationId") or "")

    async def enable_group(self, group: str, configuration: str) -> None:
        """Let a group make machines of that configuration."""
        query = {"ScalingGroupId": group, "ActiveScalingConfigurationId": configuration}
        await self._change("EnableScalingGroup", query)

    async def delete_group(self, group: str) -> None:
        """Delete a group and its configurations; Alibaba refuses that while it has instances."""
        await self._change("DeleteScalingGroup", {"ScalingGroupId": group, "ForceDelete": "false"})

    async def _of_region(self, action: str, entries: _EntriesOf) -> list[Any]:
        with needs_right(f"ess:{action}"):
            return await self._pages(action, {}, entries, f"ess:{action}", _ENTRIES_A_PAGE)

    async def _pages(
        self, action: str, query: Mapping[str, str], entries: _EntriesOf, what: str, size: int
    ) -> list[Any]:
        """Return all entries of a list, so many a page."""
        found: list[Any] = []
        while True:
            number = str(len(found) // size + 1)
            listed = await self._read(SCALING, action, {**query, "PageSize": str(size), "PageNumber": number})
            page = entries(listed) or ()
            found += page
            if _is_last(listed, page, found, what, size):
                return found

    async def _answer(self, service: Service, action: str, query: Mapping[str, str]) -> Json:
        return _decoded(
            service, action, await self._rest.read(partial(self._request, service, action, query)), Json
        )

    async def _read(self, service: Service, action: str, query: Mapping[str, str]) -> _Listed:
        response = await self._rest.read(partial(self._request, service, action, query))
        listed = _decoded(service, action, response, _Listed)
        if listed == _Listed():
            raise CloudError(f"{service.name}:{action}: the answer has no list")
        return listed

    async def _change(self, action: str, query: Mapping[str, str]) -> Json:
        response = await self._rest.change(await self._request(SCALING, action, query))
        try:
            return _decoded(SCALING, action, response, Json)
        except CloudError as error:
            error.may_be_done = True
            raise

    async def _request(self, service: Service, action: str, query: Mapping[str, str]) -> Request:
        self._signed += 1
        now, host = self._clock.now(), host_of(service, self._region)
        call = Call(
            action=action,
            version=service.version,
            host=host,
            date=format_rfc3339(now),
            nonce=uuid_of(self._seed, now, self._signed).replace("-", ""),
        )
        asked = {**query, "RegionId": self._region}
        headers = signed_headers(await self._credentials(), call, asked)
        return Request("POST", f"{self._endpoint(host)}?{query_string(asked)}", {}, headers)


def _decoded(service: Service, action: str, response: Response, kind: type[T]) -> T:
    try:
        return decoded_without_nulls(response.body, kind)
    except UNREADABLE as error:
        raise CloudError(f"{service.name}:{action}: the answer cannot be read: {error}") from error


def _is_last(listed: _Listed, page: Sequence[object], found: Sequence[object], what: str, size: int) -> bool:
    """Return whether no page follows. Raises CloudError for a list that ends early.

    What such a list leaves out must not count as gone.
    """
    if len(page) < size:
        check_whole(found, listed.total_count, what)
    return len(found) >= known_total(listed.total_count, what)


def _first(answer: Json, several: str, one: str, name: str) -> Json:
    found = (answer.get(several) or {}).get(one) or []
    if not found:
        raise CloudError(f"ess: there is no {one} {name}")
    model: Json = found[0]
    return model
