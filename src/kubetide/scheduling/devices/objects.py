"""The objects of resource.k8s.io as they come and go."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from kubetide.objects.kinds import DEVICE_CLASSES, DEVICE_KINDS, RESOURCE_CLAIMS, RESOURCE_SLICES, Kind
from kubetide.scheduling.devices.facts import Devices

T = TypeVar("T")


class DeviceObjects:
    """The slices, claims and classes of a cluster; ``devices`` is what a snapshot takes of them."""

    def __init__(self) -> None:
        self._held: dict[str, dict[tuple[str, str], Any]] = {kind.plural: {} for kind in DEVICE_KINDS}
        self._sorted: dict[str, dict[tuple[str, str], Any]] = {}

    def __getitem__(self, kind: Kind[T]) -> Mapping[tuple[str, str], T]:
        """The objects of a kind by (namespace, name)."""
        return MappingProxyType(self._held[kind.plural])

    def put(self, kind: Kind[T], key: tuple[str, str], value: T | None) -> None:
        """Takes over an object, or (None) that it is gone."""
        held = self._held[kind.plural]
        if value is None:
            held.pop(key, None)
        else:
            held[key] = value
        self._sorted.pop(kind.plural, None)

    def devices(self) -> Devices:
        """Gives them as they are now; later changes do not show in it. Orders do not depend on arrival."""
        return Devices(
            slices=tuple(self._in_order(RESOURCE_SLICES).values()),
            claims=self._in_order(RESOURCE_CLAIMS),
            classes={name: one for (_, name), one in self._in_order(DEVICE_CLASSES).items()},
        )

    def _in_order(self, kind: Kind[T]) -> dict[tuple[str, str], T]:
        if kind.plural not in self._sorted:
            held = self._held[kind.plural]
            self._sorted[kind.plural] = {key: held[key] for key in sorted(held)}
        return self._sorted[kind.plural]
