"""Cluster-scoped objects, looked up by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from kubetide.objects.meta import Key

T = TypeVar("T")


class ByKey(Generic[T]):
    """A view of cluster-scoped objects by key; building keys for all would cost more, as most ticks look up none."""

    def __init__(self, by_name: Mapping[str, T]) -> None:
        self._by_name = by_name

    def __contains__(self, key: Key) -> bool:
        return key[1] in self._by_name

    def get(self, key: Key) -> T | None:
        """Return an object, None if it is unknown."""
        return self._by_name.get(key[1])
