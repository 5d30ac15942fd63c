"""The Cloud port over Alibaba Cloud's scaling groups.

A refresh costs one list of groups for twenty of them and one list of instances, fifty a page, for
each; configurations are read every ten minutes, types of machines once a day.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kubetide.acting.parallel import in_parallel
from kubetide.clouds.alibaba.api import AlibabaApi
from kubetide.clouds.alibaba.model import InstanceType, ScalingConfiguration, ScalingGroup, ScalingInstance
from kubetide.clouds.alibaba.references import parse_provider_id, provider_id
from kubetide.clouds.alibaba.template import GPU_LABEL, build_node
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.orders import Orders
from kubetide.clouds.common.placeholders import is_of, split
from kubetide.clouds.common.readings import GroupReading, ShownGroups, attempt
from kubetide.clouds.common.sizes import check_decrease, check_delete, check_increase, decreased
from kubetide.objects.node import Node
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud, Instance, NodeGroup, NodeTemplate, Offering
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration, hours, minutes

_AT_ONCE = 4
_CONFIGURATIONS_FOR, _TYPES_FOR = minutes(10), hours(24)


class AlibabaCloud(Cloud):
    """Node groups are scaling groups; ids are ``asg-…``.

    Args:
        api: The region's Elastic Scaling Service.
        nodes: The groups of ``--nodes``; all must exist.
        region: ``cn-hangzhou``.
        clock: Time.
    """

    def __init__(self, api: AlibabaApi, nodes: Sequence[NodeSpec], region: str, clock: Clock) -> None:
        self._api, self._region, self._clock = api, region, clock
        self._specs = {spec.name: spec for spec in nodes}
        self._configurations: dict[str, tuple[Duration, ScalingConfiguration]] = {}
        self._types: dict[str, InstanceType] = {}
        self._types_at: Duration | None = None
        self._types_turn = asyncio.Lock()
        self._shown = ShownGroups()
        self._has_begun = False
        self._ordered: set[str] = set()
        self._orders = Orders(api.failed_activity, lambda name: provider_id(region, name))

    @property
    def name(self) -> str:
        """``alicloud``."""
        return "alicloud"

    @property
    def gpu_label(self) -> str:
        """The label that names a node's GPU type."""
        return GPU_LABEL

    @property
    def gpu_types(self) -> Sequence[str]:
        """The GPU types of the label."""
        return ("M40", "P100", "Tesla-P4", "V100")

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return all groups as they are now, ordered by id."""
        await self.renew()
        return self._shown.show([await self._orders.with_failures(one) for one in await self.readings()])

    async def renew(self) -> None:
        """The first time, look that all groups exist. Raises CloudError."""
        if not self._has_begun:
            there = await self._groups()
            for name in sorted(self._specs):
                if name not in there:
                    raise CloudError(f"unable to get first ScalingGroup for {name}")
            self._has_begun = True

    async def _groups(self) -> dict[str, ScalingGroup]:
        return {one.scaling_group_id: one for one in await self._api.groups(sorted(self._specs))}

    async def _group(self, name: str) -> ScalingGroup:
        listed = await self._api.groups([name])
        if not listed:
            raise CloudError(f"unable to get first ScalingGroup for {name}")
        return listed[0]

    async def readings(self) -> list[GroupReading]:
        """Return each group with what could and what could not be read of it."""
        groups, error = await attempt(self._groups())
        specs = [self._specs[name] for name in sorted(self._specs)]
        readings = await in_parallel(
            specs, lambda spec: self._reading(spec, groups or {}, error), limit=_AT_ONCE
        )
        if not any(one.instances_error for one in readings):
            # Forget removals that are complete: instances that no list has any more.
            listed = {one.provider_id for reading in readings for one in reading.instances or ()}
            self._ordered = {one for one in self._ordered if provider_id(self._region, one) in listed}
        return readings

    async def _reading(self, spec: NodeSpec, groups: dict[str, ScalingGroup], error: str) -> GroupReading:
        group = groups.get(spec.name)
        missing = error or f"unable to get first ScalingGroup for {spec.name}"
        machines, machines_error = await attempt(self._api.instances(spec.name))
        node: Node | None = None
        template_error = missing
        if group is not None:
            node, template_error = await attempt(self._node(group))
        instances = tuple(self._instance(one) for one in machines or ())
        return GroupReading(
            id=spec.name,
            min_size=spec.min_size,
            max_size=spec.max_size,
            target=group.size if group else None,
            target_error="" if group else missing,
            instances=instances,
            instances_error=machines_error,
            stateless=frozenset(one.provider_id for one in instances),
            template=_template(group, node) if group and node else None,
            template_error=template_error,
            offerings=self._offerings(group) if group and node else None,
            debug=spec.name,
        )

    def _instance(self, one: ScalingInstance) -> Instance:
        return Instance(provider_id=provider_id(self._region, one.instance_id))

    # ── templates ───────────────────────────────────────────────────────────────────────────────

    async def _node(self, group: ScalingGroup) -> Node:
        configuration = await self._configuration(group)
        now = self._clock.monotonic()
        async with self._types_turn:
            if self._types_at is None or now - self._types_at >= _TYPES_FOR:
                self._types, self._types_at = await self._api.instance_types(), now
        size = self._types.get(configuration.instance_type)
        if size is None:
            raise CloudError(
                f"failed to find the specific instance type by Id: {configuration.instance_type}"
            )
        return build_node(group.scaling_group_id, configuration, size, self._region)

    async def _configuration(self, group: ScalingGroup) -> ScalingConfiguration:
        configuration_id, now = group.active_scaling_configuration_id, self._clock.monotonic()
        known = self._configurations.get(configuration_id)
        if known is None or now - known[0] >= _CONFIGURATIONS_FOR:
            found = await self._api.configuration(group.scaling_group_id, configuration_id)
            if found is None:
                raise CloudError(f"unable to get first ScalingConfiguration for {configuration_id}")
            known = self._configurations[configuration_id] = (now, found)
        return known[1]

    def _offerings(self, group: ScalingGroup) -> tuple[Offering, ...]:
        configuration = self._configurations[group.active_scaling_configuration_id][1]
        is_spot = configuration.spot_strategy not in {"", "NoSpot"}
        return (
            Offering(instance_type=configuration.instance_type, market="spot" if is_spot else "on-demand"),
        )

    # ── whose instance ──────────────────────────────────────────────────────────────────────────

    def known_groups(self) -> list[str]:
        """Return the ids of all groups, without a call."""
        return sorted(self._specs)

    async def group_of(self, node_id: str) -> str | None:
        """Return the id of the group that the instance belongs to, None where it is not ours. Raises CloudError."""
        instance = parse_provider_id(node_id)
        for name in sorted(self._specs):
            if any(one.instance_id == instance for one in await self._api.instances(name)):
                return name
        return None

    # ── changes ─────────────────────────────────────────────────────────────────────────────────

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Raise the group's capacity. Raises CloudError."""
        check_increase(delta)
        spec = self._known(group_id)
        target = (await self._group(group_id)).size + delta
        if target > spec.max_size:
            raise CloudError(f"size increase is too large - desired:{target} max:{spec.max_size}")
        now = self._clock.now()
        await self._api.set_size(group_id, target)
        self._orders.place(group_id, now)

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Lower the group's capacity by instances that do not exist yet. Raises CloudError."""
        check_decrease(delta)
        self._known(group_id)
        target = (await self._group(group_id)).size
        existing = len(await self._api.instances(group_id))
        await self._api.set_size(group_id, decreased(target, delta, existing))

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """Remove these instances, one call each; all are tried. Raises CloudError that names those refused."""
        spec = self._known(group_id)
        target = (await self._group(group_id)).size
        if not force:
            check_delete(target, spec.min_size, 1)
        ids = list(dict.fromkeys(provider_ids))
        _, stand_ins = split(parse_provider_id(one) for one in ids)
        if not is_of(group_id, stand_ins):
            raise CloudError(f"{', '.join(stand_ins)}: not all are orders of {group_id}")
        doomed = await self._doomed(group_id, [one for one in ids if parse_provider_id(one) not in stand_ins])
        if not force:
            check_delete(target, spec.min_size, len(doomed) + len(stand_ins))
        if stand_ins:
            existing = len(await self._api.instances(group_id))
            await self._api.set_size(group_id, decreased(target, len(stand_ins), existing))
        refused: list[tuple[str, CloudError]] = []
        for instance in doomed:
            try:
                await self._api.remove(group_id, instance)
                self._ordered.add(instance)
            except CloudError as error:
                refused.append((instance, error))
        if refused:
            texts = "; ".join(f"{instance}: {error}" for instance, error in refused)
            first = refused[0][1]
            raise CloudError(
                f"{len(refused)} of {len(doomed)} instances of {group_id} were not removed: {texts}",
                error_code=first.error_code,
                cause=first.cause,
            )

    async def _doomed(self, group_id: str, node_ids: Sequence[str]) -> list[str]:
        mine = {one.instance_id for one in await self._api.instances(group_id)}
        found: list[str] = []
        for node_id in node_ids:
            instance = parse_provider_id(node_id)
            if instance not in mine:
                owner = await self.group_of(node_id)
                if owner is None:
                    raise CloudError(f"{node_id} doesn't belong to a known Asg")
                raise CloudError(f"{node_id} belongs to a different asg than {group_id}: {owner}")
            if instance not in self._ordered:
                found.append(instance)
        return found

    def _known(self, group_id: str) -> NodeSpec:
        if group_id not in self._specs:
            raise CloudError(f"alicloud: there is no node group {group_id}")
        return self._specs[group_id]


def _template(group: ScalingGroup, node: Node) -> NodeTemplate:
    configuration = group.active_scaling_configuration_id
    return NodeTemplate(
        node=node, source=f"scaling configuration {configuration} of {group.scaling_group_id}"
    )
