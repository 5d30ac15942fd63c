"""The Cloud port over Auto Scaling groups.

At rest a refresh makes one call for each hundred groups, at most once a minute; none grows with the nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kubetide.acting.parallel import in_parallel
from kubetide.clouds.aws.activities import Shortage, shortage, unknown_shortage
from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.creation import (
    create,
    types_to_create,
    usable_types,
    warnings_of,
    would_be,
)
from kubetide.clouds.aws.discovery import filters_of
from kubetide.clouds.aws.groups import Asg, doubts_of, read_group
from kubetide.clouds.aws.ids import is_placeholder
from kubetide.clouds.aws.known import Known
from kubetide.clouds.aws.launches import Launched, Launches
from kubetide.clouds.aws.nodegroups import NOTHING, Nodegroups
from kubetide.clouds.aws.prices import SpotPrices
from kubetide.clouds.aws.scaling_policies import scaling_policies
from kubetide.clouds.aws.tags import OPTION_NAMES, read_tags
from kubetide.clouds.aws.templates import make_template, markets, offerings
from kubetide.clouds.aws.types import InstanceTypes
from kubetide.clouds.common.creation import (
    CREATED,
    Candidate,
    candidate_name,
    check_deletion,
    in_order,
    make_candidate,
    pattern_for,
)
from kubetide.clouds.common.ledger import Ledger
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.options import read_options
from kubetide.objects.base import Json
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud, GroupCandidate, NewGroup, NodeGroup
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant, after, minutes

_INTERVAL: Final = minutes(1)
_AT_ONCE: Final = 8
_GONE: Final = "AWS knows no Auto Scaling group of this name any more"
_UNKNOWN: Final = (
    "AWS knows no Auto Scaling group of this name in this account and region; "
    "correct the name in --nodes, or the region"
)


class AwsCloud(Cloud):
    """Auto Scaling groups, by name and by tags."""

    name = "aws"
    creates_groups = True
    gpu_label = "k8s.amazonaws.com/accelerator"
    gpu_types = (
        "nvidia-a10g",
        "nvidia-l4",
        "nvidia-l40s",
        "nvidia-tesla-a100",
        "nvidia-tesla-k80",
        "nvidia-tesla-p100",
        "nvidia-tesla-t4",
        "nvidia-tesla-v100",
    )

    def __init__(
        self,
        api: AwsApi,
        clock: Clock,
        *,
        groups: Sequence[NodeSpec] = (),
        discovery: Mapping[str, str] = MappingProxyType({}),
        types: InstanceTypes,
        prices: SpotPrices | None = None,
    ) -> None:
        """Nothing is asked before the first refresh.

        Args:
            api: The calls.
            clock: The time.
            groups: Groups by name, with the bounds that hold whatever AWS says.
            discovery: The tags that a group must have to be found; none finds none.
            types: Where instance types come from.
            prices: Where spot prices come from; None for nowhere.
        """
        self._api = api
        self._clock = clock
        # Of a group that is named twice the first bounds hold, as upstream.
        self._explicit = {spec.name: spec for spec in reversed(groups)}
        self._discovery = dict(discovery)
        self._types, self._prices = types, prices
        self._launches = Launches(api)
        self._nodegroups = Nodegroups(api)
        self._known: dict[str, Known] = {}
        self._unknown: dict[str, NodeGroup] = {}
        self._next = Instant(0)
        self._raw: dict[str, tuple[Json, Asg]] = {}
        self._launched: dict[str, Launched] = {}
        self._candidates: tuple[Candidate, ...] | None = None
        self._deleted: set[str] = set()
        self._fresh: set[str] = set()
        self._ledger = Ledger(clock, self._doubt)

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return all groups ordered by id; AWS is asked once a minute, and at once after a deletion."""
        now = self._clock.now()
        if now >= self._next:
            await self._read(now)
            self._next = after(now, _INTERVAL)
        return list(self.views().values())

    async def scaling_policies(self) -> Mapping[str, Sequence[str]]:
        """Return the scaling policies and scheduled actions that change the sizes of the groups of the last refresh. Raises CloudError."""
        groups = {name: known.asg for name, known in self._known.items()}
        policies = await self._api.scaling_policies()
        return scaling_policies(groups, policies, await self._api.scheduled_actions())

    def views(self) -> dict[str, NodeGroup]:
        """Return all groups by id as of the last refresh and of our own changes since, without asking AWS."""
        known = {name: one.view() for name, one in self._known.items()}
        return dict(sorted({**self._unknown, **known}.items()))

    async def _read(self, now: Instant) -> None:
        described = await self._described()
        self._ledger.keep(one.provider_id for asg in described.values() for one in asg.members)
        new = {name for name in described if name not in self._known and name not in self._explicit}
        for name, asg in described.items():
            known = self._known.get(name)
            if known is None:
                known = self._known[name] = Known(asg, 0, 0, asg.desired, is_named=name in self._explicit)
            known.seen(asg, now)
            known.min_size, known.max_size = self._bounds(asg)
        for name in [each for each in self._known if each not in described]:
            if name in self._explicit:
                self._known[name].keep_old(_GONE)
            else:
                del self._known[name]
        self._unknown = {
            name: self._unknown.get(name) or NodeGroup(id=name, template_error=_UNKNOWN, stale=_UNKNOWN)
            for name in self._explicit
            if name not in self._known
        }
        found = [self._known[name] for name in sorted(described)]
        self._launched = launched = await self._launches.of([known.asg for known in found], now)
        used = {name for each in launched.values() for name in each.types}
        await self._types.refresh(
            now, used | {name for known in found for name in types_to_create(known.asg)}
        )
        await self._read_prices(found, launched, now)
        short = await self._shortages(found, new)

        async def dress(known: Known) -> None:
            lack = short.get(known.asg.name, Shortage())
            base = await self._base(known.asg, launched[known.asg.name], now, lack.warning)
            known.dress(base, lack.error)

        await in_parallel(found, dress, limit=_AT_ONCE)
        self._nodegroups.sweep()
        self._candidates = None

    async def _read_prices(
        self, found: Sequence[Known], launched: Mapping[str, Launched], now: Instant
    ) -> None:
        if self._prices is None:
            return
        used = {
            name
            for known in found
            if any(market == "spot" for market, _ in markets(known.asg, launched[known.asg.name]))
            for name in launched[known.asg.name].types
        }
        await self._prices.refresh(now, used)

    async def _described(self) -> dict[str, Asg]:
        # What was just created is found by its tags later than by its name.
        names = {*self._explicit, *self._fresh}
        named = self._read_all(await self._api.groups_by_name(sorted(names)) if names else [])
        tagged: dict[str, tuple[Json, Asg]] = {}
        if self._discovery:
            tagged |= self._read_all(await self._api.groups_by_filter(filters_of(self._discovery)))
        patterns = [
            name for name in sorted(self._explicit) if name in named and types_to_create(named[name][1])
        ]
        if patterns:
            filters = [{"Name": f"tag:{CREATED}", "Values": patterns}]
            tagged |= self._read_all(await self._api.groups_by_filter(filters))
        self._raw = named | tagged
        self._fresh -= tagged.keys()
        self._deleted &= self._raw.keys()
        return {name: asg for name, (_, asg) in self._raw.items() if name not in self._deleted}

    def _read_all(self, raws: Sequence[Json]) -> dict[str, tuple[Json, Asg]]:
        return {raw["AutoScalingGroupName"]: (raw, self._read_once(raw)) for raw in raws}

    def _read_once(self, raw: Json) -> Asg:
        held = self._raw.get(raw["AutoScalingGroupName"])
        return held[1] if held is not None and held[0] == raw else read_group(raw)

    def _bounds(self, asg: Asg) -> tuple[int, int]:
        spec = self._explicit.get(asg.name)
        if spec is not None:
            return spec.min_size, spec.max_size
        # AWS refuses a minimum above the maximum, yet an answer may mix two moments.
        return min(asg.min_size, asg.max_size), asg.max_size

    async def _shortages(self, found: Sequence[Known], new: set[str]) -> dict[str, Shortage]:
        """Return why groups lack machines; a failed question counts as no shortage, as upstream has it."""
        lacking = [known for known in found if known.missing() and known.asg.name not in new]

        async def ask(known: Known) -> Shortage:
            try:
                since = self._ledger.resized_at(known.asg.name)
                return Shortage(shortage(await self._api.activities(known.asg.name), since))
            except CloudError as error:
                return unknown_shortage(error)

        answers = await in_parallel(lacking, ask, limit=_AT_ONCE)
        return {known.asg.name: answer for known, answer in zip(lacking, answers, strict=True)}

    async def _base(self, asg: Asg, launched: Launched, now: Instant, warning: str = "") -> NodeGroup:
        tags = read_tags(asg.tags)
        has_template = not launched.error and launched.types[0] in self._types.by_name
        managed = await self._nodegroups.of(tags.labels, now) if has_template else NOTHING
        made = make_template(asg, launched, self._types.by_name, tags, managed)
        options = read_options(tags.options, OPTION_NAMES)
        warnings = (
            *tags.warnings,
            *options.warnings,
            *made.warnings,
            *doubts_of(asg, self._explicit.get(asg.name)),
            *self._types.doubts(launched.types),
            *warnings_of(asg, launched, self._types.by_name),
            *((warning,) if warning else ()),
        )
        ways = offerings(asg, launched, made.types, self._prices.by_place if self._prices else {})
        return NodeGroup(
            template=made.template,
            template_error=made.error,
            options=options.options,
            price_per_hour=max((way.price_per_hour for way in ways if way.price_per_hour), default=None),
            offerings=ways or None,
            warnings=warnings or None,
        )

    async def group_candidates(self) -> Sequence[GroupCandidate]:
        """Return the groups that could be created after the patterns that there are. Raises CloudError."""
        return tuple(one.offered for one in await self._creatable())

    async def _creatable(self) -> tuple[Candidate, ...]:
        await self.refresh()
        if self._candidates is None:
            self._candidates = in_order(
                [
                    await self._candidate(pattern, kind, zone)
                    for pattern in (known.asg for known in self._known.values() if not known.stale)
                    for kind in usable_types(pattern, self._launched[pattern.name], self._types.by_name)
                    for zone in pattern.zones
                ]
            )
        return self._candidates

    async def _candidate(self, pattern: Asg, kind: str, zone: str) -> Candidate | None:
        name = candidate_name(pattern.name, kind, zone)
        group, launched = would_be(pattern, name, kind, zone)
        base = await self._base(group, launched, self._clock.now())
        return make_candidate(
            pattern.name, base, group_id=name, max_size=group.max_size, instance_type=kind, zone=zone
        )

    def group_of(self, provider_id: str) -> str | None:
        """Return the group of an instance as of the last refresh; None for a foreign one."""
        return next((name for name, known in self._known.items() if known.has(provider_id)), None)

    # ── commands ────────────────────────────────────────────────────────────────────────────────

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Raise the desired capacity, unless it is as large by now. Raises CloudError.

        An order is a size: made of an old one it would end machines that others have asked for since.
        """
        known = await self._group(group_id)
        known.check_increase(delta)
        size = known.target + delta
        await self._see_again(known)
        if known.target < size:
            await self._set_size(known, size)

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Lower the desired capacity by machines that AWS still owes, as of now. Raises CloudError."""
        known = await self._group(group_id)
        if delta <= 0:
            raise CloudError(f"node group {group_id}: size decrease must be positive, not {delta}")
        self._check_owed(known, delta)
        await self._see_again(known)
        self._check_owed(known, delta)
        await self._set_size(known, known.target - delta)
        known.note_withdrawal()

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """End instances and withdraw placeholders; the first failure ends it. Raises CloudError.

        What AWS still owes beyond the placeholders named here stays asked for.
        """
        known = await self._group(group_id)
        doomed = tuple(dict.fromkeys(provider_ids))
        known.check_delete(doomed, self._ledger, force=force)
        withdrawn = sum(map(is_placeholder, doomed))
        names = {each: member.name for each in doomed if (member := known.member(each)) is not None}
        going = {each for each in names if known.is_going(each)}
        self._next = Instant(0)
        if withdrawn:
            await self._see_again(known)
            # Machines that came meanwhile stay: they may have pods by now.
            size = max(known.asg.desired - withdrawn, min(len(known.asg.members), known.asg.desired))
            if size < known.asg.desired:
                await self._set_size(known, size)
        for each, name in names.items():
            if each not in going:
                await self._ledger.remove(group_id, known.target, [each], self._api.terminate(name))
                known.ended.add(each)
                known.set_target(known.target - 1, self._clock.now())

    async def create_group(self, group: NewGroup) -> NodeGroup:
        """Create a group like its pattern, and return it. Raises CloudError."""
        candidates, called = await self._creatable(), "an Auto Scaling group"
        pattern = pattern_for(candidates, group, taken=group.id in self._raw, called=called)
        raw, asg = self._raw[pattern]
        await create(self._api, asg, raw, group)
        self._fresh.add(group.id)
        self._next = Instant(0)
        await self.refresh()
        return (await self._group(group.id)).view()

    async def delete_group(self, group_id: str) -> None:
        """Delete a group that ``create_group`` created and that has no machines. Raises CloudError."""
        known = await self._group(group_id)
        is_empty = not known.target and not known.asg.members
        check_deletion(group_id, is_ours=known.is_ours, is_empty=is_empty)
        await self._api.delete_group(group_id)
        self._deleted.add(group_id)
        self._fresh.discard(group_id)
        del self._known[group_id]

    async def _group(self, group_id: str) -> Known:
        if not self._known:
            await self.refresh()
        known = self._known.get(group_id)
        if known is None:
            raise CloudError(
                f"no node group {group_id}; there are {', '.join(sorted(self._known)) or 'none'}"
            )
        if known.is_unsure:
            await self._see_again(known)
        return known

    def _check_owed(self, known: Known, delta: int) -> None:
        here = len(known.asg.members)
        if known.target - delta < here:
            raise CloudError(
                f"node group {known.asg.name}: attempt to delete existing nodes targetSize:{known.target} "
                f"delta:-{delta} existingNodes: {here}"
            )

    async def _set_size(self, known: Known, size: int) -> None:
        call = self._api.set_desired_capacity(known.asg.name, size)
        await self._ledger.resize(known.asg.name, size - known.target, call)
        known.set_target(size, self._clock.now())

    def _doubt(self, group_id: str) -> None:
        """Read a group before its next order, as nobody knows whether the last one was carried out."""
        self._known[group_id].doubt()
        self._next = Instant(0)

    async def _see_again(self, known: Known) -> None:
        found = await self._api.groups_by_name([known.asg.name])
        if not found:
            raise CloudError(f"node group {known.asg.name}: {_GONE}")
        known.seen(read_group(found[0]), self._clock.now())
