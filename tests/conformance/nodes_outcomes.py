"""What a recorded step expects and what production did, in the same words; and where they differ."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import msgspec
from tests.conformance.cases import difference

from kubetide.nodes.decision import EventRecord
from kubetide.nodes.expander import Option
from kubetide.nodes.scale_down.memory import ScaleDownStatus
from kubetide.nodes.scale_up.tick import Round
from kubetide.objects.base import Json
from kubetide.objects.pod import Pod

COMPARED = (
    "scaleUps",
    "failedScaleUps",
    "decreasedTargets",
    "targetSizes",
    "deletedNodes",
    "evictedPods",
    "taintsAdded",
    "taintsRemoved",
    "cordoned",
    "uncordoned",
    "events",
    "unneededNodes",
    "scaleDownStatus",
    "clusterStateHealthy",
    "statusConfigMap",
    "statusConfigMapAnnotations",
    "scaleUpStatuses",
    "expander",
)


def first_of(where: str, expected: Json, found: Json) -> str | None:
    """Return the first difference between two outcomes of a step."""
    for name in COMPARED:
        required = expected.get(name)
        there = found.get(name)
        if "scaleDownStatus" not in expected and name in {"scaleDownStatus", "clusterStateHealthy"}:
            continue  # the loop ended before either was looked at
        if not required and not there and required is not False and there is not False:
            continue
        wrong = difference(f"{where}.{name}", _plain(required, name), _plain(there, name))
        if wrong:
            return wrong
    return None


def _plain(value: Any, name: str) -> Any:
    """Return a value with its lists in order, and of a document its leaves as text."""
    if isinstance(value, dict):
        named = {key: _plain(one, name) for key, one in value.items() if key != "randomAmong"}
        if "reason" in named and "message" in named:
            named["message"] = _message(named["reason"], named["message"])
        return {key: one for key, one in named.items() if one not in (None, "", [], {})}
    if isinstance(value, list):
        return sorted(
            (_plain(one, name) for one in value), key=lambda one: msgspec.json.encode(one, order="sorted")
        )
    if name == "statusConfigMap":
        return (
            "" if value in (None, "null") else str(value).lower() if isinstance(value, bool) else str(value)
        )
    if isinstance(value, float):
        return float(Decimal(value).quantize(Decimal("0.000001"), ROUND_HALF_UP))
    return value


def _message(reason: str, message: str) -> str:
    """Return an event's message with what may come in any order in order."""
    if reason == "NotTriggerScaleUp" and ": " in message:
        first, _, rest = message.partition(": ")
        return f"{first}: {', '.join(sorted(re.split(r', (?=[0-9]+ )', rest)))}"
    return message


def event_of(event: EventRecord) -> Json:
    return {
        "object": f"{event.kind}/{event.namespace}/{event.name}",
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
    }


def option_of(option: Option) -> Json:
    return {
        "group": option.group.id,
        "nodeCount": option.nodes,
        "pods": len(option.pods),
        "similarGroups": list(option.similar),
    }


def scale_up_status_of(attempt: Round) -> Json:
    return {
        "result": attempt.result,
        "error": {"type": attempt.error_type, "message": attempt.error} if attempt.error_type else None,
        "scaleUpInfos": [
            {
                "group": one.group.id,
                "currentSize": one.grown_from,
                "newSize": one.size,
                "maxSize": one.group.max_size,
            }
            for one in attempt.increases
        ],
        "podsTriggeredScaleUp": _names(attempt.triggered),
        "podsRemainUnschedulable": [
            {
                "pod": name,
                "rejected": {group: list(one.reasons) for group, one in rejected.items()},
                "skipped": {
                    group: list(words) for group, words in attempt.skipped.items() if group not in rejected
                },
            }
            for pods, rejected in attempt.remain
            for name in _names(pods)
        ],
        "podsAwaitEvaluation": _names(attempt.awaiting),
        "consideredNodeGroups": list(attempt.considered),
        "failedResizeNodeGroups": list(attempt.failed),
    }


def _names(pods: Sequence[Pod]) -> list[str]:
    return [f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods]


def _taints(node: Json) -> set[str]:
    return {
        f"{one['key']}={one.get('value', '')}:{one['effect']}" for one in node["spec"].get("taints") or ()
    }


def changed(before: Mapping[str, Json], now: Mapping[str, Json]) -> Json:
    both = [name for name in before if name in now]
    cordon = {
        name: bool(now[name]["spec"].get("unschedulable")) - bool(before[name]["spec"].get("unschedulable"))
        for name in both
    }
    return {
        "taintsAdded": {name: sorted(_taints(now[name]) - _taints(before[name])) for name in both},
        "taintsRemoved": {name: sorted(_taints(before[name]) - _taints(now[name])) for name in both},
        "cordoned": [name for name, change in cordon.items() if change > 0],
        "uncordoned": [name for name, change in cordon.items() if change < 0],
    }


def status_of(status: ScaleDownStatus) -> Json:
    return {
        "result": status.result,
        "scaledDownNodes": [
            {
                "node": one.node,
                "group": one.group,
                "kind": one.kind,
                "evictedPods": list(one.evicted_pods),
                "utilization": one.utilization,
                "utilizationResource": one.resource,
            }
            for one in status.scaled_down
        ],
        "unremovableNodes": [
            {
                "node": one.node,
                "group": one.group,
                "reason": one.reason,
                "blockingPod": one.blocking_pod,
                "blockingPodReason": one.blocking_reason,
                "utilization": one.utilization,
                "utilizationResource": one.resource,
            }
            for one in status.unremovable
            if one.group
        ],
        "nodeDeleteResults": {
            name: {"result": one.result, "error": one.error} for name, one in status.delete_results.items()
        },
    }
