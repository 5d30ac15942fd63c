"""The CustomResourceDefinitions of ProvisioningRequest, CapacityBuffer and CapacityQuota.

Source: Cluster Autoscaler, apis/config/crd (August 2026): the same names, versions and rules. Columns are fewer: what a person looks for first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubetide.objects.base import Json
from kubetide.objects.definition_manifest import definition_of
from kubetide.objects.kinds import CAPACITY_BUFFERS, CAPACITY_QUOTAS, PROVISIONING_REQUESTS, Kind

_TEXT: Final[Json] = {"type": "string"}
_NAME: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_IMMUTABLE: Final[Json] = {
    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "Value is immutable"}]
}
_QUANTITIES: Final[Json] = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        "x-kubernetes-int-or-string": True,
    },
}
_COUNT: Final[Json] = {"type": "integer", "format": "int32"}
_LONG: Final[Json] = {"type": "integer", "format": "int64"}
_AGE: Final[Json] = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def _fields(required: Sequence[str] = (), /, **fields: Json) -> Json:
    found: Json = {"type": "object", "properties": fields}
    return {**found, "required": list(required)} if required else found


_CONDITIONS: Final[Json] = {
    "type": "array",
    "items": _fields(
        ("lastTransitionTime", "message", "reason", "status", "type"),
        type={**_TEXT, "maxLength": 316},
        status={**_TEXT, "enum": ["True", "False", "Unknown"]},
        reason={**_TEXT, "minLength": 1, "maxLength": 1024},
        message={**_TEXT, "maxLength": 32768},
        lastTransitionTime={**_TEXT, "format": "date-time"},
        observedGeneration={**_LONG, "minimum": 0},
    ),
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}
_REFERENCE: Final = _fields(("name",), name={**_TEXT, "minLength": 1})

_REQUEST: Final = _fields(
    ("podSets", "provisioningClassName"),
    podSets={
        "type": "array",
        "minItems": 1,
        "maxItems": 32,
        "items": _fields(
            ("count", "podTemplateRef"),
            count={**_COUNT, "minimum": 1},
            podTemplateRef=_fields(("name",), name={**_TEXT, "maxLength": 253, "pattern": _NAME}),
        ),
        **_IMMUTABLE,
    },
    provisioningClassName={**_TEXT, "maxLength": 253, "pattern": _NAME, **_IMMUTABLE},
    parameters={
        "type": "object",
        "maxProperties": 100,
        "additionalProperties": {**_TEXT, "maxLength": 255},
        **_IMMUTABLE,
    },
)
_REQUEST_STATUS: Final = _fields(
    conditions=_CONDITIONS,
    provisioningClassDetails={
        "type": "object",
        "maxProperties": 64,
        "additionalProperties": {**_TEXT, "maxLength": 32768},
    },
)
_BUFFER: Final[Json] = {
    **_fields(
        provisioningStrategy={**_TEXT, "default": "buffer.x-k8s.io/active-capacity"},
        podTemplateRef=_REFERENCE,
        scalableRef=_fields(
            ("kind", "name"),
            apiGroup=_TEXT,
            kind={**_TEXT, "minLength": 1},
            name={**_TEXT, "minLength": 1},
        ),
        replicas={**_COUNT, "minimum": 0},
        percentage={**_COUNT, "minimum": 0},
        limits=_QUANTITIES,
    ),
    "x-kubernetes-validations": [
        {
            "rule": "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
            "message": "with podTemplateRef, replicas or limits must be set",
        },
        {
            "rule": "!(has(self.podTemplateRef) && has(self.scalableRef))",
            "message": "podTemplateRef and scalableRef exclude each other",
        },
    ],
}
_BUFFER_STATUS: Final = _fields(
    podTemplateRef=_REFERENCE,
    replicas=_COUNT,
    podTemplateGeneration=_LONG,
    provisioningStrategy=_TEXT,
    conditions=_CONDITIONS,
)
_BUFFER_COLUMNS: Final[list[Json]] = [
    {"name": "Strategy", "type": "string", "jsonPath": ".spec.provisioningStrategy"},
    {"name": "Replicas", "type": "integer", "jsonPath": ".status.replicas"},
    {
        "name": "Ready",
        "type": "string",
        "jsonPath": ".status.conditions[?(@.type=='ReadyForProvisioning')].status",
    },
    {
        "name": "Provisioning",
        "type": "string",
        "jsonPath": ".status.conditions[?(@.type=='Provisioning')].status",
    },
    _AGE,
]
_SELECTOR: Final = _fields(
    matchLabels={"type": "object", "additionalProperties": _TEXT},
    matchExpressions={
        "type": "array",
        "items": _fields(
            ("key", "operator"), key=_TEXT, operator=_TEXT, values={"type": "array", "items": _TEXT}
        ),
    },
)
_QUOTA: Final = _fields(
    ("limits",),
    selector=_SELECTOR,
    limits=_fields(
        ("resources",),
        resources={
            **_QUANTITIES,
            "maxProperties": 20,
            "x-kubernetes-validations": [
                {
                    "rule": "self.all(key, size(key) <= 63)",
                    "message": "Resource names must be 63 characters or less.",
                },
                {
                    "rule": "self.all(key, type(self[key]) == int ? self[key] >= 0 : "
                    "(!self[key].startsWith('-') && quantity(self[key]).isInteger()))",
                    "message": "All resource quantities must be non-negative integers.",
                },
            ],
        },
    ),
)
_QUOTA_STATUS: Final = _fields(
    used=_fields(("resources",), resources=_QUANTITIES),
    conditions=_CONDITIONS,
    observedGeneration=_LONG,
)


def definitions() -> tuple[Json, ...]:
    """Return the three definitions; each stores its first version and serves the older one as well."""
    return (
        _definition(
            PROVISIONING_REQUESTS, _REQUEST, _REQUEST_STATUS, [_AGE], older="v1beta1", deprecated=True
        ),
        _definition(
            CAPACITY_BUFFERS, _BUFFER, _BUFFER_STATUS, _BUFFER_COLUMNS, older="v1alpha1", deprecated=True
        ),
        _definition(CAPACITY_QUOTAS, _QUOTA, _QUOTA_STATUS, [_AGE], older="v1alpha1"),
    )


def _definition(
    kind: Kind[Any], spec: Json, status: Json, columns: list[Json], *, older: str, deprecated: bool = False
) -> Json:
    schema = _fields(
        ("spec",), apiVersion=_TEXT, kind=_TEXT, metadata={"type": "object"}, spec=spec, status=status
    )
    version: Json = {
        "served": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    old: Json = {"name": older, "storage": False, **version}
    return definition_of(
        kind,
        [
            {"name": kind.version, "storage": True, **version},
            {**old, "deprecated": True} if deprecated else old,
        ],
    )
