"""Reading VPA objects from a review, with the words that upstream's decoder has for what cannot be read.

Source: Go's encoding/json; field types of vertical-pod-autoscaler 1.8.1, pkg/apis/autoscaling.k8s.io/v1.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from kubetide.objects.base import Json
from kubetide.objects.vpa import VerticalPodAutoscaler

_WHERE = re.compile(r" - at `\$(.*)`$")
_LISTS = re.compile(r"\[(\.\.\.|\d+)\]")

# JSON path without indices: the Go struct that has the field, and the field's Go type.
_FIELDS = {
    "apiVersion": ("TypeMeta", "string"),
    "kind": ("TypeMeta", "string"),
    "metadata": ("VerticalPodAutoscaler", "v1.ObjectMeta"),
    "metadata.name": ("ObjectMeta", "string"),
    "metadata.namespace": ("ObjectMeta", "string"),
    "metadata.labels": ("ObjectMeta", "map[string]string"),
    "metadata.annotations": ("ObjectMeta", "map[string]string"),
    "spec": ("VerticalPodAutoscaler", "v1.VerticalPodAutoscalerSpec"),
    "spec.targetRef": ("VerticalPodAutoscalerSpec", "v1.CrossVersionObjectReference"),
    "spec.targetRef.apiVersion": ("CrossVersionObjectReference", "string"),
    "spec.targetRef.kind": ("CrossVersionObjectReference", "string"),
    "spec.targetRef.name": ("CrossVersionObjectReference", "string"),
    "spec.updatePolicy": ("VerticalPodAutoscalerSpec", "v1.PodUpdatePolicy"),
    "spec.updatePolicy.updateMode": ("PodUpdatePolicy", "v1.UpdateMode"),
    "spec.updatePolicy.minReplicas": ("PodUpdatePolicy", "int32"),
    "spec.updatePolicy.evictAfterOOMSeconds": ("PodUpdatePolicy", "int32"),
    "spec.updatePolicy.evictionRequirements": ("PodUpdatePolicy", "[]*v1.EvictionRequirement"),
    "spec.updatePolicy.evictionRequirements.resources": ("EvictionRequirement", "[]v1.ResourceName"),
    "spec.updatePolicy.evictionRequirements.changeRequirement": (
        "EvictionRequirement",
        "v1.EvictionChangeRequirement",
    ),
    "spec.resourcePolicy": ("VerticalPodAutoscalerSpec", "v1.PodResourcePolicy"),
    "spec.resourcePolicy.containerPolicies": ("PodResourcePolicy", "[]v1.ContainerResourcePolicy"),
    "spec.recommenders": ("VerticalPodAutoscalerSpec", "[]*v1.VerticalPodAutoscalerRecommenderSelector"),
    "spec.recommenders.name": ("VerticalPodAutoscalerRecommenderSelector", "string"),
    "spec.startupBoost": ("VerticalPodAutoscalerSpec", "v1.StartupBoost"),
    "status": ("VerticalPodAutoscaler", "v1.VerticalPodAutoscalerStatus"),
}
_POLICY = {
    "containerName": "string",
    "mode": "v1.ContainerScalingMode",
    "minAllowed": "v1.ResourceList",
    "maxAllowed": "v1.ResourceList",
    "controlledResources": "[]v1.ResourceName",
    "controlledValues": "v1.ContainerControlledValues",
    "memoryAggregationIntervalSeconds": "int32",
    "memoryAggregationIntervalCount": "int64",
    "startupBoost": "v1.StartupBoost",
}
_BOOST = {"type": "v1.StartupBoostType", "factor": "int32", "durationSeconds": "int32"}
_JSON_WORDS = {
    "str": "string",
    "int": "number",
    "float": "number",
    "bool": "bool",
    "object": "object",
    "array": "array",
}

_POLICIES = "spec.resourcePolicy.containerPolicies"
_FIELDS |= {f"{_POLICIES}.{name}": ("ContainerResourcePolicy", kind) for name, kind in _POLICY.items()}
for _at in ("spec.startupBoost", f"{_POLICIES}.startupBoost"):
    _FIELDS[f"{_at}.cpu"] = "StartupBoost", "v1.GenericStartupBoost"
    _FIELDS |= {f"{_at}.cpu.{name}": ("GenericStartupBoost", kind) for name, kind in _BOOST.items()}


class UnreadableVpa(ValueError):
    """A VPA object that is of the wrong shape; the message is what upstream's decoder says of it."""


def read_vpa(body: Json) -> VerticalPodAutoscaler:
    """Return a VPA object. Raises: UnreadableVpa; quantities are read later."""
    try:
        return msgspec.convert(body, VerticalPodAutoscaler)
    except msgspec.ValidationError as error:
        raise UnreadableVpa(_said(str(error), body)) from error


def _said(text: str, body: Any) -> str:
    found = _WHERE.search(text)
    path = _LISTS.sub("", found[1]).lstrip(".") if found else ""
    got = re.search(r"got `(\w+)`", text)
    word = _JSON_WORDS.get(got[1], got[1]) if got else "value"
    if not path:
        return f"json: cannot unmarshal {word} into Go value of type v1.VerticalPodAutoscaler"
    struct, kind = _FIELDS.get(path, ("VerticalPodAutoscaler", "value"))
    if word == "number" and kind.startswith("int"):
        word = f"number {_value_at(body, found[1] if found else '')}"
    return f"json: cannot unmarshal {word} into Go struct field {struct}.{path} of type {kind}"


def _value_at(body: Any, path: str) -> Any:
    value = body
    for part in re.findall(r"[A-Za-z]+|\d+", path):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value
