"""The machines of a cloud as JSON, and back: what a cloud needs to go on after its process ended."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubetide.embedded.cloud.machines import Do, Group, Machine
from kubetide.objects.base import Json
from kubetide.ports.cloud import InstanceError, InstanceState, NewGroup
from kubetide.units.time import Instant


class _Machine(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    zone: str
    state: InstanceState
    joins: bool = True
    node: bool = False
    error: InstanceError | None = None
    do: Do | None = None
    due: int = 0


class _Group(msgspec.Struct, frozen=True, omit_defaults=True):
    ordered: int
    machines: list[_Machine]
    made: NewGroup | None = None


class _Cloud(msgspec.Struct, frozen=True):
    spent: float
    groups: dict[str, _Group]


def json_of(groups: Mapping[str, Group], spent: float) -> Json:
    """Return the machines of all groups, what they do next, and the money spent."""
    found = _Cloud(
        spent=spent,
        groups={
            name: _Group(
                ordered=group.ordered,
                machines=[_of(each) for each in group.machines.values()],
                made=group.made,
            )
            for name, group in groups.items()
        },
    )
    plain: Json = msgspec.to_builtins(found)
    return plain


def made_groups(stored: Json) -> list[NewGroup]:
    """Return what the groups were made of that were made while the cloud ran."""
    return [found.made for found in msgspec.convert(stored, _Cloud).groups.values() if found.made is not None]


def put_back(stored: Json, groups: Mapping[str, Group]) -> float:
    """Put stored machines into their groups, and return the money spent.

    Raises: ValueError when there is no such group or zone any more.
    """
    cloud = msgspec.convert(stored, _Cloud)
    for name, found in cloud.groups.items():
        group = groups.get(name)
        if group is None:
            if found.machines:
                raise ValueError(
                    f"{len(found.machines)} machines of node group {name} are stored, and there is no such group"
                )
            continue
        group.ordered = found.ordered
        for each in found.machines:
            if each.zone not in group.spec.zones:
                raise ValueError(f"machine {each.name} of node group {name} is stored in zone {each.zone}")
            machine = Machine(
                name=each.name,
                group=name,
                zone=each.zone,
                state=each.state,
                error=each.error,
                joins=each.joins,
                node=each.node,
                todo=None if each.do is None else (each.do, Instant(each.due)),
            )
            group.machines[machine.provider_id] = machine
        group.changed()
    return cloud.spent


def _of(machine: Machine) -> _Machine:
    do, due = (None, 0) if machine.todo is None else machine.todo
    return _Machine(
        name=machine.name,
        zone=machine.zone,
        state=machine.state,
        joins=machine.joins,
        node=machine.node,
        error=machine.error,
        do=do,
        due=due,
    )
