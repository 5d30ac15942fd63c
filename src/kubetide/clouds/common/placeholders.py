"""Placeholders for machines that were ordered and cannot be had, for clouds that only say so in their activities.

A placeholder has a provider id that no machine has, is being created, and has the error of the failed
activity. Deleting one withdraws its order.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

from kubetide.clouds.common.ledger import Ledger
from kubetide.clouds.common.readings import GroupReading, attempt
from kubetide.ports.cloud import Instance, InstanceError
from kubetide.ports.errors import CloudCause, CloudError
from kubetide.units.time import Instant

_MARK = "placeholder-"


class FailedActivity(NamedTuple):
    """Why an order failed: the cloud's code, what it means, and its text."""

    code: str
    cause: CloudCause
    message: str

    def error(self) -> InstanceError:
        """Return the error as an instance has it."""
        is_short = self.cause in {"OutOfCapacity", "Quota"}
        return InstanceError(
            error_class="OutOfResource" if is_short else "Other",
            error_code=self.code,
            error_message=self.message,
            cause=self.cause,
        )


class Placeholders:
    """Adds placeholders to groups: for machines that were ordered, and that an activity says cannot be had.

    Args:
        ledger: The orders.
        failed_activity: Returns why a group's order failed since a time; None where no activity says so.
        make_id: Makes a provider id of a placeholder's name.
    """

    def __init__(
        self,
        ledger: Ledger,
        failed_activity: Callable[[str, Instant], Awaitable[FailedActivity | None]],
        make_id: Callable[[str], str],
    ) -> None:
        self._ledger, self._failed_activity, self._make_id = ledger, failed_activity, make_id

    async def add_to(self, reading: GroupReading) -> GroupReading:
        """Return the group with a placeholder for each machine that cannot be had."""
        since = self._ledger.growing_since(reading.id)
        if since is None or reading.target is None or reading.instances_error:
            return reading
        missing = max(reading.target - len(reading.instances or ()), 0)
        if not missing:
            self._ledger.complete(reading.id)
            return reading
        failure, _ = await attempt(self._failed_activity(reading.id, since))
        if failure is None:
            return reading
        error = failure.error()
        placeholders = tuple(
            Instance(
                provider_id=self._make_id(f"{_MARK}{reading.id}-{number}"), state="Creating", error=error
            )
            for number in range(missing)
        )
        return reading._replace(instances=(*(reading.instances or ()), *placeholders))


def is_placeholder(name: str) -> bool:
    """Return whether a machine's name is that of a placeholder."""
    return name.startswith(_MARK)


def split_placeholders(
    group: str, provider_ids: Iterable[str], name_of: Callable[[str], str]
) -> tuple[list[str], list[str]]:
    """Return the provider ids of real machines, and the names of the group's placeholders, each once.

    Raises CloudError for a placeholder of another group.

    Args:
        group: The group.
        provider_ids: Of machines and placeholders.
        name_of: Returns the machine's name that a provider id has.
    """
    names = {one: name_of(one) for one in provider_ids}
    placeholders = [name for name in names.values() if is_placeholder(name)]
    if any(name.removeprefix(_MARK).rpartition("-")[0] != group for name in placeholders):
        raise CloudError(f"{', '.join(placeholders)}: not all are orders of {group}")
    return [one for one, name in names.items() if name not in placeholders], placeholders
