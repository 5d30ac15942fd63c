"""The Cloud port over Tencent Cloud's Auto Scaling groups.

A refresh costs one list of groups a hundred of them and one list of instances a group; launch
configurations are read every ten minutes, types of machines, subnets and zones once.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.acting.parallel import in_parallel
from kubetide.clouds.common.gpu import NVIDIA_TESLA
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.orders import Orders
from kubetide.clouds.common.placeholders import is_of, split
from kubetide.clouds.common.readings import GroupReading, ShownGroups, attempt
from kubetide.clouds.common.sizes import check_delete, check_increase, decreased, increased
from kubetide.clouds.tencent.api import TencentApi
from kubetide.clouds.tencent.model import Group, InstanceType, LaunchConfiguration
from kubetide.clouds.tencent.model import Instance as Machine
from kubetide.clouds.tencent.references import parse_provider_id, provider_id
from kubetide.clouds.tencent.template import GPU_LABEL, build_node
from kubetide.objects.node import Node
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud, Instance, NodeGroup, NodeTemplate, Offering
from kubetide.ports.errors import CloudError, CloudUnsupported
from kubetide.units.time import Duration, minutes

_AT_ONCE = 4
_CONFIGURATIONS_FOR = minutes(10)
_GONE = "Removing"
"""The state of instances that are left out, in upstream's spelling; the API's own is ``REMOVING``."""


class TencentCloud(Cloud):
    """Node groups are Auto Scaling groups; ids are ``asg-…``.

    Args:
        api: The region's Auto Scaling.
        nodes: The groups of ``--nodes``.
        region: ``ap-guangzhou``.
        clock: Time.
    """

    def __init__(self, api: TencentApi, nodes: Sequence[NodeSpec], region: str, clock: Clock) -> None:
        self._api, self._region, self._clock = api, region, clock
        self._specs = {spec.name: spec for spec in nodes}
        self._groups: dict[str, Group] = {}
        self._are_listed = False
        self._machines: dict[str, list[Machine]] = {}
        self._configurations: dict[str, LaunchConfiguration] = {}
        self._configurations_at: Duration | None = None
        self._types: dict[str, InstanceType] = {}
        self._zones: dict[str, str] = {}
        self._subnet_zones: dict[str, str] = {}
        self._shown = ShownGroups()
        self._has_begun = False
        self._ordered: set[str] = set()
        self._orders = Orders(api.failed_activity, lambda name: provider_id("", name))

    @property
    def name(self) -> str:
        """``tencentcloud``."""
        return "tencentcloud"

    @property
    def gpu_label(self) -> str:
        """The label that names a node's GPU type."""
        return GPU_LABEL

    @property
    def gpu_types(self) -> Sequence[str]:
        """The GPU types of the label."""
        return NVIDIA_TESLA

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return all groups as they are now, ordered by id."""
        await self.renew()
        return self._shown.show([await self._orders.with_failures(one) for one in await self.readings()])

    async def renew(self) -> None:
        """Forget sizes and instances. The first time, one of the groups must exist. Raises CloudError."""
        self._are_listed = False
        self._machines.clear()
        if not self._has_begun:
            await self._list_groups()
            if self._specs and not self._groups:
                raise CloudError(f"none of the groups of --nodes exists: {', '.join(sorted(self._specs))}")
            self._has_begun = True

    async def _list_groups(self) -> None:
        listed = await self._api.groups(sorted(self._specs))
        self._groups = {one.auto_scaling_group_id: one for one in listed}
        self._are_listed = True

    async def readings(self) -> list[GroupReading]:
        """Return each group with what could and what could not be read of it."""
        names = sorted(self._specs)
        await attempt(self._prepare())
        readings = await in_parallel([self._specs[name] for name in names], self._reading, limit=_AT_ONCE)
        if not any(one.instances_error for one in readings):
            self._forget_gone()
        return readings

    async def _prepare(self) -> None:
        """Read what all groups share, once."""
        if not self._are_listed:
            await self._list_groups()
        await self._zone_numbers()
        for name in sorted(self._groups)[:1]:
            await self._configuration(self._groups[name].launch_configuration_id)

    async def _reading(self, spec: NodeSpec) -> GroupReading:
        group, target_error = await attempt(self._group(spec.name))
        machines, machines_error = await attempt(self._machines_of(spec.name, anew=True))
        numbers, zones_error = await attempt(self._zone_numbers())
        node, template_error = await attempt(self._node(group))
        instances = [
            Instance(provider_id=provider_id(numbers[one.zone], one.instance_id))
            for one in machines or ()
            if numbers and one.zone in numbers and one.life_cycle_state != _GONE
        ]
        return GroupReading(
            id=spec.name,
            min_size=spec.min_size,
            max_size=spec.max_size,
            target=group.desired_capacity if group else None,
            target_error=target_error,
            instances=tuple(instances),
            instances_error=machines_error or zones_error,
            stateless=frozenset(one.provider_id for one in instances),
            template=self._template(spec.name, node) if node else None,
            template_error=template_error,
            offerings=self._offerings(group, node),
            debug=spec.name,
        )

    async def _group(self, name: str) -> Group:
        if not self._are_listed:
            await self._list_groups()
        if name not in self._groups:
            raise CloudError(f"as:DescribeAutoScalingGroups returned a invalid response: no group {name}")
        return self._groups[name]

    async def _machines_of(self, name: str, *, anew: bool = False) -> list[Machine]:
        if anew or name not in self._machines:
            self._machines[name] = await self._api.instances(name)
        return self._machines[name]

    def _forget_gone(self) -> None:
        """Forget removals that are complete: instances that no list has any more."""
        self._ordered &= {one.instance_id for listed in self._machines.values() for one in listed}

    async def _zone_numbers(self) -> dict[str, str]:
        if not self._zones:
            self._zones = await self._api.zones()
        return self._zones

    # ── templates ───────────────────────────────────────────────────────────────────────────────

    async def _node(self, group: Group | None) -> Node:
        size = None if group is None else await self._type(group)
        if group is None or size is None:
            raise CloudUnsupported("Not implemented: the type of the group's machines is not known")
        subnets = group.subnet_id_set or ()
        zone = await self._subnet_zone(subnets[0]) if subnets else ""
        number = (await self._zone_numbers()).get(zone, "")
        if not number:
            raise CloudError("failed to get asg zone: it has no subnet, or one in an unknown zone")
        return build_node(group, size, region=self._region, zone_number=number)

    async def _type(self, group: Group) -> InstanceType | None:
        configuration = await self._configuration(group.launch_configuration_id)
        if configuration is None:
            return None
        name = configuration.instance_type
        if name not in self._types:
            found, _ = await attempt(self._api.instance_type(name))
            if found is None:
                return None
            self._types[name] = found
        return self._types[name]

    async def _configuration(self, configuration_id: str) -> LaunchConfiguration | None:
        now = self._clock.monotonic()
        is_old = self._configurations_at is None or now - self._configurations_at >= _CONFIGURATIONS_FOR
        if is_old or configuration_id not in self._configurations:
            ids = sorted({one.launch_configuration_id for one in self._groups.values()} | {configuration_id})
            listed = await self._api.launch_configurations(ids)
            self._configurations = {one.launch_configuration_id: one for one in listed}
            self._configurations_at = now
        return self._configurations.get(configuration_id)

    async def _subnet_zone(self, subnet: str) -> str:
        if subnet not in self._subnet_zones:
            self._subnet_zones[subnet] = await self._api.subnet_zone(subnet)
        return self._subnet_zones[subnet]

    def _template(self, name: str, node: Node) -> NodeTemplate:
        configuration = self._groups[name].launch_configuration_id
        return NodeTemplate(node=node, source=f"launch configuration {configuration} of {name}")

    def _offerings(self, group: Group | None, node: Node | None) -> tuple[Offering, ...] | None:
        configuration = self._configurations.get(group.launch_configuration_id) if group else None
        if configuration is None or node is None:
            return None
        is_spot = configuration.instance_charge_type == "SPOTPAID"
        zone = (node.metadata.labels or {}).get("topology.kubernetes.io/zone", "")
        return (
            Offering(
                instance_type=configuration.instance_type,
                zone=zone,
                market="spot" if is_spot else "on-demand",
            ),
        )

    # ── whose instance ──────────────────────────────────────────────────────────────────────────

    def known_groups(self) -> list[str]:
        """Return the ids of all groups, without a call."""
        return sorted(self._specs)

    async def group_of(self, node_id: str) -> str | None:
        """Return the id of the group that the instance belongs to, None where it is not ours. Raises CloudError."""
        instance = parse_provider_id(node_id)
        for name in sorted(self._specs):
            machines, _ = await attempt(self._machines_of(name))
            if any(one.instance_id == instance for one in machines or ()):
                return name
        return None

    # ── changes ─────────────────────────────────────────────────────────────────────────────────

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Raise the desired capacity. Raises CloudError."""
        check_increase(delta)
        spec = self._known(group_id)
        target = increased((await self._group(group_id)).desired_capacity, delta, spec.max_size)
        now = self._clock.now()
        await self._set_size(group_id, target)
        self._orders.place(group_id, now)

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Lower the desired capacity by instances that do not exist yet. Raises CloudError."""
        if delta <= 0:
            raise CloudError("size decrease size must be negative")
        spec = self._known(group_id)
        target = (await self._group(group_id)).desired_capacity
        if target - delta < spec.min_size:
            raise CloudError(f"size increase too small - desired:{target - delta} min:{spec.min_size}")
        machines = await self._machines_of(group_id, anew=True)
        existing = sum(bool(one.zone) and one.life_cycle_state != _GONE for one in machines)
        await self._set_size(group_id, decreased(target, delta, existing))

    async def _set_size(self, group_id: str, size: int) -> None:
        self._are_listed = False
        await self._api.set_size(group_id, size)

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """Remove these instances in one call. Raises CloudError."""
        spec = self._known(group_id)
        target = (await self._group(group_id)).desired_capacity
        if not force:
            check_delete(target, spec.min_size, 1)
        doomed: list[str] = []
        _, stand_ins = split(parse_provider_id(one) for one in dict.fromkeys(provider_ids))
        if not is_of(group_id, stand_ins):
            raise CloudError(f"{', '.join(stand_ins)}: not all are orders of {group_id}")
        real = [one for one in dict.fromkeys(provider_ids) if parse_provider_id(one) not in stand_ins]
        for one in real:
            owner = await self.group_of(one)
            if owner is None:
                raise CloudError(f"{one} doesn't belong to a known asg")
            if owner != group_id:
                raise CloudError(f"{one} belongs to a different asg than {group_id}: {owner}")
            instance = parse_provider_id(one)
            if instance not in self._ordered:
                doomed.append(instance)
        if not force:
            check_delete(target, spec.min_size, len(doomed) + len(stand_ins))
        if stand_ins:
            machines = await self._machines_of(group_id, anew=True)
            target = decreased(target, len(stand_ins), len(machines))
            await self._set_size(group_id, target)
        if not doomed:
            return
        self._are_listed = False
        self._machines.pop(group_id, None)
        await self._api.remove(group_id, doomed)
        self._ordered.update(doomed)

    def _known(self, group_id: str) -> NodeSpec:
        if group_id not in self._specs:
            raise CloudError(f"tencentcloud: there is no node group {group_id}")
        return self._specs[group_id]
