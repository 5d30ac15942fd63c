"""The Cloud port over Alibaba Cloud's scaling groups.

A refresh costs one list of groups for twenty of them and one list of instances, fifty a page, for
each; configurations are read every ten minutes, types of machines once a day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.acting.parallel import in_parallel
from kubetide.clouds.alibaba.api import AlibabaApi
from kubetide.clouds.alibaba.creation import CALLED, Patterns, create, pattern_of, types_to_create
from kubetide.clouds.alibaba.model import ScalingGroup, ScalingInstance
from kubetide.clouds.alibaba.references import parse_provider_id, provider_id
from kubetide.clouds.alibaba.scaling_policies import scaling_policies
from kubetide.clouds.alibaba.template import GPU_LABEL
from kubetide.clouds.alibaba.templates import Templates
from kubetide.clouds.common.creation import (
    CREATED,
    Candidate,
    check_deletion,
    in_order,
    made_group,
    pattern_for,
)
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
)
from kubetide.clouds.common.template import kube_proxy
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
from kubetide.units.time import Instant, milliseconds

_AT_ONCE = 4
_BETWEEN_REMOVALS = milliseconds(200)
"""Upstream's pause, which keeps a batch below the rate that Alibaba Cloud allows."""


class AlibabaCloud(Cloud):
    """Node groups are scaling groups; ids are ``asg-…``.

    Args:
        api: The region's Elastic Scaling Service.
        nodes: The groups of ``--nodes``; all must exist.
        region: ``cn-hangzhou``.
        clock: Time.
    """

    name = "alicloud"
    gpu_label = GPU_LABEL
    gpu_types = ("M40", "P100", "Tesla-P4", "V100")
    creates_groups = True
    # Its states of machines are not read, so a node that is being deleted counts as gone once it is tainted.
    knows_machines: KnowsMachines = "unknown"

    def __init__(self, api: AlibabaApi, nodes: Sequence[NodeSpec], region: str, clock: Clock) -> None:
        self._api, self._region, self._clock = api, region, clock
        self._explicit = {spec.name: spec for spec in nodes}
        self._specs = dict(self._explicit)
        self._created: dict[str, ScalingGroup] = {}
        self._problems: dict[str, str] = {}
        self._deleted: set[str] = set()
        self._fresh: set[str] = set()
        self._candidates: tuple[Candidate, ...] | None = None
        self._templates = Templates(api, region, clock)
        self._patterns = Patterns(self._templates, region)
        self._shown = ShownGroups()
        self._has_begun = False
        self._ledger = Ledger(clock)
        self._placeholders = Placeholders(
            self._ledger, self._failed_activity, lambda name: provider_id(region, name)
        )

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return all groups as they are now, ordered by id."""
        await self.renew()
        return self._shown.show([await self._placeholders.add_to(one) for one in await self.readings()])

    async def scaling_policies(self) -> Mapping[str, Sequence[str]]:
        """Return the scaling rules, alarms and scheduled tasks that change the sizes of the groups. Raises CloudError."""
        groups, rules = await self._groups(), await self._api.scaling_rules()
        alarms, tasks = await self._api.alarms(), await self._api.scheduled_tasks()
        return scaling_policies(groups, rules, alarms, tasks, self._clock.now())

    async def renew(self) -> None:
        """The first time, look that all groups exist. Raises CloudError."""
        if not self._has_begun:
            there = await self._groups()
            for name in sorted(self._explicit):
                if name not in there and name not in self._problems:
                    raise CloudError(f"unable to get first ScalingGroup for {name}")
            self._has_begun = True

    async def _groups(self) -> dict[str, ScalingGroup]:
        """Return all groups by id, those that this program created by name."""
        # A group that was just created is in the list by tags later than in that by ids.
        ours = {one.scaling_group_id for one in self._created.values()} | self._fresh
        listed, problems = await self._api.groups(sorted({*self._explicit, *ours}))
        found = {one.scaling_group_id: one for one in listed if one.scaling_group_id in self._explicit}
        created = {one.scaling_group_name: one for one in listed if one.scaling_group_id in ours}
        ordered = [found[name] for name in sorted(found)]
        are_patterns = await in_parallel(ordered, self._is_pattern, limit=_AT_ONCE)
        for pattern in [
            one.scaling_group_id for one, is_one in zip(ordered, are_patterns, strict=True) if is_one
        ]:
            tagged, unreadable = await self._api.groups_with_tag(CREATED, pattern)
            problems |= unreadable
            for one in tagged:
                if one.scaling_group_id not in {*self._explicit, *self._deleted}:
                    created[one.scaling_group_name] = one
        # One that cannot be read stays, as it was.
        lost = {name: one for name, one in self._created.items() if one.scaling_group_id in problems}
        self._created, self._problems = {**lost, **created}, problems
        self._fresh -= {one.scaling_group_id for one in created.values()}
        self._specs = self._explicit | {
            name: NodeSpec(name, 0, one.max_size) for name, one in self._created.items()
        }
        return found | created

    async def _is_pattern(self, group: ScalingGroup) -> bool:
        """Return whether others are, or were, created like this one."""
        configuration, _ = await attempt(self._templates.configuration(group))
        known = [self._templates.known(one) for one in self._created.values()]
        has_some = any(one is not None and pattern_of(one) == group.scaling_group_id for one in known)
        return has_some or (configuration is not None and bool(types_to_create(configuration)))

    def _asg(self, name: str) -> str:
        """Return the id of a group, which goes by its name where this program created it."""
        return self._created[name].scaling_group_id if name in self._created else name

    async def _failed_activity(self, name: str, since: Instant) -> FailedActivity | None:
        return await self._api.failed_activity(self._asg(name), since)

    async def _instances(self, name: str) -> list[ScalingInstance]:
        return await self._api.instances(self._asg(name))

    async def _group(self, name: str) -> ScalingGroup:
        asg = self._asg(name)
        listed, problems = await self._api.groups([asg])
        if not listed:
            raise CloudError(problems.get(asg) or f"unable to get first ScalingGroup for {name}")
        return listed[0]

    async def readings(self) -> list[GroupReading]:
        """Return each group with what could and what could not be read of it."""
        self._templates.renew()
        groups, error = await attempt(self._groups())
        self._candidates = None if groups is None else await self._creatable(groups)
        specs = [self._specs[name] for name in sorted(self._specs)]
        readings = await in_parallel(
            specs, lambda spec: self._reading(spec, groups or {}, error), limit=_AT_ONCE
        )
        if not any(one.instances_error for one in readings):
            # Forget removals that are complete: instances that no list has any more.
            listed = (one for reading in readings for one in reading.instances or ())
            self._ledger.keep(parse_provider_id(one.provider_id) for one in listed)
        return readings

    async def _reading(self, spec: NodeSpec, groups: dict[str, ScalingGroup], error: str) -> GroupReading:
        group = groups.get(spec.name)
        problem = self._problems.get(self._asg(spec.name))
        missing = error or problem or f"unable to get first ScalingGroup for {spec.name}"
        target, target_error = _target(group) if group is not None else (None, missing)
        machines, machines_error = await attempt(self._instances(spec.name))
        node: Node | None = None
        template_error = missing
        warnings: list[str] | None = None
        doubts: tuple[str, ...] = ()
        if group is not None:
            is_ours = spec.name in self._created
            node, template_error = await attempt(self._templates.node(group, spec.name, in_one_zone=is_ours))
            warnings, _ = await attempt(self._patterns.warnings(group, spec.max_size))
            doubts = *self._templates.doubts(group), *doubts_of_maximum(group.max_size, spec.max_size)
        instances = tuple(self._instance(one) for one in machines or ())
        return GroupReading(
            id=spec.name,
            min_size=spec.min_size,
            max_size=spec.max_size,
            target=target,
            target_error=target_error,
            instances=instances,
            instances_error=machines_error,
            stateless=frozenset(one.provider_id for one in instances),
            template=_template(group, spec.name, node) if group and node else None,
            template_error=template_error,
            warnings=(*doubts, *(warnings or ())),
            offerings=self._templates.offerings(group, node) if group and node else None,
            debug=spec.name,
            autoprovisioned=spec.name in self._created,
        )

    def _instance(self, one: ScalingInstance) -> Instance:
        return Instance(provider_id=provider_id(self._region, one.instance_id))

    # ── groups that are created ─────────────────────────────────────────────────────────────────

    async def group_candidates(self) -> Sequence[GroupCandidate]:
        """Return the groups that could be created like the patterns that there are. Raises CloudError."""
        if self._candidates is None:
            self._candidates = await self._creatable(await self._groups())
        return tuple(one.offered for one in self._candidates)

    async def _creatable(self, groups: Mapping[str, ScalingGroup]) -> tuple[Candidate, ...]:
        found: list[Candidate | None] = []
        for name, spec in self._explicit.items():
            if name in groups:
                candidates, _ = await attempt(self._patterns.candidates(groups[name], spec.max_size))
                found += candidates or ()
        return in_order(found)

    async def create_group(self, group: NewGroup) -> NodeGroup:
        """Create a group like its pattern, and return it. Raises CloudError."""
        groups = await self._groups()
        candidates = await self._creatable(groups)
        pattern = groups[pattern_for(candidates, group, taken=group.id in groups, called=CALLED)]
        (zone,) = group.zones or ("",)
        vswitches = (await self._templates.zones.grouped(pattern.vswitches))[zone]
        self._fresh.add(await create(self._api, pattern, group, vswitches))
        return made_group(await self.refresh(), group.id)

    async def delete_group(self, group_id: str) -> None:
        """Delete a group that ``create_group`` created and that has no instances. Raises CloudError."""
        self._known(group_id)
        group = await self._group(group_id)
        is_empty = not group.size and not await self._instances(group_id)
        check_deletion(group_id, is_ours=group_id in self._created, is_empty=is_empty)
        await self._api.delete_group(group.scaling_group_id)
        self._deleted.add(group.scaling_group_id)
        del self._created[group_id], self._specs[group_id]

    # ── whose instance ──────────────────────────────────────────────────────────────────────────

    def known_groups(self) -> list[str]:
        """Return the ids of all groups, without a call."""
        return sorted(self._specs)

    async def group_of(self, node_id: str) -> str | None:
        """Return the id of the group that the instance belongs to, None where it is not ours. Raises CloudError."""
        instance = parse_provider_id(node_id)
        for name in sorted(self._specs):
            if any(one.instance_id == instance for one in await self._instances(name)):
                return name
        return None

    # ── changes ─────────────────────────────────────────────────────────────────────────────────

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Raise the group's capacity. Raises CloudError."""
        check_increase(delta)
        spec = self._known(group_id)
        before = (await self._group(group_id)).size
        if before + delta > spec.max_size:
            raise CloudError(f"size increase is too large - desired:{before + delta} max:{spec.max_size}")
        await self._set_size(group_id, before, before + delta)

    async def _set_size(self, group_id: str, before: int, size: int) -> None:
        call = self._api.set_size(self._asg(group_id), size)
        await self._ledger.resize(group_id, size - before, call)

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Lower the group's capacity by instances that do not exist yet. Raises CloudError."""
        check_decrease(delta, called="size decrease size")
        self._known(group_id)
        target = (await self._group(group_id)).size
        existing = len(await self._instances(group_id))
        await self._set_size(group_id, target, decreased(target, delta, existing))

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """Remove these instances, one call each; all are tried. Raises CloudError that names those refused."""
        spec = self._known(group_id)
        target = (await self._group(group_id)).size
        if not force:
            check_delete(target, spec.min_size, 1)
        doomed = await self._doomed(group_id, provider_ids)
        _, placeholders = split_placeholders(group_id, provider_ids, parse_provider_id)
        if not force and (doomed or placeholders):
            most = self._ledger.size_at_most(group_id, target, doomed)
            check_delete(most, spec.min_size, len(doomed) + len(placeholders))
        if placeholders:
            existing = len(await self._instances(group_id))
            before, target = target, decreased(target, len(placeholders), existing)
            await self._set_size(group_id, before, target)
        refused: list[tuple[str, CloudError]] = []
        for number, instance in enumerate(doomed):
            if number:
                await self._clock.sleep(_BETWEEN_REMOVALS)
            try:
                removal = self._api.remove(self._asg(group_id), instance)
                await self._ledger.remove(group_id, target, [instance], removal)
            except CloudError as error:
                refused.append((instance, error))
        if refused:
            texts = "; ".join(f"{instance}: {error}" for instance, error in refused)
            first = refused[0][1]
            raise CloudError(
                f"{len(refused)} of {len(doomed)} instances of {group_id} were not removed: {texts}",
                error_code=first.error_code,
                cause=first.cause,
                retry_after=first.retry_after,
                may_be_done=any(error.may_be_done for _, error in refused),
            )

    async def _doomed(self, group_id: str, node_ids: Sequence[str]) -> list[str]:
        mine = {one.instance_id for one in await self._instances(group_id)}
        found: list[str] = []
        for node_id in node_ids:
            instance = parse_provider_id(node_id)
            if is_placeholder(instance) or instance in found:
                continue
            if instance not in mine:
                owner = await self.group_of(node_id)
                if owner is None:
                    raise CloudError(f"{node_id} doesn't belong to a known Asg")
                raise CloudError(f"{node_id} belongs to a different asg than {group_id}: {owner}")
            if instance not in self._ledger:
                found.append(instance)
        return found

    def _known(self, group_id: str) -> NodeSpec:
        if group_id not in self._specs:
            raise CloudError(f"alicloud: there is no node group {group_id}")
        return self._specs[group_id]


def _target(group: ScalingGroup) -> tuple[int | None, str]:
    try:
        return group.size, ""
    except CloudError as error:
        return None, str(error)


def _template(group: ScalingGroup, name: str, node: Node) -> NodeTemplate:
    configuration = group.active_scaling_configuration_id
    source = f"scaling configuration {configuration} of {group.scaling_group_id}"
    return NodeTemplate(node=node, pods=(kube_proxy(name),), source=source)
