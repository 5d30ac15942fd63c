"""Device claims, device classes and slices, reduced to the fields that the filter reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from kubetide.nodes.facts.objects import Changes, KnownObjects
from kubetide.objects.kinds import DEVICE_CLASSES, DEVICE_KINDS, RESOURCE_CLAIMS, RESOURCE_SLICES, Kind
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import Pod
from kubetide.objects.resource import AllocationResult, DeviceClass, ResourceClaim, ResourceSlice
from kubetide.scheduling import DeviceObjects, Devices
from kubetide.scheduling.devices.ledger import EXTENDED_CLAIM
from kubetide.scheduling.pods.device_use import is_extended

DEVICE_KIND_OF: Final[dict[str, Kind[Any]]] = {kind.plural: kind for kind in DEVICE_KINDS}


class DeviceChanges(Changes, frozen=True, kw_only=True, omit_defaults=True):
    """New or changed device claims, device classes and slices, see ``Changes``."""

    kinds: ClassVar[Mapping[str, Kind[Any]]] = {
        "slices": RESOURCE_SLICES,
        "claims": RESOURCE_CLAIMS,
        "classes": DEVICE_CLASSES,
    }

    slices: tuple[ResourceSlice, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    classes: tuple[DeviceClass, ...] = ()


class KnownDevices(KnownObjects[DeviceObjects]):
    """The objects of resource.k8s.io that the loop knows."""

    def __init__(self) -> None:
        super().__init__(DeviceObjects(), DEVICE_KIND_OF)

    def for_filters(self) -> Devices | None:
        """Return what the filter reads, None if claims cannot be evaluated."""
        return None if self.unread or not self._begun else self._objects.devices()

    def export(self) -> DeviceChanges | None:
        """Return all objects, None if they were never read."""
        found = self.in_order()
        return None if found is None else DeviceChanges.from_kinds(found)


def asks_for_claims(pod: Pod) -> bool:
    """Return whether the pod names device claims."""
    return bool(pod.spec.resource_claims)


def asks_for_extended(pod: Pod) -> bool:
    """Return whether the pod requests a resource that a device class may provide."""
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    return any(is_extended(name) for one in containers for name in one.resources.requests or ())


def slim_device_object(kind: Kind[Any], item: Any) -> Any:
    """Return an object of these kinds with only what is read of it."""
    meta = item.metadata
    if kind is RESOURCE_CLAIMS:
        return _slim_claim(item)
    slim = ObjectMeta(name=meta.name, uid=meta.uid)
    if kind is DEVICE_CLASSES:
        slim = replace(slim, creation_timestamp=meta.creation_timestamp)
    return replace(item, metadata=slim)


def _slim_claim(item: ResourceClaim) -> ResourceClaim:
    meta, status = item.metadata, item.status
    notes = {key: value for key, value in (meta.annotations or {}).items() if key == EXTENDED_CLAIM}
    slim = ObjectMeta(
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
    return replace(item, metadata=slim, status=replace(status, allocation=given))
