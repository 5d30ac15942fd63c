"""Orders that a cloud has taken on and may not fulfil: machines that do not come, and machines that do not go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from kubetide.clouds.common.placeholders import FailedActivity, missing_machines, with_placeholders
from kubetide.clouds.common.readings import GroupReading, attempt
from kubetide.ports.clock import Clock
from kubetide.units.time import Duration, Instant, minutes

_REMOVAL_LASTS = minutes(15)


class Orders:
    """When each group was last asked for more machines, until all of them are there.

    Args:
        failed_activity: Returns why a group's order failed since a time; None where no activity says so.
        make_id: Makes a provider id of a stand-in's name.
    """

    def __init__(
        self,
        failed_activity: Callable[[str, Instant], Awaitable[FailedActivity | None]],
        make_id: Callable[[str], str],
    ) -> None:
        self._failed_activity, self._make_id = failed_activity, make_id
        self._placed: dict[str, Instant] = {}

    def place(self, group: str, now: Instant) -> None:
        """Note that a group was asked for more machines."""
        self._placed[group] = now

    async def with_failures(self, reading: GroupReading) -> GroupReading:
        """Return the group with stand-ins for machines that we ordered and that an activity says cannot be had."""
        since = self._placed.get(reading.id)
        if since is None:
            return reading
        if not missing_machines(reading):
            if reading.target is not None and not reading.instances_error:
                del self._placed[reading.id]
            return reading
        failure, _ = await attempt(self._failed_activity(reading.id, since))
        return reading if failure is None else with_placeholders(reading, failure, self._make_id)


class Removals:
    """Instances that a cloud has agreed to remove, until no list has them any more.

    One that is still there a quarter of an hour later may be removed again: the cloud can have given up.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._placed: dict[str, Duration] = {}

    def place(self, instance: str) -> None:
        """Note that the cloud agreed to remove an instance."""
        self._placed[instance] = self._clock.monotonic()

    def __contains__(self, instance: str) -> bool:
        placed = self._placed.get(instance)
        return placed is not None and self._clock.monotonic() - placed < _REMOVAL_LASTS

    def keep(self, listed: Iterable[str]) -> None:
        """Forget all instances but those that are still listed."""
        for one in self._placed.keys() - {*listed}:
            del self._placed[one]
