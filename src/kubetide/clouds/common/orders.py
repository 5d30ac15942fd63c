"""Orders that a cloud has taken on and may not fulfil: machines that do not come, and machines that do not go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from kubetide.clouds.common.placeholders import FailedActivity, missing_machines, with_placeholders
from kubetide.clouds.common.readings import GroupReading, attempt
from kubetide.ports.clock import Clock
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration, Instant, minutes

T = TypeVar("T")
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


class PendingRemovals:
    """Instances that a cloud was asked to remove, until no list has them any more, and the sizes that follow from it.

    One that is still there a quarter of an hour later may be removed again: the cloud can have given up. So may one
    that the cloud has not answered about.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._placed: dict[str, Duration] = {}
        self._unanswered: set[str] = set()
        self._sizes: dict[str, tuple[int, frozenset[str]]] = {}

    def place(self, group: str, size: int, instances: Iterable[str], *, is_answered: bool = True) -> None:
        """Note that the cloud was asked to remove instances of a group that had that size.

        ``is_answered`` is False where nobody knows whether the cloud agreed.
        """
        asked = frozenset(instances)
        others = frozenset(one for one in self._open(group) - asked if self._is_open(one))
        size = self.size(group, size, asked)
        self._sizes[group] = size + len(others), others | asked
        self._placed |= dict.fromkeys(asked, self._clock.monotonic())
        self._unanswered = self._unanswered - asked if is_answered else self._unanswered | asked

    async def order(self, group: str, size: int, instances: Sequence[str], call: Awaitable[T]) -> T:
        """Return the answer of a call that removes these, and note what it does, or may do. Raises its CloudError."""
        try:
            answer = await call
        except CloudError as error:
            if error.may_be_done:
                self.place(group, size, instances, is_answered=False)
            raise
        self.place(group, size, instances)
        return answer

    def size(self, group: str, listed: int, doomed: Iterable[str] = ()) -> int:
        """Return the size that a group has at most, for how far it may shrink.

        The listed size may be that of before the last removals, or the cloud lowers it once they are done.

        Args:
            group: The group.
            listed: Its size, as the cloud says.
            doomed: Instances that are now to be removed; they count as there.
        """
        if not self._open(group):
            return listed
        before, asked = self._sizes[group]
        return min(listed, before - len(asked - {*doomed}))

    def grow(self, group: str, delta: int) -> None:
        """Note that the cloud was asked for more machines, or fewer where ``delta`` is negative."""
        if group in self._sizes:
            before, asked = self._sizes[group]
            self._sizes[group] = before + delta, asked

    def forget(self, group: str) -> None:
        """Note that a group was not made smaller after all."""
        self._sizes.pop(group, None)

    def __contains__(self, instance: str) -> bool:
        return instance not in self._unanswered and self._is_open(instance)

    def keep(self, listed: Iterable[str]) -> None:
        """Forget all instances but those that are still listed."""
        for one in self._placed.keys() - {*listed}:
            del self._placed[one]
            self._unanswered.discard(one)

    def _open(self, group: str) -> frozenset[str]:
        """Return the instances that a group was asked to remove and that may be there still; if any is, all."""
        asked = self._sizes.get(group, (0, frozenset[str]()))[1]
        if any(self._is_open(one) for one in asked):
            return asked
        self._sizes.pop(group, None)
        return frozenset()

    def _is_open(self, instance: str) -> bool:
        placed = self._placed.get(instance)
        return placed is not None and self._clock.monotonic() - placed < _REMOVAL_LASTS
