"""A table of what was in use lately, of bounded size."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Keeps what was put or asked for among the last ``size`` different keys, and at most twice as much.

    Unlike a table that is emptied when it is full, it goes on to serve as many keys as come again and again.
    """

    __slots__ = ("_new", "_old", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._new: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._new) + sum(key not in self._new for key in self._old)

    def get(self, key: K) -> V | None:
        """Gives what was put under the key, or None."""
        found = self._new.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: K, value: V) -> None:
        """Takes a value over, in the place of one of the same key."""
        if len(self._new) >= self._size and key not in self._new:
            self._old, self._new = self._new, {}
        self._new[key] = value
