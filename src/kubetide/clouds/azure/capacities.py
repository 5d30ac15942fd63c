"""How many machines each set has: as listed, or as this program changed it a moment ago."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import NamedTuple

from kubetide.clouds.azure.model import ScaleSet
from kubetide.units.time import Duration


class _Changed(NamedTuple):
    size: int
    until: Duration


class Capacities:
    """Sizes by the keys of sets.

    A size that this program has set holds over lists for as long as a list holds: Azure lowers a set's capacity
    only once its machines are deleted.

    Source: cluster-autoscaler cloudprovider/azure, the size that a scale set keeps in memory.
    """

    def __init__(self) -> None:
        self._listed: dict[str, int] = {}
        self._changed: dict[str, _Changed] = {}

    def update(self, sets: Mapping[str, ScaleSet], now: Duration, *, lost: Container[str]) -> None:
        """Take the sizes of a list of all sets; those of ``lost`` cannot be read."""
        sizes = {key: one.capacity for key, one in sets.items() if key not in lost}
        self._listed = {key: size for key, size in sizes.items() if size is not None}
        self._changed = {
            key: one for key, one in self._changed.items() if now < one.until and key not in lost
        }

    def of(self, key: str) -> int | None:
        """Return the size of a set, None where it is not known."""
        if key in self._changed and key in self._listed:
            return self._changed[key].size
        return self._listed.get(key)

    def is_ours(self, key: str) -> bool:
        """Return whether this program has set the size of a set a moment ago, and its list may be older."""
        return key in self._changed

    def change(self, key: str, size: int, *, until: Duration) -> None:
        """Note a size that this program has set."""
        self._changed[key] = _Changed(size, until)

    def forget_change(self, key: str) -> None:
        """Return to the listed size, as a change has failed."""
        self._changed.pop(key, None)
