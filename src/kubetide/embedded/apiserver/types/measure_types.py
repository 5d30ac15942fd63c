"""The types of custom and external metrics in OpenAPI, and the paths that answer with them.

Source: k8s.io/metrics v0.36, custom_metrics v1beta1 and v1beta2, external_metrics v1beta1.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from kubetide.objects.base import Json

_STRING: Json = {"type": "string"}
_TIME: Json = {"type": "string", "format": "date-time"}
_SECONDS: Json = {"type": "integer", "format": "int64"}
_QUANTITY: Json = {"oneOf": [{"type": "string"}, {"type": "number"}]}
_LABELS: Json = {"type": "object", "additionalProperties": _STRING}
_REFERENCE: Json = {
    "type": "object",
    "properties": dict.fromkeys(
        ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"), _STRING
    ),
}
_SELECTOR: Json = {
    "type": "object",
    "properties": {
        "matchLabels": _LABELS,
        "matchExpressions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "key": _STRING,
                    "operator": _STRING,
                    "values": {"type": "array", "items": _STRING},
                },
            },
        },
    },
}

_VALUE: Json = {"describedObject": _REFERENCE, "timestamp": _TIME, "value": _QUANTITY}
_ITEMS: dict[tuple[str, str], tuple[str, Json]] = {
    ("custom.metrics.k8s.io", "v1beta1"): (
        "MetricValue",
        {**_VALUE, "metricName": _STRING, "window": _SECONDS, "selector": _SELECTOR},
    ),
    ("custom.metrics.k8s.io", "v1beta2"): (
        "MetricValue",
        {
            **_VALUE,
            "metric": {"type": "object", "properties": {"name": _STRING, "selector": _SELECTOR}},
            "windowSeconds": _SECONDS,
        },
    ),
    ("external.metrics.k8s.io", "v1beta1"): (
        "ExternalMetricValue",
        {
            "metricName": _STRING,
            "metricLabels": _LABELS,
            "timestamp": _TIME,
            "window": _SECONDS,
            "value": _QUANTITY,
        },
    ),
}

_PATHS = {
    "custom.metrics.k8s.io": (
        "namespaces/{namespace}/{resource}/{name}/{subresource}",
        "namespaces/{namespace}/metrics/{name}",
        "{resource}/{name}/{subresource}",
    ),
    "external.metrics.k8s.io": ("namespaces/{namespace}/{resource}",),
}


def measure_index(groups: Sequence[tuple[str, str]]) -> Json:
    """Return the entries of these groups and versions for the list of OpenAPI v3 documents."""
    paths: Json = {}
    for group, version in groups:
        digest = sha256(msgspec.json.encode(_document(group, version))).hexdigest()[:32].upper()
        path = f"apis/{group}/{version}"
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return paths


def measure_document(path: str, groups: Sequence[tuple[str, str]]) -> Json | None:
    """Return the OpenAPI v3 document of ``apis/<group>/<version>``; None where it is none of these."""
    for group, version in groups:
        if path == f"apis/{group}/{version}":
            return _document(group, version)
    return None


def measure_definitions(groups: Sequence[tuple[str, str]]) -> Json:
    """Return the types of these groups and versions for OpenAPI v2."""
    found: Json = {}
    for group, version in groups:
        for name, schema in _schemas(group, version, "#/definitions/").items():
            found[name] = _second(schema)
    return found


def _document(group: str, version: str) -> Json:
    schemas = _schemas(group, version, "#/components/schemas/")
    answer = {"$ref": f"#/components/schemas/{_name(group, version, _ITEMS[group, version][0])}List"}
    ok = {"description": "OK", "content": {"application/json": {"schema": answer}}}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": {
            f"/apis/{group}/{version}/{path}": {
                "get": {"x-kubernetes-action": "list", "responses": {"200": ok}}
            }
            for path in _PATHS[group]
        },
        "components": {"schemas": schemas},
    }


def _name(group: str, version: str, kind: str) -> str:
    stem = group.removesuffix(".k8s.io").replace(".", "_")
    return f"io.k8s.metrics.pkg.apis.{stem}.{version}.{kind}"


def _schemas(group: str, version: str, where: str) -> Json:
    kind, properties = _ITEMS[group, version]
    item = _name(group, version, kind)
    return {
        item: {"type": "object", "properties": properties},
        f"{item}List": {
            "type": "object",
            "properties": {
                "apiVersion": _STRING,
                "kind": _STRING,
                "metadata": {"type": "object"},
                "items": {"type": "array", "items": {"$ref": f"{where}{item}"}},
            },
            "x-kubernetes-group-version-kind": [{"group": group, "version": version, "kind": f"{kind}List"}],
        },
    }


def _second(schema: Json) -> Json:
    """Return a schema as version 2 writes it: a quantity is a string there."""
    if "oneOf" in schema:
        return _STRING
    return {key: _second(value) if isinstance(value, dict) else value for key, value in schema.items()}
