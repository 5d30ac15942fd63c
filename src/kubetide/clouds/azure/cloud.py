"""The Cloud port over Azure's scale sets, uniform and flexible.

A refresh costs one list of sets a minute, one read of each spot set (its size changes by eviction),
one list of machines a set every five minutes or as soon as its size and its machines disagree, and one
read of each change that goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from kubetide.acting.parallel import in_parallel
from kubetide.clouds.azure.api import ComputeApi
from kubetide.clouds.azure.autoscale import scaling_policies
from kubetide.clouds.azure.capacities import Capacities
from kubetide.clouds.azure.creation import CALLED, Patterns, create, pattern_of, warnings_of
from kubetide.clouds.azure.discovery import Bounds, matching_bounds, set_bounds
from kubetide.clouds.azure.machine_cache import MachineCache
from kubetide.clouds.azure.machines import SetMachine, delete_machines
from kubetide.clouds.azure.model import ScaleSet
from kubetide.clouds.azure.operations import PREEMPTED, CompletedOperation, DeletionOrder, Operations
from kubetide.clouds.azure.references import PREFIX, normalized
from kubetide.clouds.azure.settings import AzureSettings
from kubetide.clouds.azure.skus import InstanceType
from kubetide.clouds.azure.template import GPU_LABEL, described
from kubetide.clouds.common.creation import Candidate, check_deletion, in_order, made_group, pattern_for
from kubetide.clouds.common.ledger import Ledger
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.readings import GroupReading, ShownGroups, attempt, group_of_reading
from kubetide.clouds.common.sizes import check_decrease, check_delete, check_increase, increased
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud, GroupCandidate, KnowsMachines, NewGroup, NodeGroup
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration

_AT_ONCE = 8


class AzureCloud(Cloud):
    """Node groups are scale sets; ids are their names, compared without case.

    Args:
        api: The resource group's scale sets.
        settings: Which of them, and how.
        clock: Time.
        types: The sizes of machines there are; the shipped list unless given.
        warn: Called with a sentence for each discovered set whose bounds cannot be read, once for each.
    """

    name = "azure"
    gpu_label = GPU_LABEL
    gpu_types = ("nvidia-tesla-a100", "nvidia-tesla-k80", "nvidia-tesla-p100", "nvidia-tesla-v100")
    creates_groups = True
    # As upstream: a node whose machine is being deleted is neither ready nor unready.
    knows_machines: KnowsMachines = "existing"

    def __init__(
        self,
        api: ComputeApi,
        settings: AzureSettings,
        clock: Clock,
        *,
        types: Mapping[str, InstanceType] | None = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._api, self._settings, self._clock, self._types = api, settings, clock, types
        self._explicit = {spec.name.lower(): spec for spec in settings.nodes}
        self._groups = dict(self._explicit)
        self._warn_once = cache(warn)
        self._sets: dict[str, ScaleSet] = {}
        self._capacities = Capacities()
        self._operations, self._ledger = Operations(api, clock), Ledger(clock, self._doubt)
        self._lost: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}
        self._cache = MachineCache(api, settings, clock)
        self._sets_at: Duration | None = None
        self._spot_at: Duration | None = None
        self._sets_outdated = False
        self._shown = ShownGroups()
        self._patterns = Patterns(api)
        self._candidates: tuple[Candidate, ...] | None = None
        self._deleted: set[str] = set()
        self._fresh: dict[str, str] = {}

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return all groups as they are now, ordered by id."""
        await self.renew()
        return self._shown.show(await self.readings())

    async def renew(self) -> None:
        """List the sets anew once a minute. The first time, what cannot be read is an error. Raises CloudError."""
        now, is_first = self._clock.monotonic(), self._sets_at is None
        for one in await self._operations.completed():
            await self._take_result(one)
        if self._sets_at is None or self._sets_outdated or now - self._sets_at >= self._settings.sets_for:
            await self._list_sets()
            self._sets_at, self._sets_outdated = now, False
        elif self._spot_at is not None and now - self._spot_at >= self._settings.spot_for:
            await self._read_spot()
        if is_first:
            # Of several that cannot be read upstream names the first in the order of ``--nodes``.
            found = sorted(self._groups.keys() - self._explicit.keys())
            there = [key for key in (*self._explicit, *found) if key in self._sets]
            await in_parallel(there, self._first_machines_of, limit=_AT_ONCE)

    async def _first_machines_of(self, key: str) -> None:
        """List a set's machines for the first time. Raises CloudError, but not where that is throttled."""
        try:
            await self._machines_of(key)
        except CloudError as error:
            if error.cause != "Throttled":
                raise

    async def _list_sets(self) -> None:
        found, problems = await self._api.scale_sets()
        # One that cannot be read stays as it was, and says why.
        self._unreadable = {name.lower(): one for name, one in problems.items()}
        known = [one for key, one in self._sets.items() if key in self._unreadable]
        listed = {one.name.lower(): one for one in (*known, *found)}
        # A set is smaller once its machines are gone: only sizes that are newer than their list say so.
        self._ledger.keep(self._cache.ids())
        self._deleted &= listed.keys()
        # A set that was just created may be listed late.
        self._fresh = {key: name for key, name in self._fresh.items() if key not in listed}
        for key, name in self._fresh.items():
            late, _ = await attempt(self._api.scale_set(name))
            listed |= {key: late} if late else {}
        self._groups = dict(self._explicit)
        for key, one in listed.items():
            bounds = matching_bounds(self._settings.discovery, one.tags or {})
            if bounds is None and (pattern_of(one) or "").lower() in self._explicit:
                bounds = Bounds(None, None)
            if bounds is None or key in self._explicit or key in self._deleted:
                continue
            try:
                self._groups[key] = NodeSpec(one.name, *set_bounds(bounds, one.tags or {}))
            except CloudError as error:
                self._warn_once(f"scale set {one.name} is left out: {error}; correct its tags min and max")
        self._sets = listed
        await self._read_spot()
        await self._patterns.read({key: listed[key] for key in self._groups if key in listed})
        self._candidates = None

    async def _read_spot(self) -> None:
        """Read each spot set, which loses machines by eviction; one that cannot be read says why, and hides no other.

        Upstream only lets one that is gone pass; any other failure ends its loop.
        """
        spot = [key for key in sorted(self._groups) if key in self._sets and self._sets[key].is_spot]
        read = await in_parallel(
            spot, lambda key: attempt(self._api.scale_set(self._sets[key].name)), limit=_AT_ONCE
        )
        found: dict[str, ScaleSet | str] = {**self._unreadable}
        found |= {key: one or problem for key, (one, problem) in zip(spot, read, strict=True)}
        self._sets |= {key: one for key, one in found.items() if isinstance(one, ScaleSet)}
        self._lost = {key: one for key, one in found.items() if isinstance(one, str)}
        now = self._clock.monotonic()
        self._capacities.update(self._sets, now, lost=self._lost)
        self._spot_at = now if spot else None

    async def _take_result(self, operation: CompletedOperation) -> None:
        """Read anew what an operation that has ended may have changed; a pre-empted deletion is ordered once more.

        Source: cluster-autoscaler cloudprovider/azure, which does so when its wait for the operation ends.
        """
        key, error, deletion = operation
        self._cache.expire(key)
        if error is None:
            self._sets_outdated |= deletion is not None and self._settings.strict
            return
        if deletion and not deletion.again and error.error_code == PREEMPTED and key in self._sets:
            url, refusal = await attempt(delete_machines(self._api, self._sets[key], deletion))
            if not refusal:
                self._operations.begin(key, url or "", deletion._replace(again=True))
                return
        self._capacities.forget_change(key)
        if deletion:
            self._ledger.withdraw(key)
        self._sets_outdated = True

    async def readings(self) -> list[GroupReading]:
        """Return each group with what could and what could not be read of it."""
        return await in_parallel(sorted(self._groups), self._reading, limit=_AT_ONCE)

    async def _reading(self, key: str) -> GroupReading:
        group, scale_set = self._groups[key], self._sets.get(key)
        reading = GroupReading(
            id=group.name, min_size=group.min_size, max_size=group.max_size, debug=group.name
        )
        if scale_set is None:
            missing = self._lost.get(key) or f"could not find vmss: {group.name}"
            return reading._replace(instances=(), target_error=missing, template_error=missing)
        target, target_error = await attempt(self._target(key))
        machines, machines_error = await attempt(self._machines_of(key))
        reading = self._described(scale_set, reading)
        obstacle = self._patterns.obstacle(key, group.max_size)
        return reading._replace(
            target=target,
            target_error=target_error,
            instances=None if machines is None else tuple(one.as_instance() for one in machines),
            instances_error=machines_error,
            stateless=frozenset(one.provider_id for one in machines or () if one.status.state is None),
            warnings=(*reading.warnings, *warnings_of(scale_set, obstacle, self._types)),
        )

    def _described(self, scale_set: ScaleSet, reading: GroupReading) -> GroupReading:
        """Return the group with what its scale set says of its machines, whether or not there are any."""
        reading = reading._replace(autoprovisioned=self._is_ours(scale_set))
        return described(scale_set, reading, predict_labels=self._settings.predict_labels, types=self._types)

    async def _target(self, key: str) -> int:
        size = self._capacities.of(key)
        if size is None:
            name = self._groups[key].name
            raise CloudError(self._lost.get(key) or f"could not find vmss: {name}, or it has no capacity")
        return size

    async def _machines_of(self, key: str) -> list[SetMachine]:
        scale_set = self._sets.get(key)
        if scale_set is None or key in self._lost:
            return []
        return await self._cache.of(key, scale_set, self._capacities.of(key))

    async def scaling_policies(self) -> Mapping[str, Sequence[str]]:
        """Return the autoscale settings that change the sizes of sets, by group. Raises CloudError."""
        await self.renew()
        ids = {self._sets[key].id: one.name for key, one in self._groups.items() if key in self._sets}
        return scaling_policies(await self._api.autoscale_settings(), ids)

    # ── groups that are created ─────────────────────────────────────────────────────────────────

    async def group_candidates(self) -> Sequence[GroupCandidate]:
        """Return the groups that could be created like the patterns that there are. Raises CloudError."""
        return tuple(one.offered for one in await self._creatable())

    async def _creatable(self) -> tuple[Candidate, ...]:
        await self.renew()
        if self._candidates is None:
            self._candidates = in_order(
                candidate
                for key, group in self._groups.items()
                for candidate in self._patterns.candidates(key, group.max_size, self._types, self._view)
            )
        return self._candidates

    def _view(self, scale_set: ScaleSet) -> NodeGroup:
        return group_of_reading(self._described(scale_set, GroupReading(scale_set.name, 0, 0)), {})

    async def create_group(self, group: NewGroup) -> NodeGroup:
        """Create a set like its pattern, wait until it is there, and return it. Raises CloudError."""
        candidates = await self._creatable()
        pattern = pattern_for(candidates, group, taken=group.id.lower() in self._sets, called=CALLED)
        (zone,) = group.zones or ("",)
        model = self._patterns.model_like(
            pattern, name=group.id, size=group.instance_type, zone=zone, max_size=group.max_size
        )
        await create(self._api, group.id, model)
        self._fresh[group.id.lower()] = group.id
        await self._list_sets()
        return made_group(await self.refresh(), group.id)

    async def delete_group(self, group_id: str) -> None:
        """Delete a set that ``create_group`` created and that has no machines as of now. Raises CloudError."""
        key, known = await self._known(group_id)
        # Azure deletes a set with all its machines, so those that came since are looked for.
        scale_set = await self._api.scale_set(known.name)
        is_empty = scale_set.capacity == 0 and not await self._api.machines(scale_set)
        check_deletion(group_id, is_ours=self._is_ours(scale_set), is_empty=is_empty)
        await self._api.delete_set(scale_set.name)
        self._deleted.add(key)
        self._fresh.pop(key, None)
        del self._groups[key]

    # ── whose instance ──────────────────────────────────────────────────────────────────────────

    def _is_ours(self, scale_set: ScaleSet) -> bool:
        """Return whether this program created a set that nobody has named since."""
        return pattern_of(scale_set) is not None and scale_set.name.lower() not in self._explicit

    def known_groups(self) -> list[str]:
        """Return the ids of all groups, without a call."""
        return [group.name for group in self._groups.values()]

    async def group_of(self, node_id: str) -> str | None:
        """Return the id of the group that the instance belongs to, None where it is not ours. Raises CloudError."""
        if not node_id.startswith(PREFIX):
            return None
        normalized(node_id)
        found = self._cache.find(node_id, self._groups.keys())
        return None if found is None else self._groups[found[0]].name

    # ── changes ─────────────────────────────────────────────────────────────────────────────────

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Ask for ``delta`` more machines. Raises CloudError where the order is refused."""
        self._operations.begin(*await self._increase(group_id, delta))

    async def atomic_increase_size(self, group_id: str, delta: int) -> None:
        """Ask for ``delta`` more machines and wait, half an hour at most, until all are there. Raises CloudError."""
        key, operation = await self._increase(group_id, delta)
        error = await self._api.operation_error(operation) if operation else None
        self._cache.expire(key)
        if error is not None:
            self._capacities.forget_change(key)
            await self._list_sets()
            raise error

    async def _increase(self, group_id: str, delta: int) -> tuple[str, str]:
        check_increase(delta)
        key, scale_set = await self._known(group_id)
        target = increased(await self._target(key), delta, self._groups[key].max_size)
        size, operation = await self._ledger.resize(key, delta, self._set_capacity(key, scale_set, target))
        self._note_size(key, size)
        return key, operation

    def _note_size(self, key: str, size: int) -> None:
        holds = self._settings.spot_for if self._sets[key].is_spot else self._settings.sets_for
        self._capacities.change(key, size, until=Duration(self._clock.monotonic() + holds))

    async def _set_capacity(self, key: str, scale_set: ScaleSet, target: int) -> tuple[int, str]:
        """Ask for a size; return the size that the set has now, and the URL of the operation."""
        # A size of the last list, a minute ago, would end machines that others have asked for since.
        etag = self._etag_of(scale_set)
        if etag or self._capacities.is_ours(key):
            try:
                return target, await self._api.set_capacity(scale_set, target, etag=etag)
            except CloudError as error:
                if not etag or error.error_code not in {"PreconditionFailed", "412"}:
                    raise
        return await self._set_capacity_anew(key, target)

    def _etag_of(self, scale_set: ScaleSet) -> str:
        return (scale_set.etag or "") if self._settings.etag else ""

    async def _set_capacity_anew(self, key: str, target: int) -> tuple[int, str]:
        """Read a set that somebody may have changed, and ask for a size, unless it is as large; so upstream with an ETag."""
        self._cache.expire(key)
        try:
            fresh = self._sets[key] = await self._api.scale_set(self._sets[key].name)
            if (fresh.capacity or 0) >= target:
                return fresh.capacity or 0, ""
            return target, await self._api.set_capacity(fresh, target, etag=self._etag_of(fresh))
        except CloudError:
            self._sets_outdated = True
            raise

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Read the set's machines anew; nothing is withdrawn.

        A set's capacity counts machines that exist, if only as being created: there is no open order.
        Source: cluster-autoscaler cloudprovider/azure, ``DecreaseTargetSize``.
        """
        key, _ = await self._known(group_id)
        check_decrease(delta)
        self._cache.expire(key)

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """Delete these machines in one call; those that are being deleted already are left out. Raises CloudError."""
        key, scale_set = await self._known(group_id)
        target, least = await self._target(key), self._groups[key].min_size
        if not force:
            check_delete(target, least, 1)
        # Those of an order of a moment ago show as being deleted until they are listed again.
        await self._cache.ensure(key, scale_set)
        doomed = self._cache.doomed(key, provider_ids, self._groups.keys())
        if not doomed:
            return
        ids = [one.provider_id for one in doomed]
        if not force:
            check_delete(self._ledger.size_at_most(key, target, ids), least, len(doomed))
        deletion = DeletionOrder(tuple(one.instance_id for one in doomed), self._settings.force_delete)
        call = delete_machines(self._api, scale_set, deletion)
        operation = await self._ledger.remove(key, target, ids, call)
        self._operations.begin(key, operation, deletion)
        if self._settings.strict:
            return
        if target >= len(doomed):
            self._note_size(key, target - len(doomed))
        else:
            # A size too old to be true; the listed one is not better, but it is soon renewed.
            self._capacities.forget_change(key)
        self._cache.mark_deleting(key, ids)

    def _doubt(self, key: str) -> None:
        """Read a set anew, as nobody knows whether its last order was carried out."""
        self._cache.expire(key)
        self._sets_outdated = True

    async def _known(self, group_id: str) -> tuple[str, ScaleSet]:
        key = group_id.lower()
        if self._sets_at is None or self._sets_outdated:
            await self.renew()
        if key not in self._groups:
            raise CloudError(f"azure: there is no node group {group_id}")
        if key not in self._sets:
            raise CloudError(self._lost.get(key) or f"could not find vmss: {group_id}")
        return key, self._sets[key]
