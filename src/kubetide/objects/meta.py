"""Metadata that every kind carries."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct

Key = tuple[str, str]
"""Namespace and name of an object; the namespace is empty where its kind has none."""


class OwnerReference(ApiStruct):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(ApiStruct):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None


class LabelSelectorRequirement(ApiStruct):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class LabelSelector(ApiStruct):
    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelSelectorRequirement, ...] | None = None


class Condition(ApiStruct):
    """A condition of any kind; ``last_probe_time`` and ``observed_generation`` are not in use."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    last_heartbeat_time: str | None = None
    last_update_time: str | None = None


class ApiObject(ApiStruct):
    """What every top-level object has."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


def key_of(item: ApiObject) -> Key:
    """Return the namespace and the name of an object."""
    return item.metadata.namespace, item.metadata.name


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Return the owner reference with ``controller: true``, or None."""
    for owner in meta.owner_references or ():
        if owner.controller:
            return owner
    return None
