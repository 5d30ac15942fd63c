"""Worlds in which the VPA loops run: a VPA for some of the workloads, and options of the loops."""

from __future__ import annotations

import json
from typing import Any

from tests.soak.scenarios import Draw, Json

MODES = ("Recreate", "InPlaceOrRecreate", "InPlace", "Initial", "Auto", "Off")
_SCALED = ("Deployment", "StatefulSet", "DaemonSet")


def has_vpas(seed: int) -> bool:
    """Return whether the VPA loops run in the world of a seed."""
    return Draw(seed * 47 + 19).chance(0.35)


def with_vpas(given: Json, seed: int) -> Json:
    """Return what of the scenario is other where the VPA loops run."""
    draw = Draw(seed * 53 + 23)
    found = [json.loads(one) for one in given["manifests"]]
    vpas = [_vpa(draw, one) for one in found if one["kind"] in _SCALED and draw.chance(0.7)]
    services = [
        {**one, "baseMemory": f"{draw.one_of((100, 300, 900))}Mi", "memoryPerRequest": "1Mi"}
        for one in given["services"]
    ]
    flags: Json = {
        "memory-aggregation-interval": draw.one_of(("10m", "1h")),
        "in-recommendation-bounds-eviction-lifetime-threshold": draw.one_of(("10m", "1h")),
        "provision-before-eviction": draw.chance(0.5),
        "in-place-skip-disruption-budget": draw.chance(0.3),
        "vpa-fit-node-groups": draw.chance(0.3),
        "vpa-oom-lower-bound": draw.chance(0.3),
        "vpa-wait-for-samples": draw.chance(0.3),
        "vpa-feature-gates": draw.one_of(("InPlace=true", "InPlace=true,CPUStartupBoost=true")),
        "max-evictions-per-minute": draw.one_of((0, 0, 2)),
        "eviction-rate-limit": draw.one_of((-1.0, -1.0, 0.05)),
    }
    return {
        "loops": ["horizontal", "nodes", "vertical"],
        "services": services,
        "manifests": [*given["manifests"], *(json.dumps(one, indent=1) for one in vpas)],
        "flags": {**given["flags"], **flags},
    }


def reviewed(given: Json) -> frozenset[str]:
    """Return the workloads whose new pods a VPA changes."""
    found = map(json.loads, given["manifests"])
    return frozenset(
        one["metadata"]["name"]
        for one in found
        if one["kind"] == "VerticalPodAutoscaler" and one["spec"]["updatePolicy"]["updateMode"] != "Off"
    )


def _vpa(draw: Draw, workload: Json) -> Json:
    name = workload["metadata"]["name"]
    policy: dict[str, Any] = {"updateMode": draw.one_of(MODES)}
    if draw.chance(0.5):
        policy["minReplicas"] = draw.between(1, 2)
    spec: Json = {
        "targetRef": {"apiVersion": "apps/v1", "kind": workload["kind"], "name": name},
        "updatePolicy": policy,
    }
    if draw.chance(0.5):
        bounds = {"containerName": "*", "maxAllowed": {"cpu": "3", "memory": "4Gi"}}
        spec["resourcePolicy"] = {"containerPolicies": [bounds]}
    if draw.chance(0.3):
        spec["startupBoost"] = {"cpu": {"type": "Factor", "factor": 2, "durationSeconds": 60}}
    return {
        "apiVersion": "autoscaling.k8s.io/v1",
        "kind": "VerticalPodAutoscaler",
        "metadata": {"name": name},
        "spec": spec,
    }
