"""The Cloud port over Compute Engine's managed instance groups, of a zone or of a region.

A refresh costs one list of managers a zone (or region) and one list of instances a group, both paged (with bulk
listing: one list of instances a zone); discovery adds one list of groups a spec and zone each minute.
Templates and machine types are read when they change, machine types anew each hour.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kubetide.acting.parallel import in_parallel
from kubetide.clouds.common.creation import Candidate, check_deletion, in_order, made_group, pattern_for
from kubetide.clouds.common.gpu import NVIDIA_TESLA
from kubetide.clouds.common.ledger import Ledger
from kubetide.clouds.common.options import ReadOptions
from kubetide.clouds.common.pagination import check_whole
from kubetide.clouds.common.readings import GroupReading, ShownGroups, attempt
from kubetide.clouds.common.sizes import check_decrease, check_delete, check_increase, decreased, increased
from kubetide.clouds.gce.api import ComputeApi, chunks
from kubetide.clouds.gce.autoscalers import scaling_policies
from kubetide.clouds.gce.creation import CALLED, Pattern, Patterns, create, delete, pattern_of
from kubetide.clouds.gce.discovery import Bounds, check_found, most_found
from kubetide.clouds.gce.instances import instances_by_group, managed_instances
from kubetide.clouds.gce.managers import Manager
from kubetide.clouds.gce.names import Names
from kubetide.clouds.gce.prices import GPU_LABEL, pod_prices
from kubetide.clouds.gce.references import GceRef, Scope, group_id, parse_group_url, parse_provider_id
from kubetide.clouds.gce.settings import GceSettings
from kubetide.clouds.gce.templates import Built, Templates
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import (
    Cloud,
    GroupCandidate,
    Instance,
    KnowsMachines,
    NewGroup,
    NodeGroup,
    PodPrices,
)
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration, minutes

_DISCOVERY_EVERY = minutes(1)
_CREATED_AT_ONCE = 1000


class GceCloud(Cloud):
    """Node groups are managed instance groups; ids are their instance groups' URLs.

    Args:
        api: The project's Compute Engine.
        settings: Which groups, and how.
        clock: Time.
        seed: Of the names of new instances.
    """

    name = "gce"
    gpu_label = GPU_LABEL
    gpu_types = NVIDIA_TESLA
    creates_groups = True
    # As upstream: it is not asked about single machines, so the taint for deletion says that one goes.
    knows_machines: KnowsMachines = "unknown"

    def __init__(self, api: ComputeApi, settings: GceSettings, clock: Clock, *, seed: int = 0) -> None:
        self._api, self._settings, self._clock = api, settings, clock
        self._groups = {
            parse_group_url(spec.name): Bounds(spec.min_size, spec.max_size, is_explicit=True)
            for spec in settings.nodes
        }
        self._managers: dict[GceRef, Manager] = {}
        self._listed_scopes: set[Scope] = set()
        self._instances: dict[GceRef, tuple[Instance, ...]] = {}
        self._listed_at: dict[GceRef, Duration] = {}
        self._fresh: set[GceRef] = set()
        self._templates = Templates(api, clock)
        self._patterns = Patterns(self._templates)
        self._discovered_at: Duration | None = None
        self._shown = ShownGroups()
        self._names, self._ledger = Names(seed), Ledger(clock)

    @property
    def pod_prices(self) -> PodPrices:
        """What a pod's requests cost, also its disk and GPUs."""
        return pod_prices()

    # ── reading ─────────────────────────────────────────────────────────────────────────────────

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return all groups as they are now, ordered by id."""
        await self.renew()
        return self._shown.show(await self.readings())

    async def renew(self) -> None:
        """Forget what may have changed; once a minute look for groups. Raises CloudError.

        The first time a group whose machines cannot be listed is an error, as upstream's start ends there.
        Later it is shown as it is, so that it keeps no other from growing.
        """
        self._managers.clear()
        self._listed_scopes.clear()
        self._fresh.clear()
        now = self._clock.monotonic()
        if self._discovered_at is not None and now - self._discovered_at < _DISCOVERY_EVERY:
            return
        is_first = self._discovered_at is None
        changed = await self._discover()
        if is_first:
            self._discovered_at = now
        if changed or (is_first and self._groups):
            await in_parallel(sorted(self._groups), self._instances_of, limit=self._settings.at_once)
        self._discovered_at = now

    async def _discover(self) -> bool:
        """Add discovered groups and drop those that are gone; return whether any changed."""
        found: dict[GceRef, Bounds] = {}
        if self._settings.discovery:
            zones = await self._zones()
            for spec in self._settings.discovery:
                names = await asyncio.gather(*(self._api.group_names(zone, spec.filter) for zone in zones))
                for zone, in_zone in zip(zones, names, strict=True):
                    if in_zone:
                        check_found(spec)
                    for one in in_zone:
                        ref = GceRef(self._settings.project, zone, one)
                        found[ref] = Bounds(spec.min_size, spec.max_size, is_explicit=False)
        explicit = {ref: bounds for ref, bounds in self._groups.items() if bounds.is_explicit}
        created = await self._created({**found, **explicit})
        before, self._groups = set(self._groups), {**created, **found, **explicit}
        for ref in before - set(self._groups):
            self._instances.pop(ref, None)
            self._listed_at.pop(ref, None)
            self._templates.forget(ref)
        return before != set(self._groups)

    async def _created(self, known: Mapping[GceRef, Bounds]) -> dict[GceRef, Bounds]:
        """Return the groups that were created like one of these, or like one that discovery would find."""
        found: dict[GceRef, Bounds] = {}
        earlier = {ref: bounds for ref, bounds in self._groups.items() if bounds.is_ours}
        for scope in sorted({ref.scope for ref in (*known, *earlier)}):
            await self._list_managers(scope)
            if scope not in self._listed_scopes:
                found |= {ref: one for ref, one in earlier.items() if ref.scope == scope}
        for ref, manager in self._managers.items():
            pattern = pattern_of(manager)
            if pattern is None:
                continue
            like = known.get(ref._replace(name=pattern))
            most = like.most if like else most_found(pattern, self._settings.discovery)
            if most is not None:
                found[ref] = Bounds(0, most, is_explicit=False, is_ours=True)
        return found

    async def _zones(self) -> tuple[str, ...]:
        location = self._settings.location
        return await self._api.zones_of(location) if self._settings.regional else (location,)

    async def readings(self) -> list[GroupReading]:
        """Return each group with what could and what could not be read of it."""
        if self._settings.bulk_listing:
            await self._list_in_bulk()
        refs = sorted(self._groups)
        for scope in sorted({ref.scope for ref in refs}):
            await self._list_managers(scope)
        found = await in_parallel(refs, self._reading, limit=self._settings.at_once)
        if not any(one.instances_error for one in found):
            self._ledger.keep(each.provider_id for one in found for each in one.instances or ())
        return found

    async def _reading(self, ref: GceRef) -> GroupReading:
        bounds = self._groups[ref]
        target, target_error = await attempt(self._target(ref))
        instances, instances_error = await attempt(self._instances_of(ref))
        built, template_error = await attempt(self._template_of(ref))
        options, warnings = await self._options(ref)
        pattern, _ = await attempt(self._pattern(ref))
        return GroupReading(
            id=group_id(ref),
            min_size=bounds.least,
            max_size=bounds.most,
            target=target,
            target_error=target_error,
            instances=instances,
            instances_error=instances_error,
            template=None if built is None else built.shown,
            template_error=template_error,
            options=options,
            warnings=(*warnings, *(pattern.warnings if pattern else ())),
            offerings=None if built is None else built.offerings,
            debug=str(ref),
            autoprovisioned=ref in self._managers and self._is_ours(ref, self._managers[ref]),
        )

    async def _list_managers(self, scope: Scope) -> None:
        if scope in self._listed_scopes:
            return
        listed, error = await attempt(self._api.managers(scope))
        if error:
            return  # each group is then asked by itself
        self._listed_scopes.add(scope)
        for one in listed or ():
            self._managers.setdefault(scope.named(one.name), one)

    async def _manager(self, ref: GceRef) -> Manager:
        if ref not in self._managers:
            await self._list_managers(ref.scope)
        if ref not in self._managers:
            self._managers[ref] = await self._api.manager(ref)
        return self._managers[ref]

    async def _target(self, ref: GceRef) -> int:
        return (await self._manager(ref)).size

    async def _instances_of(self, ref: GceRef) -> tuple[Instance, ...]:
        now = self._clock.monotonic()
        if ref not in self._fresh:
            listed_at = self._listed_at.get(ref)
            if listed_at is None or now - listed_at >= self._settings.min_refresh_wait:
                self._instances[ref] = managed_instances(await self._api.managed_instances(ref))
                self._listed_at[ref] = now
            self._fresh.add(ref)
        return self._instances[ref]

    async def _list_in_bulk(self) -> None:
        """Read the instances of settled groups from one list a zone; the others, and regional ones, are asked by themselves."""
        for scope in sorted({ref.scope for ref in self._groups if not ref.is_regional}):
            await self._list_managers(scope)
            listed, error = await attempt(self._api.instances(scope.project, scope.location))
            if error:
                continue
            found = instances_by_group(listed or ())
            for ref, manager in self._managers.items():
                if ref not in self._groups or ref.is_regional:
                    continue
                mine = found.get(ref, [])
                # A machine that stopped by itself is its group's still: only the group knows what becomes of it.
                if manager.is_settled(len(mine)) and all(one.state == "Running" for one in mine):
                    self._instances[ref] = tuple(sorted(mine, key=lambda one: one.provider_id))
                    self._fresh.add(ref)

    async def scaling_policies(self) -> Mapping[str, Sequence[str]]:
        """Return the autoscalers that change the sizes of groups, by group. Raises CloudError."""
        if self._discovered_at is None:
            await self.renew()
        scopes = sorted({ref.scope for ref in self._groups})
        return scaling_policies({one: await self._api.autoscalers(one) for one in scopes}, self._groups)

    # ── templates ───────────────────────────────────────────────────────────────────────────────

    async def _template_of(self, ref: GceRef) -> Built:
        manager = await self._manager(ref)
        return await self._templates.built(ref, manager.instance_template, manager.zones(ref))

    async def _options(self, ref: GceRef) -> ReadOptions:
        try:
            manager = await self._manager(ref)
            read = await self._templates.options(ref, manager.instance_template)
            return read._replace(warnings=(*manager.doubts(ref), *read.warnings))
        except CloudError as error:
            warning = f"autoscaling options of {ref} cannot be read: {error}"
            return ReadOptions(self._templates.last_options(ref), (warning,))

    # ── groups that are created ─────────────────────────────────────────────────────────────────

    async def _pattern(self, ref: GceRef) -> Pattern:
        return await self._patterns.read(ref, await self._manager(ref), self._groups[ref].most)

    async def group_candidates(self) -> Sequence[GroupCandidate]:
        """Return the groups that could be created like the patterns that there are. Raises CloudError."""
        return tuple(one.offered for one in await self._creatable())

    async def _creatable(self) -> tuple[Candidate, ...]:
        if self._discovered_at is None:
            await self.renew()
        patterns = [(await attempt(self._pattern(ref)))[0] for ref in sorted(self._groups)]
        return in_order(one for pattern in patterns if pattern for one in pattern.candidates)

    async def create_group(self, group: NewGroup) -> NodeGroup:
        """Create a group like its pattern, wait until it is there, and return it. Raises CloudError."""
        candidates = await self._creatable()
        taken = group.id in {group_id(ref) for ref in self._managers}
        pattern = parse_group_url(pattern_for(candidates, group, taken=taken, called=CALLED))
        ref = parse_group_url(group.id)
        await create(self._api, pattern, ref, group)
        bounds = self._groups[pattern]._replace(least=0, is_explicit=False, is_ours=True)
        self._groups.setdefault(ref, bounds)
        return made_group(await self.refresh(), group.id)

    async def delete_group(self, group_id: str) -> None:
        """Delete a group that ``create_group`` created and that has no instances as of now. Raises CloudError."""
        ref = await self._known(group_id)
        # Compute Engine deletes a group with all its instances, so those that came since are looked for.
        manager = await self._api.manager(ref)
        is_empty = not manager.size and not await self._api.managed_instances(ref)
        check_deletion(group_id, is_ours=self._is_ours(ref, manager), is_empty=is_empty)
        await delete(self._api, ref, manager.instance_template)
        del self._groups[ref]
        self._forget(ref)

    def _is_ours(self, ref: GceRef, manager: Manager) -> bool:
        """Return whether this program created a group that nobody has named since."""
        return pattern_of(manager) is not None and not self._groups[ref].is_explicit

    def known_groups(self) -> list[str]:
        """Return the ids of all groups, without a call."""
        return [group_id(ref) for ref in sorted(self._groups)]

    # ── whose instance ──────────────────────────────────────────────────────────────────────────

    async def group_of(self, provider_id: str) -> str | None:
        """Return the id of the group that the instance belongs to, None where it is not ours. Raises CloudError."""
        ref = await self._owner(provider_id)
        return None if ref is None else group_id(ref)

    async def _owner(self, provider_id: str) -> GceRef | None:
        instance = parse_provider_id(provider_id)
        for ref, instances in self._instances.items():
            if any(one.provider_id == provider_id for one in instances):
                return ref
        for ref in sorted(self._groups):
            if not ref.may_hold(instance):
                continue
            manager, _ = await attempt(self._manager(ref))
            if manager is None or not instance.name.startswith(manager.base_instance_name):
                continue
            if any(one.provider_id == provider_id for one in await self._instances_of(ref)):
                return ref
        return None

    # ── changes ─────────────────────────────────────────────────────────────────────────────────

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Create ``delta`` instances under names of our own. Raises CloudError."""
        check_increase(delta)
        ref = await self._known(group_id)
        increased(await self._target(ref), delta, self._groups[ref].most)
        taken = {parse_provider_id(one.provider_id).name for one in await self._instances_of(ref)}
        base = (await self._manager(ref)).base_instance_name
        names = self._names.draw(base, delta, taken)
        self._forget(ref)
        for part in chunks(names, _CREATED_AT_ONCE):
            await self._ledger.resize(group_id, len(part), self._api.create_instances(ref, part))

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Lower the target by ``delta`` instances that do not exist yet. Raises CloudError."""
        check_decrease(delta)
        ref = await self._known(group_id)
        manager = await self._manager(ref)
        # Any instance would be a victim of the smaller size: one that came since, or whose URL cannot be read.
        self._list_anew(ref)
        listed = await self._api.managed_instances(ref)
        target = decreased(manager.size, delta, len(listed))
        check_whole({one.instance for one in listed}, manager.listed_at_least, f"instances of {ref}")
        # A resize sets how many run: with the suspended ones in it, it would start some.
        running = manager.running(target)
        self._forget(ref)
        await self._ledger.resize(group_id, -delta, self._api.resize(ref, running))
        self._managers[ref] = replace(manager, target_size=running)

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """Delete these instances in one call. Raises CloudError."""
        ref = await self._known(group_id)
        target, least = await self._target(ref), self._groups[ref].least
        if not force:
            check_delete(target, least, 1)
        doomed = list(dict.fromkeys(provider_ids))
        for one in doomed:
            owner = await self._owner(one)
            if owner is None:
                raise CloudError(f"{one} doesn't belong to a known mig")
            if owner != ref:
                raise CloudError(f"{one} belong to a different mig than {group_id}: {owner}")
        if not force:
            check_delete(self._ledger.size_at_most(group_id, target, doomed), least, len(doomed))
        self._forget(ref)
        # However young the last list is, it shows them as running.
        self._list_anew(ref)
        call = self._api.delete_instances(ref, [parse_provider_id(one) for one in doomed])
        await self._ledger.remove(group_id, target, doomed, call)

    async def _known(self, url: str) -> GceRef:
        if self._discovered_at is None:
            await self.renew()
        for ref in self._groups:
            if group_id(ref) == url:
                return ref
        raise CloudError(f"gce: there is no node group {url}")

    def _forget(self, ref: GceRef) -> None:
        self._managers.pop(ref, None)
        self._listed_scopes.discard(ref.scope)

    def _list_anew(self, ref: GceRef) -> None:
        self._fresh.discard(ref)
        self._listed_at.pop(ref, None)
