"""Objects without a namespace, as those with one are looked up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from kubetide.objects.meta import Key

T = TypeVar("T")


class ByKey(Generic[T]):
    """Objects without a namespace, looked up by key: most ticks look up none of them."""

    def __init__(self, by_name: Mapping[str, T]) -> None:
        self._by_name = by_name

    def __contains__(self, key: Key) -> bool:
        return key[1] in self._by_name

    def get(self, key: Key) -> T | None:
        """Return an object, None where it is not known."""
        return self._by_name.get(key[1])
