"""AdmissionReviews drawn from a seed: new pods of the workloads of a stage, and VPA objects with mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
from tests.plane.vpa_stage import Stage

from kubetide.objects.kinds import PODS, VPAS, Kind
from kubetide.units.patch import merge_patch

Json = dict[str, Any]

_CONTAINER = ({"containerName": "main"}, {"containerName": "*"}, {})
_MISTAKES: tuple[Json, ...] = (
    {"updatePolicy": {"updateMode": "Sometimes"}},
    {"updatePolicy": {"updateMode": "InPlace"}},
    {"updatePolicy": {"updateMode": "Auto"}},
    {"updatePolicy": {"updateMode": "Recreate", "minReplicas": 0}},
    {"updatePolicy": {"minReplicas": 1}},
    {"updatePolicy": {"updateMode": "Off", "evictAfterOOMSeconds": 0}},
    {"updatePolicy": None},
    {"recommenders": [{"name": "a"}, {"name": "b"}]},
    {"startupBoost": {"cpu": {"type": "Factor", "factor": 2}}},
    {"startupBoost": {"cpu": {"type": "Quantity", "quantity": "10.5m"}}},
)
_POLICIES: tuple[Json, ...] = (
    {"mode": "Maybe"},
    {"mode": "Off", "controlledValues": "RequestsAndLimits"},
    {"mode": "Off", "controlledValues": "RequestsOnly"},
    {"minAllowed": {"cpu": "2"}, "maxAllowed": {"cpu": "1"}},
    {"minAllowed": {"cpu": "1.0005"}},
    {"maxAllowed": {"memory": "100.5"}},
    {"controlledResources": ["cpu", "nvidia.com/gpu"]},
    {"controlledResources": []},
    {"oomBumpUpRatio": "0.5"},
    {"oomBumpUpRatio": "1.2", "oomMinBumpUp": "-1"},
    {"memoryAggregationIntervalSeconds": 0, "memoryAggregationIntervalCount": 0},
)


def reviews(stage: Stage, seed: int) -> Iterator[Json]:
    """Yield a review of a new pod for each pod there is, and of VPA objects that are made or changed."""
    rng = Random(seed)
    for number, key in enumerate(sorted(stage.pods.objects)):
        pod = as_json(stage.pods.objects[key])
        yield _review(number, PODS, key[0], _new_pod(rng, pod))
    for number, key in enumerate(sorted(stage.vpas.objects)):
        vpa = as_json(stage.vpas.objects[key])
        body = {name: vpa[name] for name in ("apiVersion", "kind", "spec")}
        body["metadata"] = {"name": key[1], "namespace": key[0]}
        changed = _with_mistake(rng, body)
        old = body if rng.random() < 0.4 else None
        yield _review(10_000 + number, VPAS, key[0], changed, old)


def _new_pod(rng: Random, pod: Json) -> Json:
    meta = pod["metadata"]
    metadata: Json = {"labels": meta["labels"], "ownerReferences": meta["ownerReferences"]}
    metadata |= {"generateName": "new-"} if rng.random() < 0.7 else {"name": f"new-{meta['name']}"}
    if rng.random() < 0.3:
        metadata["annotations"] = {"of/somebody~else": "kept"}
    if rng.random() < 0.05:
        metadata["labels"] = {"app": "another"}
    spec = pod["spec"]
    if rng.random() < 0.1:
        spec["containers"].append({"name": "unknown", "image": "registry.test/app:1", "resources": {}})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _with_mistake(rng: Random, body: Json) -> Json:
    draw = rng.random()
    if draw < 0.3:
        return body
    if draw < 0.6:
        return merge_patch(body, {"spec": rng.choice(_MISTAKES)})
    policies = [{**rng.choice(_CONTAINER), **rng.choice(_POLICIES)} for _ in range(rng.choice((1, 1, 2)))]
    return merge_patch(body, {"spec": {"resourcePolicy": {"containerPolicies": policies}}})


def _review(number: int, kind: Kind[Any], namespace: str, body: Json, old: Json | None = None) -> Json:
    request: Json = {
        "uid": f"review-{number}",
        "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "namespace": namespace,
        "name": body["metadata"].get("name", ""),
        "operation": "CREATE" if old is None else "UPDATE",
        "requestKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "dryRun": False,
        "object": body,
    }
    if old is not None:
        request["oldObject"] = old
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def as_json(value: Any) -> Json:
    """Return an object as the API has it."""
    return msgspec.json.decode(msgspec.json.encode(value))
