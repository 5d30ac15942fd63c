"""Caches of slices, claims for devices, their classes and templates, and what a snapshot takes of them."""

from __future__ import annotations

from typing import Any

from kubetide.embedded.controllers.scheduling.lazy_cache import LazyCache
from kubetide.objects.kinds import DEVICE_KINDS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Kind
from kubetide.objects.meta import Key
from kubetide.objects.resource import ResourceClaim
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.scheduling import DeviceObjects


class DeviceCache(LazyCache):
    """The informers of the kinds of resource.k8s.io.

    Attributes:
        objects: What the scheduler goes by: claims as it has written them, ahead of the watch.
    """

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        super().__init__(cluster, clock, (*DEVICE_KINDS, RESOURCE_CLAIM_TEMPLATES))
        self.objects = DeviceObjects()
        self._written: dict[Key, int] = {}

    def note(self, claim: ResourceClaim) -> None:
        """Take over a claim as the cluster has just stored it: older changes are passed over."""
        key = claim.metadata.namespace, claim.metadata.name
        self._written[key] = int(claim.metadata.resource_version)
        self.objects.put(RESOURCE_CLAIMS, key, claim)

    def _changed(self, kind: Kind[Any], key: Key, old: Any, new: Any) -> None:
        if kind in DEVICE_KINDS and not (kind is RESOURCE_CLAIMS and self._is_older(key, new)):
            self.objects.put(kind, key, new)
        super()._changed(kind, key, old, new)

    def _is_older(self, key: Key, new: ResourceClaim | None) -> bool:
        written = self._written.get(key)
        if written is None or (new is not None and int(new.metadata.resource_version) < written):
            return written is not None
        del self._written[key]
        return False
