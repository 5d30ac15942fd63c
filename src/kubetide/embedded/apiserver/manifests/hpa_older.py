"""HorizontalPodAutoscalers of older versions in manifests, read as autoscaling/v2.

``v2beta2`` has the fields of v2. ``v2beta1`` writes metrics in the shape that v1 keeps in its annotation.
Source: Kubernetes v1.25, the last that served both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubetide.objects.base import Json
from kubetide.objects.hpa_v1 import SOURCES, metric_of_v1, v2_of
from kubetide.objects.kinds import HPAS

_BETA1_FIELDS = {
    "resource": {"name", "targetAverageUtilization", "targetAverageValue"},
    "containerResource": {"name", "container", "targetAverageUtilization", "targetAverageValue"},
    "pods": {"metricName", "selector", "targetAverageValue"},
    "object": {"target", "metricName", "selector", "targetValue", "averageValue"},
    "external": {"metricName", "metricSelector", "targetValue", "targetAverageValue"},
}
_BETA1_SPEC = {"scaleTargetRef", "minReplicas", "maxReplicas", "metrics"}
_V1_SPEC = {"scaleTargetRef", "minReplicas", "maxReplicas", "targetCPUUtilizationPercentage"}

Problems = list[tuple[str, str]]


def as_v2(value: Any) -> tuple[Any, Problems]:
    """Return a manifest in autoscaling/v2 if it is an autoscaler of an older version, else as it is.

    Returns: the manifest, and what is wrong with it: field path and text.
    """
    if not isinstance(value, dict) or value.get("kind") != HPAS.kind:
        return value, []
    convert = _CONVERSIONS.get(str(value.get("apiVersion")))
    if convert is None or not isinstance(value.get("spec"), dict):
        return value, []
    return convert(value)


def _of_v1(value: Json) -> tuple[Json, Problems]:
    problems = [_unknown(f"spec.{name}") for name in value["spec"] if name not in _V1_SPEC]
    metadata = value.get("metadata")
    if (
        problems
        or not isinstance(metadata, dict | None)
        or not _are_texts((metadata or {}).get("annotations"))
    ):
        return {**value, "apiVersion": HPAS.api_version}, problems
    return v2_of(value), []


def _are_texts(annotations: Any) -> bool:
    return annotations is None or (
        isinstance(annotations, dict) and all(isinstance(text, str) for text in annotations.values())
    )


def _of_v2beta2(value: Json) -> tuple[Json, Problems]:
    return {**value, "apiVersion": HPAS.api_version}, []


def _of_v2beta1(value: Json) -> tuple[Json, Problems]:
    spec = value["spec"]
    problems = [_unknown(f"spec.{name}") for name in spec if name not in _BETA1_SPEC]
    metrics = spec.get("metrics")
    if isinstance(metrics, list):
        problems += _beta1_problems(metrics)
        if not problems:
            spec = {**spec, "metrics": [metric_of_v1(metric, "target") for metric in metrics]}
    return {**value, "apiVersion": HPAS.api_version, "spec": spec}, problems


def _beta1_problems(metrics: list[Any]) -> Iterator[tuple[str, str]]:
    for index, metric in enumerate(metrics):
        path = f"spec.metrics[{index}]"
        source = SOURCES.get(str(metric.get("type"))) if isinstance(metric, dict) else None
        if source is None:
            yield path, f"a metric of v2beta1 is a map with a type: {', '.join(SOURCES)}"
        elif not isinstance(metric.get(source), dict):
            yield f"{path}.{source}", "is missing: it holds the metric of this type"
        else:
            for name in metric[source]:
                if name not in _BETA1_FIELDS[source]:
                    yield _unknown(f"{path}.{source}.{name}")


def _unknown(path: str) -> tuple[str, str]:
    return path, "unknown field"


_CONVERSIONS: dict[str, Callable[[Json], tuple[Json, Problems]]] = {
    "autoscaling/v1": _of_v1,
    "autoscaling/v2beta1": _of_v2beta1,
    "autoscaling/v2beta2": _of_v2beta2,
}
