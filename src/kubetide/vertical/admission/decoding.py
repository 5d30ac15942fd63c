"""Reads VPA objects from a review, with the error texts of upstream's decoder.

Source: Go's encoding/json; field types of vertical-pod-autoscaler 1.8.1, pkg/apis/autoscaling.k8s.io/v1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kubetide.objects.base import Json
from kubetide.objects.nulls import without_nulls
from kubetide.objects.vpa import ContainerPolicy, VerticalPodAutoscaler, VpaSpec
from kubetide.units.quantity import Quantity, QuantityError

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
_QUANTITIES = ("minAllowed", "maxAllowed", "oomBumpUpRatio", "oomMinBumpUp", "quantity", "recommendation")
_QUANTITY_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
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
    """A VPA object of the wrong form; the message is that of upstream's decoder."""


def read_vpa(body: Json) -> VerticalPodAutoscaler:
    """Return a VPA object whose numbers and quantities are all readable. Raises: UnreadableVpa."""
    body = without_nulls(body)
    try:
        vpa = msgspec.convert(body, VerticalPodAutoscaler)
    except msgspec.ValidationError as error:
        raise UnreadableVpa(_said(str(error), body)) from error
    for path, value in _integers(vpa.spec):
        if not -(1 << 31) <= value < 1 << 31:
            raise UnreadableVpa(_unfit(path, f"number {value}"))
    for quantity in _quantities(vpa):
        try:
            Quantity.parse(quantity)
        except QuantityError as error:
            _, _, why = str(error).partition(" is not a quantity: ")
            raise UnreadableVpa(why or str(error)) from error
    return vpa


def _integers(spec: VpaSpec) -> Iterator[tuple[str, int]]:
    """Yield the fields that Go holds in 32 bits."""
    found: list[tuple[str, int | None]] = []
    if spec.update_policy is not None:
        at = "spec.updatePolicy"
        found.append((f"{at}.minReplicas", spec.update_policy.min_replicas))
        found.append((f"{at}.evictAfterOOMSeconds", spec.update_policy.evict_after_oom_seconds))
    boosts = [("spec.startupBoost", spec.startup_boost)]
    for policy in _policies_of(spec):
        found.append(
            (f"{_POLICIES}.memoryAggregationIntervalSeconds", policy.memory_aggregation_interval_seconds)
        )
        boosts.append((f"{_POLICIES}.startupBoost", policy.startup_boost))
    for at, boost in boosts:
        if boost is not None and boost.cpu is not None:
            found.append((f"{at}.cpu.factor", boost.cpu.factor))
            found.append((f"{at}.cpu.durationSeconds", boost.cpu.duration_seconds))
    return ((path, value) for path, value in found if value is not None)


def _quantities(vpa: VerticalPodAutoscaler) -> Iterator[str | int | float]:
    boosts = [vpa.spec.startup_boost]
    for policy in _policies_of(vpa.spec):
        yield from (policy.min_allowed or {}).values()
        yield from (policy.max_allowed or {}).values()
        yield from (one for one in (policy.oom_bump_up_ratio, policy.oom_min_bump_up) if one is not None)
        boosts.append(policy.startup_boost)
    for boost in boosts:
        if boost is not None and boost.cpu is not None and boost.cpu.quantity is not None:
            yield boost.cpu.quantity
    recommendation = vpa.status.recommendation
    for one in (recommendation.container_recommendations if recommendation is not None else None) or ():
        for side in (one.target, one.lower_bound, one.upper_bound, one.uncapped_target):
            yield from (side or {}).values()


def _policies_of(spec: VpaSpec) -> Sequence[ContainerPolicy]:
    policy = spec.resource_policy
    return (policy.container_policies if policy is not None else None) or ()


def _said(text: str, body: Any) -> str:
    found = _WHERE.search(text)
    path = _LISTS.sub("", found[1]).lstrip(".") if found else ""
    got = re.search(r"got `(\w+)`", text)
    word = _JSON_WORDS.get(got[1], got[1]) if got else "value"
    if not path:
        return f"json: cannot unmarshal {word} into Go value of type v1.VerticalPodAutoscaler"
    if path not in _FIELDS and any(name in path for name in _QUANTITIES):
        return _QUANTITY_TEXT
    if word == "number" and _FIELDS.get(path, ("", ""))[1].startswith("int"):
        word = f"number {_value_at(body, found[1] if found else '')}"
    return _unfit(path, word)


def _unfit(path: str, word: str) -> str:
    struct, kind = _FIELDS.get(path, ("VerticalPodAutoscaler", "value"))
    return f"json: cannot unmarshal {word} into Go struct field {struct}.{path} of type {kind}"


def _value_at(body: Any, path: str) -> Any:
    value = body
    for part in re.findall(r"[A-Za-z]+|\d+", path):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value
