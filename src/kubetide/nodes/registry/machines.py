"""The machines of all groups by provider id: whose they are, and which go or are left alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from kubetide.ports.cloud import NodeGroup


class Machines(NamedTuple):
    """What the groups list.

    Attributes:
        group_of: The groups of machines that may be removed.
        left_alone: The groups that list the others: the provider says that their nodes belong to none.
        deleting: Those that the cloud is deleting.
    """

    group_of: Mapping[str, str] = {}
    left_alone: Mapping[str, str] = {}
    deleting: frozenset[str] = frozenset()

    def lists(self, provider_id: str) -> bool:
        """Return whether any group has the machine."""
        return provider_id in self.group_of or provider_id in self.left_alone

    def joined(self, before: Machines, registered: Collection[str]) -> list[str]:
        """Return the registered machines that have come to another group since ``before``; no group is none."""
        return [
            one
            for one in registered
            if (group := self.group_of.get(one)) is not None and group != before.group_of.get(one)
        ]

    def vanished(
        self, former: Mapping[str, str], before: Machines, registered: Collection[str]
    ) -> dict[str, str]:
        """Return the former groups of machines that no group lists any more while their nodes exist.

        Args:
            former: What this returned last.
            before: The machines until now.
            registered: The machines that have nodes.
        """
        known = {**former, **before.group_of}
        return {one: known[one] for one in sorted(registered) if one in known and not self.lists(one)}


def machines_of(groups: Iterable[NodeGroup]) -> Machines:
    """Return the machines of the groups."""
    group_of: dict[str, str] = {}
    left_alone: dict[str, str] = {}
    deleting: set[str] = set()
    for group in groups:
        for one in group.instances or ():
            (group_of if one.managed else left_alone)[one.provider_id] = group.id
            if one.state == "Deleting":
                deleting.add(one.provider_id)
    return Machines(group_of, left_alone, frozenset(deleting))
