"""Indexes of many keys with few entries each: a single entry needs no container."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

P = TypeVar("P", bound=Hashable)
K = TypeVar("K", bound=Hashable)


class Index(Generic[P, K]):
    """Entries by key, in order of addition.

    A dict of one entry takes 250 bytes, and of ten thousand keys nearly all have one entry.
    """

    def __init__(self) -> None:
        self._single: dict[P, K] = {}
        self._several: dict[P, dict[K, None]] = {}

    def add(self, key: P, entry: K) -> None:
        """Add a new entry."""
        several = self._several.get(key)
        if several is not None:
            several[entry] = None
        elif key in self._single:
            self._several[key] = {self._single.pop(key): None, entry: None}
        else:
            self._single[key] = entry

    def drop(self, key: P, entry: K) -> None:
        """Remove an existing entry."""
        several = self._several.get(key)
        if several is None:
            del self._single[key]
            return
        del several[entry]
        if len(several) == 1:
            [self._single[key]] = self._several.pop(key)

    def count(self, key: P) -> int:
        """Return the number of entries of a key."""
        several = self._several.get(key)
        return len(several) if several is not None else int(key in self._single)

    def of(self, key: P) -> Iterable[K]:
        """Return the entries of a key; the index must not change during iteration."""
        several = self._several.get(key)
        if several is not None:
            return several
        return (self._single[key],) if key in self._single else ()
