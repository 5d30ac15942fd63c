"""Stand-ins for machines that were ordered and cannot be had, for clouds that only say so in their activities.

A stand-in has a provider id that no machine has, is being created, and has the error of the failed
activity. Deleting one withdraws its order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kubetide.clouds.common.readings import GroupReading
from kubetide.ports.cloud import Instance, InstanceError
from kubetide.ports.errors import CloudCause

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


def split(instances: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the real instances and the stand-ins, of instance names."""
    real: list[str] = []
    stand_ins: list[str] = []
    for one in instances:
        (stand_ins if one.startswith(_MARK) else real).append(one)
    return real, stand_ins


def is_of(group: str, stand_ins: Sequence[str]) -> bool:
    """Return whether all these stand-ins are of that group."""
    return all(one.removeprefix(_MARK).rpartition("-")[0] == group for one in stand_ins)
