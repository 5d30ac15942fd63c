"""What the loop keeps of claims for devices, device classes and slices: the fields that the filter reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from kubetide.nodes.facts.objects import KnownObjects
from kubetide.objects.kinds import DEVICE_CLASSES, DEVICE_KINDS, RESOURCE_CLAIMS, RESOURCE_SLICES, Kind
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import Pod
from kubetide.objects.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from kubetide.scheduling import DeviceObjects, Devices
from kubetide.scheduling.devices.ledger import EXTENDED_CLAIM
from kubetide.scheduling.pods.device_use import is_extended

DEVICE_KIND_OF: Final[dict[str, Kind[Any]]] = {kind.plural: kind for kind in DEVICE_KINDS}

_FIELDS: Final[dict[str, Kind[Any]]] = {
    "slices": RESOURCE_SLICES,
    "claims": RESOURCE_CLAIMS,
    "classes": DEVICE_CLASSES,
}


class DeviceChanges(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Objects that are new or have changed, each kind in order of name; in the full form all there are."""

    slices: tuple[ResourceSlice, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    classes: tuple[DeviceClass, ...] = ()

    @staticmethod
    def from_kinds(changed: Mapping[str, tuple[Any, ...]]) -> DeviceChanges:
        """Return changes from objects by the plural name of their kind."""
        return DeviceChanges(**{field: changed[kind.plural] for field, kind in _FIELDS.items()})

    def by_kind(self) -> Iterator[tuple[Kind[Any], tuple[Any, ...]]]:
        """Return each kind with its objects."""
        for field, kind in _FIELDS.items():
            yield kind, getattr(self, field)


class KnownDevices(KnownObjects[DeviceObjects]):
    """The objects of resource.k8s.io that the loop knows of."""

    def __init__(self) -> None:
        super().__init__(DeviceObjects(), DEVICE_KIND_OF)

    def judged(self) -> Devices | None:
        """Return what the filter judges by, None where claims cannot be judged."""
        return None if self.unread or not self._begun else self._objects.devices()

    def export(self) -> DeviceChanges | None:
        """Return all objects, None when they were never read."""
        found = self.in_order()
        return None if found is None else DeviceChanges.from_kinds(found)


def asks_for_claims(pod: Pod) -> bool:
    """Return whether the pod names claims for devices."""
    return bool(pod.spec.resource_claims)


def asks_for_extended(pod: Pod) -> bool:
    """Return whether the pod asks for a resource that a device class may stand for."""
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    return any(is_extended(name) for one in containers for name in one.resources.requests or ())


def slim_device_object(kind: Kind[Any], item: Any) -> Any:
    """Return an object of these kinds with only what is read of it."""
    meta = item.metadata
    if kind is RESOURCE_CLAIMS:
        return _slim_claim(item)
    kept = ObjectMeta(name=meta.name, uid=meta.uid)
    if kind is DEVICE_CLASSES:
        kept = replace(kept, creation_timestamp=meta.creation_timestamp)
    return replace(item, metadata=kept)


def _slim_claim(item: ResourceClaim) -> ResourceClaim:
    meta, status = item.metadata, item.status
    notes = {key: value for key, value in (meta.annotations or {}).items() if key == EXTENDED_CLAIM}
    kept = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        annotations=notes or None,
        owner_references=meta.owner_references,
        deletion_timestamp=meta.deletion_timestamp,
    )
    given = status.allocation
    if given is not None:
        given = AllocationResult(devices=given.devices, node_selector=given.node_selector)
    return replace(item, metadata=kept, status=replace(status, allocation=given))
