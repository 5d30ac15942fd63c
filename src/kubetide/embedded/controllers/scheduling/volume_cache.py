"""Caches of all volume objects, and what a snapshot takes of them."""

from __future__ import annotations

from typing import Any

from kubetide.embedded.controllers.scheduling.lazy_cache import LazyCache
from kubetide.objects.kinds import VOLUME_KINDS, Kind
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.scheduling import VolumeObjects


class VolumeCache(LazyCache):
    """The informers of claims, volumes, storage classes and CSI objects."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        super().__init__(cluster, clock, VOLUME_KINDS)
        self.objects = VolumeObjects()

    def _changed(self, kind: Kind[Any], key: Key, old: Any, new: Any) -> None:
        self.objects.put(kind, key, new)
        super()._changed(kind, key, old, new)
