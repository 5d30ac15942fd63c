"""The CustomResourceDefinitions of VPA objects and their checkpoints.

The schemas follow from the types of ``objects.vpa``; the tables below hold what a type does not say.
Source: vertical-pod-autoscaler 1.8, vpa-v1-crd-gen.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect

from kubetide.objects.base import Json
from kubetide.objects.definition_manifest import definition_of
from kubetide.objects.hpa import CrossVersionObjectReference
from kubetide.objects.kinds import VPA_CHECKPOINTS, VPAS, Kind
from kubetide.objects.meta import Condition
from kubetide.objects.vpa import (
    BOOST_FACTOR,
    BOOST_QUANTITY,
    CONTAINER_AUTO,
    CONTAINER_OFF,
    REQUESTS_AND_LIMITS,
    REQUESTS_ONLY,
    TARGET_HIGHER,
    TARGET_LOWER,
    UPDATE_MODES,
    CheckpointStatus,
    ContainerPolicy,
    ContainerRecommendation,
    CpuStartupBoost,
    EvictionRequirement,
    HistogramCheckpoint,
    RecommenderSelector,
    UpdatePolicy,
    VerticalPodAutoscaler,
    VpaSpec,
    VpaStatus,
)

_APPROVED: Final = {
    "api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797",
}
"""Without it an API server does not take definitions of a group under k8s.io."""

_QUANTITY: Final[Json] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
    "x-kubernetes-int-or-string": True,
}

_REQUIRED: Final[Mapping[type, tuple[str, ...]]] = {
    VpaSpec: ("targetRef",),
    CrossVersionObjectReference: ("kind", "name"),
    EvictionRequirement: ("changeRequirement", "resources"),
    RecommenderSelector: ("name",),
    CpuStartupBoost: ("type",),
    ContainerRecommendation: ("target",),
    Condition: ("status", "type"),
    VerticalPodAutoscaler: ("spec",),
}

_TIME: Final[Json] = {"format": "date-time", "nullable": True}
_COUNT: Final[Json] = {"format": "int32", "minimum": 1}
_SAID: Final[Mapping[tuple[type, str], Json]] = {
    # Who applies another target takes over all of it.
    (VpaSpec, "targetRef"): {"x-kubernetes-map-type": "atomic"},
    (UpdatePolicy, "updateMode"): {"enum": list(UPDATE_MODES)},
    (UpdatePolicy, "minReplicas"): {"format": "int32"},
    (UpdatePolicy, "evictAfterOOMSeconds"): _COUNT,
    (EvictionRequirement, "changeRequirement"): {"enum": [TARGET_HIGHER, TARGET_LOWER]},
    (ContainerPolicy, "mode"): {"enum": [CONTAINER_AUTO, CONTAINER_OFF]},
    (ContainerPolicy, "controlledValues"): {"enum": [REQUESTS_AND_LIMITS, REQUESTS_ONLY]},
    (ContainerPolicy, "memoryAggregationIntervalSeconds"): _COUNT,
    (ContainerPolicy, "memoryAggregationIntervalCount"): {"format": "int64", "minimum": 1},
    (CpuStartupBoost, "type"): {"enum": [BOOST_FACTOR, BOOST_QUANTITY]},
    (CpuStartupBoost, "factor"): {"format": "int32"},
    (CpuStartupBoost, "durationSeconds"): {"format": "int32"},
    (VpaStatus, "observedGeneration"): {"format": "int64", "minimum": 0},
    (Condition, "lastTransitionTime"): {"format": "date-time"},
    (CheckpointStatus, "lastUpdateTime"): _TIME,
    (CheckpointStatus, "firstSampleStart"): _TIME,
    (CheckpointStatus, "lastSampleStart"): _TIME,
    (HistogramCheckpoint, "referenceTimestamp"): _TIME,
}
"""What a field's type does not say."""

_NOT_THERE: Final = {(Condition, "lastHeartbeatTime"), (Condition, "lastUpdateTime")}
"""Fields of types that other kinds share."""

_UNREAD: Final[Mapping[type, Json]] = {
    Condition: {"observedGeneration": {"format": "int64", "minimum": 0, "type": "integer"}},
}
"""Fields that no loop here reads or writes; other recommenders may."""

_RULES: Final[Mapping[type, list[Json]]] = {
    CpuStartupBoost: [
        {
            "rule": f"self.type == '{BOOST_FACTOR}' ? has(self.factor) : !has(self.factor)",
            "message": "factor is required when type is Factor and forbidden otherwise",
        },
        {
            "rule": f"self.type == '{BOOST_QUANTITY}' ? has(self.quantity) : !has(self.quantity)",
            "message": "quantity is required when type is Quantity and forbidden otherwise",
        },
    ],
}

_COLUMNS: Final[list[Json]] = [
    {"name": "Mode", "type": "string", "jsonPath": ".spec.updatePolicy.updateMode"},
    {
        "name": "CPU",
        "type": "string",
        "jsonPath": ".status.recommendation.containerRecommendations[0].target.cpu",
    },
    {
        "name": "Mem",
        "type": "string",
        "jsonPath": ".status.recommendation.containerRecommendations[0].target.memory",
    },
    {
        "name": "Provided",
        "type": "string",
        "jsonPath": ".status.conditions[?(@.type=='RecommendationProvided')].status",
    },
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {
        "name": "MinReplicas",
        "type": "integer",
        "jsonPath": ".spec.updatePolicy.minReplicas",
        "priority": 1,
    },
    {
        "name": "OOMSeconds",
        "type": "integer",
        "jsonPath": ".spec.updatePolicy.evictAfterOOMSeconds",
        "priority": 1,
    },
]


def definitions() -> tuple[Json, ...]:
    """Return the two CustomResourceDefinitions: v1 is served and stored; v1beta2 is there but not served, as upstream's."""
    return (_definition(VPA_CHECKPOINTS, "vpacheckpoint", []), _definition(VPAS, "vpa", _COLUMNS))


def _definition(kind: Kind[Any], short: str, columns: list[Json]) -> Json:
    schema = schema_of(kind.model)
    for name in ("apiVersion", "kind"):
        schema["properties"][name] = {"type": "string"}
    schema["properties"]["metadata"] = {"type": "object"}
    version: Json = {"schema": {"openAPIV3Schema": schema}, "additionalPrinterColumns": columns}
    if not columns:
        del version["additionalPrinterColumns"]
    if kind.subresources:
        version["subresources"] = {name: {} for name in kind.subresources}
    return definition_of(
        kind,
        [
            {"name": "v1", "served": True, "storage": True, **version},
            {"name": "v1beta2", "served": False, "storage": False, **version},
        ],
        short_names=[short],
        annotations=_APPROVED,
    )


def schema_of(model: type) -> Json:
    """Return the schema of a type's objects."""
    described = inspect.type_info(model)
    assert isinstance(described, inspect.StructType)
    properties: Json = {}
    for field in described.fields:
        if field.encode_name == "metadata" or (model, field.encode_name) in _NOT_THERE:
            continue
        said = _SAID.get((model, field.encode_name), {})
        properties[field.encode_name] = {**_schema(field.type), **said}
    found: Json = {"type": "object", "properties": properties | _UNREAD.get(model, {})}
    if model in _REQUIRED:
        found["required"] = list(_REQUIRED[model])
    if model in _RULES:
        found["x-kubernetes-validations"] = _RULES[model]
    return found


def _schema(kind: inspect.Type) -> Json:
    """Return the schema of a field; what may be None may also be absent."""
    if isinstance(kind, inspect.UnionType):
        types = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        # Quantities are texts or numbers.
        return _schema(types[0]) if len(types) == 1 else dict(_QUANTITY)
    if isinstance(kind, inspect.StructType):
        return schema_of(kind.cls)
    if isinstance(kind, inspect.VarTupleType):
        return {"type": "array", "items": _schema(kind.item_type)}
    if isinstance(kind, inspect.DictType):
        return {"type": "object", "additionalProperties": _schema(kind.value_type)}
    types_by_kind: dict[type[inspect.Type], str] = {
        inspect.IntType: "integer",
        inspect.FloatType: "number",
        inspect.BoolType: "boolean",
    }
    return {"type": types_by_kind.get(type(kind), "string")}


def printed(objects: tuple[Json, ...]) -> bytes:
    """Return objects as one JSON list, which is valid YAML."""
    return msgspec.json.format(
        msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}), indent=2
    )
