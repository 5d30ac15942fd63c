"""A table of what was in use lately, of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Keeps what was put or asked for among the last ``size`` different keys, and at most twice as much.

    Unlike a table that is emptied when it is full, it goes on to serve as many keys as come again and again.

    Attributes:
        newest: The later half, for a first look where a call for each would be expensive; not to be changed.
        each: What every key that is put from now on weighs beside its own weight.
    """

    __slots__ = ("_old", "_size", "_weigh", "_weight", "each", "newest")

    def __init__(self, size: int, weigh: Callable[[K], int] | None = None) -> None:
        """Take how much is held: so many keys, or keys of so much weight together.

        A method of the object that holds the table would tie both into a cycle, and large ones would stay in memory.
        """
        self._size = size
        self._weigh = weigh
        self._weight = 0
        self.each = 0
        self.newest: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self.newest) + sum(key not in self.newest for key in self._old)

    def get(self, key: K) -> V | None:
        """Return what was put under the key, or None."""
        found = self.newest.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: K, value: V) -> None:
        """Take a value over, in place of one of the same key."""
        if key not in self.newest:
            weight = self.each + (1 if self._weigh is None else self._weigh(key))
            if self._weight + weight > self._size and self.newest:
                self._old, self.newest = self.newest, {}
                self._weight = 0
            self._weight += weight
        self.newest[key] = value
