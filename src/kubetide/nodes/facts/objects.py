"""Objects besides nodes and pods, as deltas bring them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec

from kubetide.objects.kinds import Kind
from kubetide.objects.meta import ApiObject, key_of
from kubetide.scheduling import HeldObjects

T = TypeVar("T")
H = TypeVar("H", bound=HeldObjects)

KnownKey = tuple[str, str, str]
"""(plural name of the kind, namespace, name)"""

A = TypeVar("A", bound=ApiObject)


def put_all(held: dict[tuple[str, str], A], items: Sequence[A]) -> bool:
    """Store objects by their key; return whether there were any."""
    if not items:
        return False
    held.update((key_of(item), item) for item in items)
    return True


def drop_all(held: dict[tuple[str, str], Any], keys: Sequence[tuple[str, str]]) -> int:
    """Forget the objects of these keys; return how many keys there are."""
    for key in keys:
        held.pop(key, None)
    return len(keys)


class Changes(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """New or changed objects, each kind in order of name; in the full form all objects.

    Attributes:
        kinds: By the field that has the objects.
    """

    kinds: ClassVar[Mapping[str, Kind[Any]]]

    @classmethod
    def from_kinds(cls, changed: Mapping[str, tuple[Any, ...]]) -> Self:
        """Return changes from objects by the plural name of their kind."""
        return cls(**{field: changed.get(kind.plural, ()) for field, kind in cls.kinds.items()})

    def by_kind(self) -> Iterator[tuple[Kind[Any], tuple[Any, ...]]]:
        """Yield each kind with its objects."""
        for field, kind in self.kinds.items():
            yield kind, getattr(self, field)


class KnownObjects(Generic[H]):
    """The objects of some kinds that the loop knows.

    Attributes:
        unread: Kinds that cannot be read, by plural name.
    """

    def __init__(self, objects: H, kinds: Mapping[str, Kind[Any]]) -> None:
        """Take the (empty) stores, and the kinds by plural name."""
        self.unread: tuple[str, ...] = ()
        self._objects = objects
        self._kinds = kinds
        self._begun = False

    def of(self, kind: Kind[T]) -> Mapping[tuple[str, str], T]:
        """Return the objects of a kind by (namespace, name)."""
        return self._objects[kind]

    def apply(self, changes: Changes | None, gone: Sequence[KnownKey], unread: tuple[str, ...]) -> bool:
        """Apply changes and return whether anything changed; ``unread`` may name other kinds too."""
        if changes is None and not gone and not unread and not self.unread:
            return False
        unread = tuple(name for name in unread if name in self._kinds)
        if changes is None and not gone and unread == self.unread:
            return False
        self.unread = unread
        self._begun |= changes is not None
        for plural, namespace, name in gone:
            self._objects.put(self._kinds[plural], (namespace, name), None)
        for kind, items in changes.by_kind() if changes is not None else ():
            for item in items:
                self._objects.put(kind, (item.metadata.namespace, item.metadata.name), item)
        return True

    def in_order(self) -> dict[str, tuple[Any, ...]] | None:
        """Return all objects in order of name by the plural name of their kind, None if they were never read."""
        if not self._begun:
            return None
        return {
            plural: tuple(self._objects[kind][key] for key in sorted(self._objects[kind]))
            for plural, kind in self._kinds.items()
        }
