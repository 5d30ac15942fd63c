"""What new nodes of groups look like: scaling configurations, types of machines and zones, read seldom."""

from __future__ import annotations

import asyncio

from kubetide.clouds.alibaba.api import AlibabaApi
from kubetide.clouds.alibaba.model import InstanceType, ScalingConfiguration, ScalingGroup
from kubetide.clouds.alibaba.template import build_node, offering
from kubetide.clouds.common.template import ZONE
from kubetide.clouds.common.zones import NetworkZones
from kubetide.objects.node import Node
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Offering
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration, hours, minutes

_CONFIGURATIONS_FOR, _TYPES_FOR = minutes(10), hours(24)


class Templates:
    """Configurations are read every ten minutes, types of machines once a day, zones of vSwitches once.

    A type that is not among them is looked for every ten minutes. What cannot be read again serves on as it was.

    Attributes:
        type_problems: By name, why types of machines cannot be read.

    Args:
        api: The region's Elastic Scaling Service.
        region: Its name.
        clock: Time.
    """

    def __init__(self, api: AlibabaApi, region: str, clock: Clock) -> None:
        self._api, self._region, self._clock = api, region, clock
        self._configurations: dict[str, tuple[Duration, ScalingConfiguration]] = {}
        self._unread: dict[str, CloudError] = {}
        self._types: dict[str, InstanceType] = {}
        self._types_at: Duration | None = None
        self._types_unread: CloudError | None = None
        self.type_problems: dict[str, str] = {}
        self._types_turn = asyncio.Lock()
        self.zones = NetworkZones(api.zone_of)

    def renew(self) -> None:
        """Ask again for what could not be read; until then each is asked for once."""
        self._unread.clear()
        self._types_unread = None

    def known(self, group: ScalingGroup) -> ScalingConfiguration | None:
        """Return the group's configuration as it was read last, None where it never was."""
        known = self._configurations.get(group.active_scaling_configuration_id)
        return None if known is None else known[1]

    async def configuration(self, group: ScalingGroup) -> ScalingConfiguration:
        """Return the group's configuration. Raises CloudError."""
        configuration_id, now = group.active_scaling_configuration_id, self._clock.monotonic()
        if not configuration_id:
            # Asked for no id, Alibaba answers with any configuration of the group, active or not.
            raise CloudError(f"scaling group {group.scaling_group_id} has no active scaling configuration")
        known = self._configurations.get(configuration_id)
        if known is None or now - known[0] >= _CONFIGURATIONS_FOR:
            if configuration_id not in self._unread:
                try:
                    found = await self._read(group.scaling_group_id, configuration_id)
                    known = self._configurations[configuration_id] = (now, found)
                except CloudError as error:
                    self._unread[configuration_id] = error
            if known is None:
                raise self._unread[configuration_id]
        return known[1]

    async def _read(self, group: str, configuration: str) -> ScalingConfiguration:
        found = await self._api.configuration(group, configuration)
        if found is None:
            raise CloudError(f"unable to get first ScalingConfiguration for {configuration}")
        return found

    async def types(self, needed: str = "") -> dict[str, InstanceType]:
        """Return all types of machines by name, read again where one that is needed is new. Raises CloudError."""
        now = self._clock.monotonic()
        async with self._types_turn:
            life = _TYPES_FOR if not needed or needed in self._types else _CONFIGURATIONS_FOR
            is_due = self._types_at is None or now - self._types_at >= life
            if is_due and self._types_unread is None:
                try:
                    found, self.type_problems = await self._api.instance_types()
                    lost = {name: one for name, one in self._types.items() if name in self.type_problems}
                    self._types, self._types_at = lost | {one.instance_type_id: one for one in found}, now
                except CloudError as error:
                    self._types_unread = error
            if self._types_at is None and self._types_unread is not None:
                raise self._types_unread
        return self._types

    async def node(self, group: ScalingGroup, name: str, *, in_one_zone: bool) -> Node:
        """Return the node that the group, which goes by that name, makes next. Raises CloudError.

        The zone of a group that may be in several is not known, as upstream's.
        """
        configuration = await self.configuration(group)
        kind = configuration.instance_type
        size = (await self.types(kind)).get(kind)
        if size is None:
            missing = f"failed to find the specific instance type by Id: {kind}"
            raise CloudError(self.type_problems.get(kind, missing))
        zone = await self.zones.of(group.vswitches[0]) if in_one_zone and group.vswitches else ""
        return build_node(name, configuration, size, self._region, zone=zone)

    def doubts(self, group: ScalingGroup) -> tuple[str, ...]:
        """Return a warning if the group's instance type could not be read again and an earlier reading is used."""
        configuration = self.known(group)
        kind = "" if configuration is None else configuration.instance_type
        if kind not in self.type_problems or kind not in self._types:
            return ()
        return (f"an earlier reading of the instance type is used: {self.type_problems[kind]}",)

    def offerings(self, group: ScalingGroup, node: Node) -> tuple[Offering, ...]:
        """Return the way by which the group's next machine comes."""
        configuration = self.known(group)
        assert configuration is not None, "its node was built"
        return (offering(configuration, (node.metadata.labels or {}).get(ZONE, "")),)
