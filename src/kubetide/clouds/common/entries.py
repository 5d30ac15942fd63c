"""The entries of a cloud's list, read one by one: one that cannot be read keeps no other from being read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from kubetide.clouds.common.rest import converted_without_nulls
from kubetide.ports.errors import CloudError

T = TypeVar("T")


class Entries(NamedTuple, Generic[T]):
    """The entries that can be read, and by name why others cannot."""

    found: list[T]
    problems: dict[str, str]


def read_entries(listed: Iterable[Any], kind: type[T], name_key: str) -> Entries[T]:
    """Return the entries of a list as their type; a part that is null is not there.

    Raises CloudError for one that cannot be read and has no name: nobody knows which entry is missing.
    """
    found: list[T] = []
    problems: dict[str, str] = {}
    for one in listed:
        try:
            found.append(converted_without_nulls(one, kind))
        except msgspec.ValidationError as error:
            name = one.get(name_key) if isinstance(one, Mapping) else None
            if not isinstance(name, str) or not name:
                raise CloudError(f"an entry without {name_key} cannot be read: {error}") from error
            problems[name] = f"the API's answer on {name} cannot be read: {error}"
    return Entries(found, problems)


def check_amounts(cpus: float, memory: float) -> None:
    """Raise ValueError, which decoding reports, for an instance type without CPUs or memory.

    No pod fits its node, so that its group would never grow and nothing would say why.
    """
    if cpus <= 0 or memory <= 0:
        raise ValueError(f"an instance type of {cpus} CPUs and {memory} memory, where both should be above 0")
