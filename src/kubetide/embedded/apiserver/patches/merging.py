"""How the parts of an object are merged: which lists have keys, which maps are one value.

A shape is what merging needs of an API type's schema, no more. What a shape does not say has the
defaults that Kubernetes has: maps are merged member by member, lists are replaced whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ListType = Literal["atomic", "set", "map"]
_NO_FIELDS: Mapping[str, Shape] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """One place of a type.

    Attributes:
        fields: The members of a map whose shape says something.
        items: The shape of a list's items, or of a map's members that ``fields`` does not name.
        merge: A strategic merge patch merges this list, by ``merge_key`` (empty: as a set of scalars).
        replace: A strategic merge patch replaces this map.
        list_type: How server-side apply sees this list; ``keys`` are the keys of a ``map``.
        key_defaults: What a key is where an item leaves it out.
        atomic: Server-side apply sees this map as one value.
    """

    fields: Mapping[str, Shape] = field(default_factory=lambda: _NO_FIELDS)
    items: Shape | None = None
    merge: bool = False
    merge_key: str = ""
    replace: bool = False
    list_type: ListType = "atomic"
    keys: tuple[str, ...] = ()
    key_defaults: Mapping[str, Any] = field(default_factory=dict)
    atomic: bool = False

    def child(self, member: str) -> Shape:
        """Return the shape of a map's member."""
        found = self.fields.get(member)
        return found if found is not None else self.items or PLAIN

    @property
    def item(self) -> Shape:
        """The shape of a list's items."""
        return self.items or PLAIN


PLAIN = Shape()
"""A place of which nothing is said."""


def struct(**fields: Shape) -> Shape:
    """Return a map of which some members have shapes."""
    return Shape(fields=fields)


def keyed(key: str, item: Shape = PLAIN, *more: str, defaults: Mapping[str, Any] | None = None) -> Shape:
    """Return a list merged by ``key``; for server-side apply the keys ``more`` are part of an item's identity."""
    return Shape(
        items=item,
        merge=True,
        merge_key=key,
        list_type="map",
        keys=(key, *more),
        key_defaults=defaults or {},
    )


ATOMIC = Shape(atomic=True)
SET = Shape(merge=True, list_type="set")
