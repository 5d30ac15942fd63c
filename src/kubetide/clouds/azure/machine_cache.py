"""The machines of each set as they were listed last, and when they are listed again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from kubetide.clouds.azure.api import ComputeApi
from kubetide.clouds.azure.machines import SetMachine, read_machines
from kubetide.clouds.azure.model import ScaleSet
from kubetide.clouds.azure.references import normalized
from kubetide.clouds.azure.settings import AzureSettings
from kubetide.clouds.azure.status import StatusRules, VmStatus
from kubetide.clouds.common.pagination import each_once
from kubetide.ports.clock import Clock
from kubetide.ports.errors import CloudError
from kubetide.units.seeds import unit_interval
from kubetide.units.time import Duration, minutes

_LONGEST_WAIT = minutes(15)
"""For so long at most a throttled list waits, whatever ``Retry-After`` says."""


class MachineCache:
    """Machines by the keys of sets.

    A list serves for a while, less by some of the jitter, but not where it has another number of machines than the set. A throttled one leaves the
    list before it in force.

    Source: cluster-autoscaler cloudprovider/azure, instance cache of a scale set.
    """

    def __init__(self, api: ComputeApi, settings: AzureSettings, clock: Clock) -> None:
        self._api, self._settings, self._clock = api, settings, clock
        self._rules = StatusRules(settings.fast_delete, settings.detailed_cse)
        self._lists: dict[str, list[SetMachine]] = {}
        self._listed_at: dict[str, Duration] = {}
        self._not_before: dict[str, Duration] = {}

    def check_mode(self, scale_set: ScaleSet) -> None:
        """Raise CloudError for a set whose orchestration is not supported or not switched on."""
        mode = scale_set.properties.orchestration_mode
        if mode == "Flexible" and not self._settings.flexible:
            raise CloudError(
                f'vmss - "{scale_set.name}" with Flexible orchestration detected but '
                "'enableVmssFlexNodes' feature flag is turned off"
            )
        if mode not in {"Flexible", "Uniform"}:
            raise CloudError(f'failed to determine orchestration mode for vmss "{scale_set.name}"')

    async def of(self, key: str, scale_set: ScaleSet, size: int | None) -> list[SetMachine]:
        """Return the machines of a set of that size. Raises CloudError."""
        self.check_mode(scale_set)
        known = self._lists.get(key)
        if known is not None and len(known) == size and not self._is_outdated(key):
            return known
        return await self._list(key, scale_set)

    async def ensure(self, key: str, scale_set: ScaleSet) -> None:
        """List a set's machines unless they were listed lately, however many. Raises CloudError."""
        if key not in self._lists or self._is_outdated(key):
            self.check_mode(scale_set)
            await self._list(key, scale_set)

    def _is_outdated(self, key: str) -> bool:
        listed_at = self._listed_at.get(key)
        return listed_at is None or self._clock.monotonic() - listed_at >= self._settings.machines_for

    async def _list(self, key: str, scale_set: ScaleSet) -> list[SetMachine]:
        now, known = self._clock.monotonic(), self._lists.get(key)
        if now < self._not_before.get(key, now):
            if known is None:
                raise CloudError(
                    f"Azure throttles the list of machines of {scale_set.name}", cause="Throttled"
                )
            return known
        try:
            listed = await self._api.machines(scale_set)
        except CloudError as error:
            if error.cause != "Throttled":
                raise
            if error.retry_after is not None:
                self._not_before[key] = Duration(now + min(error.retry_after, _LONGEST_WAIT))
            if known is None:
                raise
            self._note_list(key, now)
            return known
        before = {one.provider_id.lower(): one.status for one in known or ()}
        read = read_machines(scale_set, listed, self._rules, before)
        self._lists[key] = each_once(read, lambda one: one.provider_id.lower())
        self._note_list(key, now)
        return self._lists[key]

    def _note_list(self, key: str, now: Duration) -> None:
        early = self._settings.machines_jitter * unit_interval(0, "machines", key, now)
        self._listed_at[key] = Duration(round(now - early))

    def expire(self, key: str) -> None:
        """List a set's machines anew the next time."""
        self._listed_at.pop(key, None)

    def ids(self) -> Iterator[str]:
        """Yield the provider ids of all machines, as they were listed last."""
        return (one.provider_id for machines in self._lists.values() for one in machines)

    def find(self, node_id: str, keys: Collection[str]) -> tuple[str, SetMachine] | None:
        """Return which of the sets has the machine of a provider id, in any case, and the machine."""
        lowered = node_id.lower()
        for key, machines in self._lists.items():
            for one in machines if key in keys else ():
                if one.provider_id.lower() == lowered:
                    return key, one
        return None

    def doomed(self, key: str, node_ids: Iterable[str], keys: Collection[str]) -> list[SetMachine]:
        """Return the set's machines of these provider ids, each once, without those that are being deleted already.

        Raises CloudError for one that is of another of the sets, or of none.
        """
        found: dict[str, SetMachine] = {}
        for node_id in node_ids:
            normalized(node_id)
            owner = self.find(node_id, keys)
            if owner is None:
                raise CloudError(f"{node_id} doesn't belong to a known scale set")
            if owner[0] != key:
                raise CloudError(f"{node_id} belongs to a different scale set than {key}: {owner[0]}")
            if owner[1].status.state != "Deleting":
                found[owner[1].provider_id] = owner[1]
        return list(found.values())

    def mark_deleting(self, key: str, gone: Collection[str]) -> None:
        """Show machines as being deleted before a list does; ``gone`` are their provider ids."""
        self._lists[key] = [
            one._replace(status=VmStatus("Deleting")) if one.provider_id in gone else one
            for one in self._lists[key]
        ]
