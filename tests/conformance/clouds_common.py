"""The clouds suite, provider ``common``: flags with limits, the limits themselves, GPUs of nodes."""

from __future__ import annotations

from typing import Any

from tests.conformance.cases import Case, difference

from kubetide.clouds.common.gpu import gpu_of
from kubetide.ports.limits import UNLIMITED, LimitError, ResourceLimits, parse_gpu_limit, parse_min_max


def first_difference(case: Case) -> str | None:
    return difference(case["kind"], case["expect"], _answer(case["kind"], case["input"], case["expect"]))


def _answer(kind: str, given: dict[str, Any], expected: dict[str, Any]) -> Any:
    try:
        match kind:
            case "min_max_flag":
                limits = parse_min_max(given["text"])
                return {"min": limits.minimum, "max": limits.maximum}
            case "gpu_limit_flag":
                limit = parse_gpu_limit(given["text"])
                return {"type": limit.type, "min": limit.minimum, "max": limit.maximum}
            case "resource_limiter":
                return _limiter(given, expected)
            case "node_gpu":
                found = gpu_of(given["labels"], given["allocatable"], given["gpu_label"])
                return {
                    "gpu": found and {"label": found.label, "resource": found.resource, "type": found.type}
                }
    except LimitError as error:
        return {"error": str(error)}
    raise ValueError(f"unknown kind {kind}")


def _limiter(given: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    limits = ResourceLimits(minimum=given["min"], maximum=given["max"])
    asked = [name for name, answer in expected.items() if isinstance(answer, dict)]
    return {
        "resources": list(limits.resources()),
        "text": str(limits),
        **{
            name: {
                "has_min": limits.has_minimum(name),
                "has_max": limits.has_maximum(name),
                "min": limits.least(name),
                "max": "unlimited" if limits.most(name) == UNLIMITED else limits.most(name),
            }
            for name in asked
        },
    }
