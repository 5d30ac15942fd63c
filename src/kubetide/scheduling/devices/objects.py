"""The objects of resource.k8s.io, updated from the cluster."""

from __future__ import annotations

from typing import TypeVar

from kubetide.objects.kinds import DEVICE_CLASSES, DEVICE_KINDS, RESOURCE_CLAIMS, RESOURCE_SLICES, Kind
from kubetide.scheduling.devices.facts import Devices
from kubetide.scheduling.snapshot.objects import HeldObjects

T = TypeVar("T")


class DeviceObjects(HeldObjects):
    """The slices, claims and classes of a cluster; ``devices`` is their form for a snapshot."""

    def __init__(self) -> None:
        super().__init__(DEVICE_KINDS)

    def devices(self) -> Devices:
        """Return their present state; later changes do not show in it. Orders do not depend on arrival."""
        return Devices(
            slices=tuple(self._in_order(RESOURCE_SLICES).values()),
            claims=self._in_order(RESOURCE_CLAIMS),
            classes={name: one for (_, name), one in self._in_order(DEVICE_CLASSES).items()},
        )

    def _in_order(self, kind: Kind[T]) -> dict[tuple[str, str], T]:
        if kind.plural not in self._made:
            held = self[kind]
            self._made[kind.plural] = {key: held[key] for key in sorted(held)}
        found: dict[tuple[str, str], T] = self._made[kind.plural]
        return found
