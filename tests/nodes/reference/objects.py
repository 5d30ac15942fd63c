"""Nodes and pods of the drawn stories, as small as the API server would take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.nodes.reference.accelerators import RESOURCE
from tests.nodes.reference.world import Json

from kubetide.units.time import Instant, format_rfc3339

HOSTNAME = "kubernetes.io/hostname"


def node(
    name: str,
    cpu: int,
    memory_gib: int,
    at: Instant,
    *,
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Json] = (),
    annotations: Mapping[str, str] | None = None,
    provider_id: str = "",
    ready: bool = True,
    accelerators: int = 0,
) -> Json:
    room = {"cpu": str(cpu), "memory": str(memory_gib << 30), "pods": str(pods)}
    if accelerators:
        room[RESOURCE] = str(accelerators)
    spec: Json = {"providerID": provider_id} if provider_id else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "creationTimestamp": format_rfc3339(at),
            "labels": {HOSTNAME: name, **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": spec | ({"taints": list(taints)} if taints else {}),
        "status": {
            "capacity": room,
            "allocatable": dict(room),
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True" if ready else "False",
                    "lastTransitionTime": format_rfc3339(at),
                }
            ],
        },
    }


def owner(kind: str, name: str) -> Json:
    version = {"Job": "batch/v1", "ReplicationController": "v1", "Node": "v1"}.get(kind, "apps/v1")
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}


def workload(kind: str, name: str, replicas: int, namespace: str = "default", **spec: Any) -> Json:
    made = owner(kind, name)
    return {
        "apiVersion": made["apiVersion"],
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": made["uid"],
            "creationTimestamp": "2025-12-31T23:00:00Z",
        },
        "spec": {"replicas": replicas, **spec},
        "status": {},
    }


def pod(
    name: str,
    at: Instant,
    template: Json,
    *,
    namespace: str = "default",
    on: str = "",
) -> Json:
    """A pod of a template: `cpu` in thousandths, `memory` in MiB, `accelerators`, a `port` of the node, and what else is under `metadata` and `spec`."""
    container: Json = {"name": "c", "image": "i"}
    if template.get("port"):
        container["ports"] = [{"containerPort": template["port"], "hostPort": template["port"]}]
    requests = {"cpu": f"{template['cpu']}m", "memory": f"{template['memory']}Mi"}
    if template.get("accelerators"):
        requests[RESOURCE] = str(template["accelerators"])
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"pod-{namespace}-{name}",
            "creationTimestamp": format_rfc3339(at),
            **template.get("metadata", {}),
        },
        "spec": {
            "containers": [{**container, "resources": {"requests": requests}}],
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30,
            "restartPolicy": "Always",
            **template.get("spec", {}),
            **({"nodeName": on} if on else {}),
        },
        "status": {
            "phase": "Running" if on else "Pending",
            "conditions": [{"type": "PodScheduled", "status": "True"} if on else waiting],
        },
    }


def bound(one: Json, name: str) -> Json:
    """The pod once it runs on a node."""
    return {
        **one,
        "spec": {**one["spec"], "nodeName": name},
        "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]},
    }
