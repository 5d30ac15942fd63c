"""Which waiting pods a change of devices may help.

Source: kube-scheduler v1.36 DynamicResources, queueing hints: devices that are offered or given back help
whoever waits for any; a claim that is new or has changed helps the pods that use it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubetide.objects.kinds import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES, Kind
from kubetide.objects.meta import Key
from kubetide.scheduling import PodClass


class DeviceChanges:
    """What has changed since it was last taken."""

    def __init__(self) -> None:
        self._offers = False
        self._claims: dict[Key, None] = {}

    def note(self, kind: Kind[Any], key: Key, old: Any, new: Any) -> None:
        """Note a change of an object."""
        if kind in {RESOURCE_SLICES, DEVICE_CLASSES}:
            self._offers = True
        elif kind is RESOURCE_CLAIMS:
            had = old is not None and old.status.allocation is not None
            self._offers |= had and (new is None or new.status.allocation is None)
            self._claims[key] = None

    def taken(self, waiting: Iterable[PodClass]) -> list[PodClass]:
        """Return which of the waiting classes it may help, and forgets it."""
        offers, claims = self._offers, self._claims
        self._offers, self._claims = False, {}
        return [
            one
            for one in waiting
            if one.devices is not None
            and (offers or any((use.namespace, use.name) in claims for use in one.devices.claims))
        ]
