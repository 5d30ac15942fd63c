"""The ``scale`` subresource: one shape for every workload that has a replica count."""

from __future__ import annotations

from typing import Any

from kubetide.embedded.store.revision import Revision
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import Deployment, ReplicaSet, Scale
from kubetide.ports.errors import BadRequest, Invalid
from kubetide.units.selectors import Selector

SCALE = Kind("autoscaling", "v1", "Scale", "scales", Scale)
"""The type of the answer; it is stored nowhere."""


def scale_of(kind: Kind[Any], revision: Revision) -> Revision:
    """Gives the Scale of a Deployment, a ReplicaSet or a StatefulSet, at the version of that object."""
    workload: Deployment | ReplicaSet | StatefulSet = revision.read_as(kind.model)
    meta = revision.metadata
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    json: Json = {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {field: meta[field] for field in fields if field in meta},
        "spec": {"replicas": workload.spec.replicas or 0},
        "status": {
            "replicas": workload.status.replicas,
            "selector": str(Selector.from_object(workload.spec.selector)),
        },
    }
    return Revision(revision.version, revision.key, json)


def replicas_in(body: Json, name: str) -> int:
    """Gives the replicas that a Scale asks for. Raises BadRequest, Invalid."""
    spec = body.get("spec") or {}
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise BadRequest(f"spec.replicas of the Scale of {name} is a whole number, not {replicas!r}")
    if replicas < 0:
        text = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise Invalid(
            f'Scale.autoscaling "{name}" is invalid: spec.replicas: {text}',
            details={"name": name, "group": "autoscaling", "kind": "Scale"},
            causes=({"reason": "FieldValueInvalid", "message": text, "field": "spec.replicas"},),
        )
    return replicas
