"""Stand-ins for machines that were ordered and cannot be had, for clouds that only say so in their activities.

A stand-in has a provider id that no machine has, is being created, and has the error of the failed
activity. Deleting one withdraws its order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kubetide.clouds.common.readings import GroupReading
from kubetide.ports.cloud import Instance, InstanceError
from kubetide.ports.errors import CloudCause, CloudError

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


def missing_machines(reading: GroupReading) -> int:
    """Return how many ordered machines there are not; 0 where size or machines are not known."""
    if reading.target is None or reading.instances_error:
        return 0
    return max(reading.target - len(reading.instances or ()), 0)


def with_placeholders(
    reading: GroupReading, failure: FailedActivity, make_id: Callable[[str], str]
) -> GroupReading:
    """Return the group with a stand-in for each missing machine; ``make_id`` makes a provider id of a name."""
    stand_ins = tuple(
        Instance(
            provider_id=make_id(f"{_MARK}{reading.id}-{number}"), state="Creating", error=failure.error()
        )
        for number in range(missing_machines(reading))
    )
    return reading._replace(instances=(*(reading.instances or ()), *stand_ins))


def is_stand_in(name: str) -> bool:
    """Return whether a machine's name is that of a stand-in."""
    return name.startswith(_MARK)


def split_stand_ins(
    group: str, provider_ids: Iterable[str], name_of: Callable[[str], str]
) -> tuple[list[str], list[str]]:
    """Return the provider ids of real machines, and the names of the group's stand-ins, each once.

    Raises CloudError for a stand-in of another group.

    Args:
        group: The group.
        provider_ids: Of machines and stand-ins.
        name_of: Returns the machine's name that a provider id has.
    """
    names = {one: name_of(one) for one in provider_ids}
    stand_ins = [name for name in names.values() if is_stand_in(name)]
    if any(name.removeprefix(_MARK).rpartition("-")[0] != group for name in stand_ins):
        raise CloudError(f"{', '.join(stand_ins)}: not all are orders of {group}")
    return [one for one, name in names.items() if name not in stand_ins], stand_ins
