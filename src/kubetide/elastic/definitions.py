"""The CustomResourceDefinition of ElasticWorkload: schemas come from the types, and tables add the rest."""

from __future__ import annotations

from typing import Any, Final

from kubetide.horizontal.options.annotations import FORECASTS
from kubetide.objects.base import Json
from kubetide.objects.definition_manifest import definition_of
from kubetide.objects.elastic import ElasticSpec, ElasticStatus
from kubetide.objects.kinds import ELASTIC_WORKLOADS
from kubetide.vertical.definitions import schema_of

_COUNT: Final[Json] = {"format": "int32", "minimum": 0}
_AT_LEAST_ONE: Final[Json] = {"format": "int32", "minimum": 1}
_NAME: Final[Json] = {"minLength": 1, "maxLength": 253}
_TARGET_TYPES: Final = ["Utilization", "Value", "AverageValue"]
_SOURCES: Final = ("resource", "containerResource", "pods", "object", "external")

_BEHAVIOR: Final[dict[str, Json]] = {
    "stabilizationWindowSeconds": {"format": "int32", "minimum": 0, "maximum": 3600},
    "selectPolicy": {"enum": ["Max", "Min", "Disabled"]},
    "policies[].type": {"enum": ["Percent", "Pods"]},
    "policies[].value": _AT_LEAST_ONE,
    "policies[].periodSeconds": {"format": "int32", "minimum": 1, "maximum": 1800},
}
_SAID: Final[dict[str, Json]] = {
    "horizontal.minReplicas": _COUNT,
    "horizontal.maxReplicas": _AT_LEAST_ONE,
    "horizontal.metrics[].type": {"enum": ["Resource", "ContainerResource", "Pods", "Object", "External"]},
    **{f"horizontal.metrics[].{one}.target.type": {"enum": _TARGET_TYPES} for one in _SOURCES},
    **{
        f"horizontal.behavior.{side}.{name}": said
        for side in ("scaleUp", "scaleDown")
        for name, said in _BEHAVIOR.items()
    },
    "schedule.rules[].name": _NAME,
    "schedule.rules[].replicas": _COUNT,
    "schedule.rules[].minReplicas": _COUNT,
    "schedule.rules[].maxReplicas": _COUNT,
    "schedule.calendars[].name": _NAME,
    "forecast.mode": {"enum": list(FORECASTS), "default": FORECASTS[0]},
}
"""What a field's type does not say; a field of a list's items has ``[]`` before it."""

_REQUIRED: Final[dict[str, list[str]]] = {
    "": ["targetRef"],
    "horizontal": ["maxReplicas"],
    "horizontal.metrics[]": ["type"],
    **{
        f"horizontal.behavior.{side}.policies[]": ["type", "value", "periodSeconds"]
        for side in ("scaleUp", "scaleDown")
    },
    "schedule": ["rules"],
    "schedule.rules[]": ["name"],
    "schedule.calendars[]": ["name", "dates"],
}

_RULES: Final[dict[str, list[tuple[str, str]]]] = {
    "": [
        (
            "has(self.horizontal) || has(self.vertical) || has(self.schedule)",
            "at least one of horizontal, vertical and schedule is required",
        ),
        ("!has(self.forecast) || has(self.horizontal)", "forecast needs a horizontal section"),
        ("self.targetRef == oldSelf.targetRef", "targetRef is immutable: make another object"),
    ],
    "schedule.rules[]": [
        (
            "has(self.at) ? !has(self.start) && !has(self.end) : has(self.start) && has(self.end)",
            "write either at, or start and end",
        ),
        (
            "has(self.replicas) != (has(self.minReplicas) || has(self.maxReplicas))",
            "write either replicas, or minReplicas, maxReplicas or both",
        ),
        (
            "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
            "maxReplicas must not be below minReplicas",
        ),
    ],
}

_MOST: Final = {"schedule.rules": 200, "schedule.calendars": 50}
"""Lists whose items have rules need a bound, by which an API server reckons what the rules cost."""

_COLUMNS: Final[list[Json]] = [
    {"name": "Kind", "type": "string", "jsonPath": ".spec.targetRef.kind"},
    {"name": "Target", "type": "string", "jsonPath": ".spec.targetRef.name"},
    {"name": "Replicas", "type": "integer", "jsonPath": ".status.horizontal.currentReplicas"},
    {"name": "Desired", "type": "integer", "jsonPath": ".status.horizontal.desiredReplicas"},
    {"name": "Floor", "type": "integer", "jsonPath": ".status.schedule.minReplicas"},
    {"name": "Ceiling", "type": "integer", "jsonPath": ".status.schedule.maxReplicas"},
    {"name": "Mode", "type": "string", "jsonPath": ".spec.vertical.updatePolicy.updateMode"},
    {"name": "Accepted", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Accepted')].status"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Next", "type": "string", "jsonPath": ".status.schedule.nextChange", "priority": 1},
]


def definitions() -> tuple[Json, ...]:
    """Return the definition."""
    kind = ELASTIC_WORKLOADS
    text: Json = {"type": "string"}
    schema: Json = {
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": text,
            "kind": text,
            "metadata": {"type": "object"},
            "spec": _completed(schema_of(ElasticSpec), ""),
            "status": schema_of(ElasticStatus),
        },
    }
    version: Json = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": _COLUMNS,
    }
    return (definition_of(kind, [version], categories=["all"]),)


def _completed(schema: Any, at: str) -> Json:
    """Return a schema with what the tables say of the field at this path."""
    found: Json = {**schema, **_SAID.get(at, {})}
    if at in _REQUIRED:
        found["required"] = _REQUIRED[at]
    if at in _RULES:
        found["x-kubernetes-validations"] = [
            {"rule": rule, "message": message} for rule, message in _RULES[at]
        ]
    if at in _MOST:
        found["maxItems"] = _MOST[at]
    if "properties" in found:
        found["properties"] = {
            name: _completed(one, f"{at}.{name}" if at else name) for name, one in found["properties"].items()
        }
    if "items" in found:
        found["items"] = _completed(found["items"], f"{at}[]")
    return found
