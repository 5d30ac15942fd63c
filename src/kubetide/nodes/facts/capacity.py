"""Capacity requests, the PodTemplates that they name and the ResourceQuotas that limit them, reduced to the fields that the loop reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from kubetide.nodes.facts.objects import Changes, KnownObjects
from kubetide.nodes.facts.slim_pods import slim_pod
from kubetide.nodes.settings import Settings
from kubetide.objects.capacity import CapacityBuffer, CapacityQuota, PodTemplateObject, ProvisioningRequest
from kubetide.objects.kinds import (
    CAPACITY_BUFFERS,
    CAPACITY_QUOTAS,
    POD_TEMPLATES,
    PROVISIONING_REQUESTS,
    RESOURCE_QUOTAS,
    Kind,
)
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import Pod, PodTemplate
from kubetide.objects.quota import ResourceQuota
from kubetide.scheduling import HeldObjects

_FIELDS: Final[dict[str, Kind[Any]]] = {
    "pod_templates": POD_TEMPLATES,
    "provisioning_requests": PROVISIONING_REQUESTS,
    "capacity_buffers": CAPACITY_BUFFERS,
    "capacity_quotas": CAPACITY_QUOTAS,
    "resource_quotas": RESOURCE_QUOTAS,
}
CAPACITY_KIND_OF: Final[dict[str, Kind[Any]]] = {kind.plural: kind for kind in _FIELDS.values()}


class CapacityChanges(Changes, frozen=True, kw_only=True, omit_defaults=True):
    """New or changed PodTemplates, ProvisioningRequests, CapacityBuffers, CapacityQuotas and ResourceQuotas."""

    kinds = _FIELDS

    pod_templates: tuple[PodTemplateObject, ...] = ()
    provisioning_requests: tuple[ProvisioningRequest, ...] = ()
    capacity_buffers: tuple[CapacityBuffer, ...] = ()
    capacity_quotas: tuple[CapacityQuota, ...] = ()
    resource_quotas: tuple[ResourceQuota, ...] = ()


class KnownCapacity(KnownObjects[HeldObjects]):
    """The capacity requests that the loop knows."""

    def __init__(self) -> None:
        super().__init__(HeldObjects(CAPACITY_KIND_OF.values()), CAPACITY_KIND_OF)

    def put(self, item: Any, kind: Kind[Any]) -> None:
        """Store what was just written, ahead of the cache."""
        self._objects.put(kind, (item.metadata.namespace, item.metadata.name), item)

    def drop(self, kind: Kind[Any], key: tuple[str, str]) -> None:
        """Forget an object that was just deleted."""
        self._objects.put(kind, key, None)

    @property
    def requests(self) -> list[ProvisioningRequest]:
        """All ProvisioningRequests, oldest first."""
        return _oldest_first(self.of(PROVISIONING_REQUESTS))

    @property
    def buffers(self) -> list[CapacityBuffer]:
        """All CapacityBuffers, oldest first."""
        return _oldest_first(self.of(CAPACITY_BUFFERS))

    @property
    def quotas(self) -> list[CapacityQuota]:
        """All CapacityQuotas in order of name."""
        held = self.of(CAPACITY_QUOTAS)
        return [held[key] for key in sorted(held)]

    def resource_quotas(self) -> dict[str, list[ResourceQuota]]:
        """Return the ResourceQuotas of each namespace that has some, in order of name."""
        held = self.of(RESOURCE_QUOTAS)
        found: dict[str, list[ResourceQuota]] = {}
        for key in sorted(held):
            found.setdefault(key[0], []).append(held[key])
        return found

    def template(self, namespace: str, name: str) -> PodTemplateObject | None:
        """Return the PodTemplate of that name, or None."""
        found: PodTemplateObject | None = self.of(POD_TEMPLATES).get((namespace, name))
        return found

    def export(self) -> CapacityChanges | None:
        """Return all objects, None if they were never read."""
        found = self.in_order()
        return None if found is None else CapacityChanges.from_kinds(found)


def kinds_read(settings: Settings) -> tuple[Kind[Any], ...]:
    """Return the kinds that the flags make the loop read."""
    requests = settings.enable_provisioning_requests
    buffers = settings.capacity_buffer_controller_enabled or settings.capacity_buffer_pod_injection_enabled
    found: list[Kind[Any]] = [POD_TEMPLATES] if requests or buffers else []
    found += [PROVISIONING_REQUESTS] if requests else []
    found += [CAPACITY_BUFFERS] if buffers else []
    found += [RESOURCE_QUOTAS] if settings.capacity_buffer_controller_enabled else []
    return (*found, CAPACITY_QUOTAS) if settings.capacity_quotas_enabled else tuple(found)


def slim_capacity(item: Any) -> Any:
    """Return the object with only the metadata that is read; of a PodTemplate only the pod fields that are read."""
    meta = item.metadata
    slim = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        generation=meta.generation,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
    )
    if isinstance(item, PodTemplateObject):
        return PodTemplateObject(
            metadata=replace(slim, resource_version=""), template=slim_template(item.template)
        )
    if isinstance(item, ResourceQuota):
        return replace(item, metadata=replace(slim, resource_version=""))
    return replace(item, metadata=slim)


def slim_template(template: PodTemplate) -> PodTemplate:
    """Return what the loop reads of a pod template."""
    small = slim_pod(Pod(metadata=template.metadata, spec=template.spec))
    meta = ObjectMeta(labels=small.metadata.labels, annotations=small.metadata.annotations)
    spec = small.spec
    if spec.volumes == ():
        spec = replace(spec, volumes=None)
    return PodTemplate(metadata=meta, spec=spec)


def _oldest_first(held: Mapping[tuple[str, str], Any]) -> list[Any]:
    return [
        item
        for _, item in sorted(
            held.items(), key=lambda one: (one[1].metadata.creation_timestamp or "", one[0])
        )
    ]
