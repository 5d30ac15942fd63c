"""What new nodes of groups look like: launch configurations, types of machines, subnets and zones, read seldom."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubetide.clouds.common.readings import attempt
from kubetide.clouds.common.zones import NetworkZones
from kubetide.clouds.tencent.api import TencentApi
from kubetide.clouds.tencent.model import Group, InstanceType, LaunchConfiguration
from kubetide.clouds.tencent.template import build_node, problems
from kubetide.objects.node import Node
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Offering
from kubetide.ports.errors import CloudError, CloudUnsupported
from kubetide.units.time import Duration, minutes

_CONFIGURATIONS_FOR = minutes(10)
_UNKNOWN = "Not implemented: the type of the group's machines is not known"


class Templates:
    """Launch configurations are read every ten minutes; types of machines, subnets and zones once.

    Args:
        api: The region's Auto Scaling.
        region: Its name.
        clock: Time.
        used: Returns the ids of all launch configurations in use, which are read in one call.
    """

    def __init__(self, api: TencentApi, region: str, clock: Clock, used: Callable[[], Iterable[str]]) -> None:
        self._api, self._region, self._clock, self._used = api, region, clock, used
        self._configurations: dict[str, LaunchConfiguration] = {}
        self._configurations_at: Duration | None = None
        self._problems: dict[str, str] = {}
        self._types: dict[str, InstanceType] = {}
        self._not_before: dict[str, Duration] = {}
        self._zones: dict[str, str] = {}
        self._zones_at: Duration | None = None
        self.zones = NetworkZones(api.subnet_zone)

    async def zone_numbers(self, needed: Iterable[str] = ()) -> dict[str, str]:
        """Return the numbers of all zones by name. Raises CloudError.

        While a zone that is needed is not among them, such as a new one, they are read again every ten minutes.
        """
        now = self._clock.monotonic()
        if self._zones_at is None:
            self._zones, self._zones_at = await self._api.zones(), now
        elif now - self._zones_at >= _CONFIGURATIONS_FOR and not self._zones.keys() >= {*needed} - {""}:
            self._zones_at = now
            self._zones = (await attempt(self._api.zones()))[0] or self._zones
        return self._zones

    async def configuration(self, configuration_id: str) -> LaunchConfiguration | None:
        """Return a launch configuration, None where there is none of that id. Raises CloudError.

        One that was read before serves on while it, or the list of all, cannot be read again.
        """
        if not configuration_id:
            return None
        await self.renew(configuration_id)
        found = self._configurations.get(configuration_id)
        if found is None and configuration_id in self._problems:
            raise CloudError(self._problems[configuration_id])
        return found

    async def renew(self, configuration_id: str) -> None:
        """Read all launch configurations if they are old, or if this one is not known. Raises CloudError if it was never read."""
        now = self._clock.monotonic()
        is_old = self._configurations_at is None or now - self._configurations_at >= _CONFIGURATIONS_FOR
        if is_old or not (configuration_id in self._configurations or configuration_id in self._problems):
            try:
                await self._read_configurations(configuration_id, now)
            except CloudError:
                if configuration_id not in self._configurations:
                    raise
                self._ask_again_soon(now)

    async def _read_configurations(self, configuration_id: str, now: Duration) -> None:
        """Read all launch configurations in use, and that one; one that cannot be read stays as it was."""
        found, problems = await self._api.launch_configurations(sorted({*self._used(), configuration_id}))
        lost = {one: held for one, held in self._configurations.items() if one in problems}
        self._configurations = lost | {one.launch_configuration_id: one for one in found}
        self._problems, self._configurations_at = problems, now
        if problems:
            self._ask_again_soon(now)

    def _ask_again_soon(self, now: Duration) -> None:
        """What was read last serves on; a minute later it is asked for again."""
        self._configurations_at = Duration(now - _CONFIGURATIONS_FOR + minutes(1))

    def doubts(self, group: Group | None) -> tuple[str, ...]:
        """Return what is wrong with the group's tags, and that its launch configuration is an earlier reading where it is."""
        if group is None:
            return ()
        doubts, own = problems(group.tags or ()), group.launch_configuration_id
        if own in self._problems and own in self._configurations:
            earlier = f"an earlier reading of the launch configuration is used: {self._problems[own]}"
            return (*doubts, earlier)
        return doubts

    async def type_named(self, name: str) -> tuple[InstanceType | None, str]:
        """Return a type of machine, None where it is unknown or cannot be read, and then why."""
        if name not in self._types:
            found, error = await attempt(self._api.instance_type(name))
            if found is None:
                return None, error or f"there is no instance type {name} in {self._region}"
            self._types[name] = found
        return self._types[name], ""

    async def types_named(self, names: Iterable[str]) -> dict[str, InstanceType]:
        """Return those of the types that are known; one that is not is asked for again after ten minutes."""
        now, found = self._clock.monotonic(), {}
        for name in names:
            if name not in self._types and now < self._not_before.get(name, now):
                continue
            size, _ = await self.type_named(name)
            if size is None:
                self._not_before[name] = Duration(now + _CONFIGURATIONS_FOR)
            else:
                found[name] = size
        return found

    async def node(self, group: Group | None, name: str) -> Node:
        """Return the node that the group, which goes by that name, makes next. Raises CloudError."""
        configuration = None if group is None else await self.configuration(group.launch_configuration_id)
        if group is None or configuration is None:
            asked = "the group" if group is None else f"launch configuration {group.launch_configuration_id}"
            raise CloudUnsupported(f"{_UNKNOWN}: {asked} is not there")
        size, why = await self.type_named(configuration.instance_type)
        if size is None:
            raise CloudUnsupported(f"{_UNKNOWN}: {why}")
        return await self.node_of(group, size, name)

    async def node_of(self, group: Group, size: InstanceType, name: str) -> Node:
        """Return the node that the group makes of that type. Raises CloudError."""
        zone = await self.zones.of(group.subnets[0]) if group.subnets else ""
        number = (await self.zone_numbers((zone,))).get(zone, "")
        if not number:
            raise CloudError("failed to get asg zone: it has no subnet, or one in an unknown zone")
        return build_node(group, size, region=self._region, zone_number=number, name=name)

    def offerings(
        self, group: Group | None, node: Node | None, kind: str = ""
    ) -> tuple[Offering, ...] | None:
        """Return the way by which the group's next machine comes, of that type where one is given; None if unknown."""
        configuration = self._configurations.get(group.launch_configuration_id) if group else None
        if configuration is None or node is None:
            return None
        is_spot = configuration.instance_charge_type == "SPOTPAID"
        zone = (node.metadata.labels or {}).get("topology.kubernetes.io/zone", "")
        return (
            Offering(
                instance_type=kind or configuration.instance_type,
                zone=zone,
                market="spot" if is_spot else "on-demand",
            ),
        )
