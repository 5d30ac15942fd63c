"""Objects of some kinds, updated from the cluster, in the form that a snapshot needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from kubetide.objects.kinds import Kind

T = TypeVar("T")

ObjectKey = tuple[str, str]
"""(namespace, name)"""


class HeldObjects:
    """The objects of a cluster, of these kinds."""

    def __init__(self, kinds: Iterable[Kind[Any]]) -> None:
        self._held: dict[str, dict[ObjectKey, Any]] = {kind.plural: {} for kind in kinds}
        self._made: dict[str, Any] = {}
        """What was made of the objects of a kind, until one of them changes."""

    def __getitem__(self, kind: Kind[T]) -> Mapping[ObjectKey, T]:
        """The objects of a kind by (namespace, name)."""
        return MappingProxyType(self._held[kind.plural])

    def put(self, kind: Kind[T], key: ObjectKey, value: T | None) -> None:
        """Store an object; None removes it."""
        held = self._held[kind.plural]
        if value is None:
            held.pop(key, None)
        else:
            held[key] = value
        self._made.pop(kind.plural, None)
