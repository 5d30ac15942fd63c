"""The Cloud port over Tencent Cloud's Auto Scaling groups.

A refresh costs one list of groups a hundred of them and one list of instances a group; launch
configurations are read every ten minutes, types of machines, subnets and zones once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.acting.parallel import in_parallel
from kubetide.clouds.common.creation import (
    CREATED,
    Candidate,
    check_deletion,
    in_order,
    made_group,
    pattern_for,
)
from kubetide.clouds.common.gpu import NVIDIA_TESLA
from kubetide.clouds.common.ledger import Ledger
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.placeholders import (
    FailedActivity,
    Placeholders,
    is_placeholder,
    split_placeholders,
)
from kubetide.clouds.common.readings import GroupReading, ShownGroups, attempt
from kubetide.clouds.common.sizes import (
    check_decrease,
    check_delete,
    check_increase,
    decreased,
    doubts_of_maximum,
    increased,
)
from kubetide.clouds.tencent.api import TencentApi
from kubetide.clouds.tencent.creation import CALLED, Patterns, create, delete, pattern_of, types_to_create
from kubetide.clouds.tencent.model import Group
from kubetide.clouds.tencent.model import Instance as Machine
from kubetide.clouds.tencent.references import parse_provider_id, provider_id
from kubetide.clouds.tencent.scaling_policies import scaling_policies
from kubetide.clouds.tencent.template import GPU_LABEL
from kubetide.clouds.tencent.templates import Templates
from kubetide.objects.node import Node
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import (
    Cloud,
    GroupCandidate,
    Instance,
    KnowsMachines,
    NewGroup,
    NodeGroup,
    NodeTemplate,
)
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant

_AT_ONCE = 4
_IN_SERVICE = "IN_SERVICE"
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

    name = "tencentcloud"
    gpu_label = GPU_LABEL
    gpu_types = NVIDIA_TESLA
    creates_groups = True
    # Its states of machines are not read, so a node that is being deleted counts as gone once it is tainted.
    knows_machines: KnowsMachines = "unknown"

    def __init__(self, api: TencentApi, nodes: Sequence[NodeSpec], region: str, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._explicit = {spec.name: spec for spec in nodes}
        self._specs = dict(self._explicit)
        self._groups: dict[str, Group] = {}
        self._created: set[str] = set()
        self._problems: dict[str, str] = {}
        self._deleted: set[str] = set()
        self._are_listed = False
        self._machines: dict[str, list[Machine]] = {}
        self._templates = Templates(api, region, clock, self._configurations)
        self._patterns = Patterns(self._templates)
        self._shown = ShownGroups()
        self._has_begun = False
        self._ledger = Ledger(clock)
        self._placeholders = Placeholders(
            self._ledger, self._failed_activity, lambda name: provider_id("", name)
        )

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return all groups as they are now, ordered by id."""
        await self.renew()
        return self._shown.show([await self._placeholders.add_to(one) for one in await self.readings()])

    async def scaling_policies(self) -> Mapping[str, Sequence[str]]:
        """Return the scaling policies and scheduled actions that change the sizes of the groups. Raises CloudError."""
        if not self._are_listed:
            await self._list_groups()
        ids = sorted(one.auto_scaling_group_id for one in self._groups.values())
        policies = await self._api.scaling_policies(ids)
        return scaling_policies(
            self._groups, policies, await self._api.scheduled_actions(ids), self._clock.now()
        )

    async def renew(self) -> None:
        """Forget sizes and instances. The first time, one of the groups must exist. Raises CloudError."""
        self._are_listed = False
        self._machines.clear()
        if not self._has_begun:
            await self._list_groups()
            if self._explicit and not self._groups and not self._problems:
                raise CloudError(f"none of the groups of --nodes exists: {', '.join(sorted(self._explicit))}")
            self._has_begun = True

    async def _list_groups(self) -> None:
        # A group that was just created is in the list by tags later than in that by ids.
        listed, problems = await self._api.groups(sorted({*self._explicit, *self._created}))
        found = {one.auto_scaling_group_id: one for one in listed}
        if self._created or any(map(types_to_create, listed)):
            tagged, unreadable = await self._api.groups_with_tag(CREATED)
            problems |= unreadable
            for one in tagged:
                if pattern_of(one) in self._explicit and one.auto_scaling_group_id not in self._deleted:
                    found[one.auto_scaling_group_id] = one
        # One that cannot be read stays, as it was.
        known = {one.auto_scaling_group_id: one for one in self._groups.values()}
        found |= {one: known[one] for one in problems if one in known}
        self._problems = problems
        self._created = found.keys() - self._explicit.keys()
        self._groups = {self._name(one): one for one in found.values()}
        self._specs = self._explicit | {
            self._name(found[one]): NodeSpec(self._name(found[one]), 0, found[one].max_size)
            for one in self._created
        }
        self._are_listed = True

    def _configurations(self) -> set[str]:
        return {one.launch_configuration_id for one in self._groups.values()} - {""}

    def _name(self, group: Group) -> str:
        """Return what a group goes by: its id, and its name where this program created it."""
        is_explicit = group.auto_scaling_group_id in self._explicit
        return group.auto_scaling_group_id if is_explicit else group.auto_scaling_group_name

    def _asg(self, name: str) -> str:
        """Return the id of a group."""
        return self._groups[name].auto_scaling_group_id if name in self._groups else name

    async def _failed_activity(self, name: str, since: Instant) -> FailedActivity | None:
        return await self._api.failed_activity(self._asg(name), since)

    async def readings(self) -> list[GroupReading]:
        """Return each group with what could and what could not be read of it."""
        await attempt(self._prepare())
        names = sorted(self._specs)
        readings = await in_parallel([self._specs[name] for name in names], self._reading, limit=_AT_ONCE)
        if not any(one.instances_error for one in readings):
            self._forget_gone()
        return readings

    async def _prepare(self) -> None:
        """Read what all groups share, once."""
        if not self._are_listed:
            await self._list_groups()
        await self._templates.zone_numbers()
        for one in sorted(self._configurations())[:1]:
            await self._templates.renew(one)

    async def _reading(self, spec: NodeSpec) -> GroupReading:
        group, target_error = await attempt(self._group(spec.name))
        target, target_error = (
            (None, target_error) if group is None else await attempt(self._target(spec.name))
        )
        machines, machines_error = await attempt(self._machines_of(spec.name, anew=True))
        zones = {one.zone for one in machines or ()}
        numbers, zones_error = await attempt(self._templates.zone_numbers(zones))
        node, template_error = await attempt(self._templates.node(group, spec.name))
        warnings, _ = await attempt(self._patterns.warnings(group, spec.max_size))
        doubts = doubts_of_maximum(group.max_size, spec.max_size) if group else ()
        instances = [
            Instance(provider_id=provider_id(numbers[one.zone], one.instance_id))
            for one in machines or ()
            if one.instance_id and numbers and one.zone in numbers and one.life_cycle_state != _GONE
        ]
        return GroupReading(
            id=spec.name,
            min_size=spec.min_size,
            max_size=spec.max_size,
            target=target,
            target_error=target_error,
            instances=tuple(instances),
            instances_error=machines_error or zones_error,
            stateless=frozenset(one.provider_id for one in instances),
            template=_template(group, spec.name, node) if group and node else None,
            template_error=template_error,
            warnings=(*self._templates.doubts(group), *doubts, *(warnings or ())),
            offerings=self._templates.offerings(group, node),
            debug=spec.name,
            autoprovisioned=group is not None and self._is_ours(group),
        )

    async def _group(self, name: str) -> Group:
        if not self._are_listed:
            await self._list_groups()
        problem = self._problems.get(self._asg(name))
        if problem:
            raise CloudError(problem)
        if name not in self._groups:
            raise CloudError(f"as:DescribeAutoScalingGroups returned a invalid response: no group {name}")
        return self._groups[name]

    async def _target(self, name: str) -> int:
        target = (await self._group(name)).desired_capacity
        if target is None:
            raise CloudError(f"{name} invalid desired capacity: Tencent Cloud does not say it")
        return target

    async def _machines_of(self, name: str, *, anew: bool = False) -> list[Machine]:
        if anew or name not in self._machines:
            self._machines[name] = await self._api.instances(self._asg(name))
        return self._machines[name]

    def _forget_gone(self) -> None:
        """Forget removals that are complete: instances that no list has any more."""
        self._ledger.keep(one.instance_id for listed in self._machines.values() for one in listed)

    # ── groups that are created ─────────────────────────────────────────────────────────────────

    async def group_candidates(self) -> Sequence[GroupCandidate]:
        """Return the groups that could be created like the patterns that there are. Raises CloudError."""
        return tuple(one.offered for one in await self._creatable())

    async def _creatable(self) -> tuple[Candidate, ...]:
        await self._prepare()
        found: list[Candidate | None] = []
        for name, spec in self._explicit.items():
            if name in self._groups:
                like, _ = await attempt(self._patterns.candidates(self._groups[name], spec.max_size))
                found += like or ()
        return in_order(found)

    async def create_group(self, group: NewGroup) -> NodeGroup:
        """Create a group like its pattern, and return it. Raises CloudError."""
        candidates, taken = await self._creatable(), group.id in self._groups
        pattern = self._groups[pattern_for(candidates, group, taken=taken, called=CALLED)]
        (zone,) = group.zones or ("",)
        subnets = (await self._templates.zones.grouped(pattern.subnets))[zone]
        self._created.add(await create(self._api, pattern, group, subnets))
        return made_group(await self.refresh(), group.id)

    async def delete_group(self, group_id: str) -> None:
        """Delete a group that ``create_group`` created and that has no instances. Raises CloudError."""
        self._known(group_id)
        group = await self._group(group_id)
        is_empty = not await self._target(group_id) and not await self._machines_of(group_id, anew=True)
        check_deletion(group_id, is_ours=self._is_ours(group), is_empty=is_empty)
        await delete(self._api, group, await self._templates.configuration(group.launch_configuration_id))
        self._created.discard(group.auto_scaling_group_id)
        self._deleted.add(group.auto_scaling_group_id)
        self._are_listed = False

    def _is_ours(self, group: Group) -> bool:
        """Return whether this program created a group that nobody has named since."""
        return pattern_of(group) is not None and group.auto_scaling_group_id not in self._explicit

    # ── whose instance ──────────────────────────────────────────────────────────────────────────

    def known_groups(self) -> list[str]:
        """Return the ids of all groups, without a call."""
        return sorted(self._specs)

    async def group_of(self, node_id: str) -> str | None:
        """Return the id of the group that the instance belongs to, None where it is not ours. Raises CloudError."""
        if not node_id:
            return None
        instance = parse_provider_id(node_id)
        trouble: CloudError | None = None
        for name in sorted(self._specs):
            try:
                machines = await self._machines_of(name)
            except CloudError as error:
                trouble = trouble or error
                continue
            if any(one.instance_id == instance for one in machines):
                return name
        if trouble is not None:
            raise trouble
        return None

    # ── changes ─────────────────────────────────────────────────────────────────────────────────

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Raise the desired capacity. Raises CloudError."""
        check_increase(delta)
        spec = self._known(group_id)
        before = await self._target(group_id)
        target = increased(before, delta, spec.max_size)
        await self._set_size(group_id, before, target)

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Lower the desired capacity by instances that do not exist yet. Raises CloudError."""
        check_decrease(delta, called="size decrease size")
        spec = self._known(group_id)
        target = await self._target(group_id)
        if target - delta < spec.min_size:
            raise CloudError(f"size increase too small - desired:{target - delta} min:{spec.min_size}")
        machines = await self._machines_of(group_id, anew=True)
        there = [one for one in machines if one.life_cycle_state != _GONE]
        # One without a zone is not placed yet, and upstream does not count it; but one in service would be ended.
        decreased(target, delta, sum(bool(one.zone) for one in there))
        existing = sum(bool(one.zone) or one.life_cycle_state == _IN_SERVICE for one in there)
        await self._set_size(group_id, target, decreased(target, delta, existing))

    async def _set_size(self, group_id: str, before: int, size: int) -> None:
        self._are_listed = False
        call = self._api.set_size(self._asg(group_id), size)
        await self._ledger.resize(group_id, size - before, call)

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """Remove these instances in one call. Raises CloudError."""
        spec = self._known(group_id)
        target = await self._target(group_id)
        if not force:
            check_delete(target, spec.min_size, 1)
        for one in provider_ids:
            await self._check_member(group_id, one)
        real, placeholders = split_placeholders(group_id, provider_ids, parse_provider_id)
        doomed = [one for one in map(parse_provider_id, real) if one not in self._ledger]
        if not force and (doomed or placeholders):
            most = self._ledger.size_at_most(group_id, target, doomed)
            check_delete(most, spec.min_size, len(doomed) + len(placeholders))
        if placeholders:
            machines = await self._machines_of(group_id, anew=True)
            before, target = target, decreased(target, len(placeholders), len(machines))
            await self._set_size(group_id, before, target)
        if not doomed:
            return
        asg, self._are_listed = self._asg(group_id), False
        self._machines.pop(group_id, None)
        await self._ledger.remove(group_id, target, doomed, self._api.remove(asg, doomed))

    async def _check_member(self, group_id: str, node_id: str) -> None:
        """Raise CloudError unless the group has the machine of that id, or it is that of a placeholder."""
        if not node_id:
            raise CloudError(f"a node without provider id belongs to a different asg than {group_id}")
        if is_placeholder(parse_provider_id(node_id)):
            return
        owner = await self.group_of(node_id)
        if owner is None:
            raise CloudError(f"{node_id} doesn't belong to a known asg")
        if owner != group_id:
            raise CloudError(f"{node_id} belongs to a different asg than {group_id}: {owner}")

    def _known(self, group_id: str) -> NodeSpec:
        if group_id not in self._specs:
            raise CloudError(f"tencentcloud: there is no node group {group_id}")
        return self._specs[group_id]


def _template(group: Group, name: str, node: Node) -> NodeTemplate:
    return NodeTemplate(node=node, source=f"launch configuration {group.launch_configuration_id} of {name}")
