"""Objects as a user would write them: plain JSON, with only what a test is about said.

Every builder takes ``name``, an optional ``namespace``, and what is often varied; the rest is
merged in by ``extra``, a merge patch over the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from kubetide.objects.base import Json
from kubetide.objects.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HPAS,
    LEASES,
    NAMESPACES,
    NODES,
    PDBS,
    PODS,
    PRIORITY_CLASSES,
    REPLICA_SETS,
    Kind,
)
from kubetide.units.patch import merge_patch


def pod(
    name: str,
    *,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    cpu: str = "100m",
    memory: str = "64Mi",
    owners: Sequence[Json] = (),
    extra: Json | None = None,
) -> Json:
    """Return a pod of one container that requests so much."""
    body = _object(PODS, name, namespace, labels, owners)
    body["spec"] = pod_spec(cpu=cpu, memory=memory)
    return _merged(body, extra)


def pod_spec(*, cpu: str = "100m", memory: str = "64Mi") -> Json:
    """Return the spec of a pod of one container that requests so much."""
    requests = {"cpu": cpu, "memory": memory}
    return {
        "containers": [{"name": "app", "image": "registry.test/app:1", "resources": {"requests": requests}}]
    }


def deployment(
    name: str,
    *,
    namespace: str = "",
    replicas: int | None = None,
    cpu: str = "100m",
    memory: str = "64Mi",
    extra: Json | None = None,
) -> Json:
    """Return a Deployment whose pods have the label ``app: <name>``."""
    return _workload(DEPLOYMENTS, name, namespace, replicas, cpu, memory, extra)


def replica_set(
    name: str,
    *,
    namespace: str = "",
    replicas: int | None = None,
    cpu: str = "100m",
    memory: str = "64Mi",
    extra: Json | None = None,
) -> Json:
    """Return a ReplicaSet whose pods have the label ``app: <name>``."""
    return _workload(REPLICA_SETS, name, namespace, replicas, cpu, memory, extra)


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "16Gi",
    pods: str = "110",
    labels: Mapping[str, str] | None = None,
    ready: bool = True,
    extra: Json | None = None,
) -> Json:
    """Return a node of that size; capacity and allocatable are the same."""
    body = _object(NODES, name, "", {"kubernetes.io/hostname": name.rstrip("-"), **(labels or {})}, ())
    size = {"cpu": cpu, "memory": memory, "pods": pods}
    body["status"] = {
        "capacity": dict(size),
        "allocatable": size,
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
    }
    return _merged(body, extra)


def hpa(
    name: str,
    target: str,
    *,
    namespace: str = "",
    min_replicas: int = 1,
    max_replicas: int = 10,
    cpu_percent: int = 50,
    extra: Json | None = None,
) -> Json:
    """Return an HPA of a Deployment on its pods' CPU utilization."""
    body = _object(HPAS, name, namespace, None, ())
    goal = {"type": "Utilization", "averageUtilization": cpu_percent}
    body["spec"] = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
        "minReplicas": min_replicas,
        "maxReplicas": max_replicas,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": goal}}],
    }
    return _merged(body, extra)


def pdb(
    name: str,
    match: Mapping[str, str],
    *,
    namespace: str = "",
    min_available: int | str | None = None,
    max_unavailable: int | str | None = None,
    extra: Json | None = None,
) -> Json:
    """Return a disruption budget for the pods with these labels."""
    body = _object(PDBS, name, namespace, None, ())
    spec = {
        "selector": {"matchLabels": dict(match)},
        "minAvailable": min_available,
        "maxUnavailable": max_unavailable,
    }
    body["spec"] = {field: value for field, value in spec.items() if value is not None}
    return _merged(body, extra)


def config_map(
    name: str,
    *,
    namespace: str = "",
    data: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    owners: Sequence[Json] = (),
    extra: Json | None = None,
) -> Json:
    """Return a ConfigMap: the object to use where the kind does not matter, as no controller touches it."""
    body = _object(CONFIG_MAPS, name, namespace, labels, owners)
    body["data"] = dict(data or {})
    return _merged(body, extra)


def namespace(name: str) -> Json:
    """Return a namespace."""
    return _object(NAMESPACES, name, "", None, ())


def priority_class(name: str, value: int, *, global_default: bool = False) -> Json:
    """Return a priority class."""
    return {**_object(PRIORITY_CLASSES, name, "", None, ()), "value": value, "globalDefault": global_default}


def lease(name: str, *, namespace: str = "", holder: str = "") -> Json:
    """Return a lease."""
    return {**_object(LEASES, name, namespace, None, ()), "spec": {"holderIdentity": holder}}


def owner_reference(owner: Any, *, controller: bool = False, block: bool = True) -> Json:
    """Return a reference to a typed object that was read."""
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": controller,
        "blockOwnerDeletion": block,
    }


def _workload(
    kind: Kind[Any],
    name: str,
    namespace: str,
    replicas: int | None,
    cpu: str,
    memory: str,
    extra: Json | None,
) -> Json:
    body = _object(kind, name, namespace, None, ())
    labels = {"app": name}
    spec: Json = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": dict(labels)}, "spec": pod_spec(cpu=cpu, memory=memory)},
    }
    if replicas is not None:
        spec["replicas"] = replicas
    body["spec"] = spec
    return _merged(body, extra)


def _object(
    kind: Kind[Any], name: str, namespace: str, labels: Mapping[str, str] | None, owners: Sequence[Json]
) -> Json:
    meta: Json = {"generateName": name} if name.endswith("-") else {"name": name}
    if namespace:
        meta["namespace"] = namespace
    if labels:
        meta["labels"] = dict(labels)
    if owners:
        meta["ownerReferences"] = list(owners)
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}


def _merged(body: Json, extra: Json | None) -> Json:
    return cast("Json", merge_patch(body, extra)) if extra else body
