"""The ReplicaSet of a Deployment's present template: how it is recognised, and how it is made."""

from __future__ import annotations

from typing import Any

from kubetide.embedded.controllers.workloads.rollout import HASH_LABEL, REVISION
from kubetide.embedded.controllers.workloads.templates import owner_reference, to_json
from kubetide.objects.base import Json
from kubetide.objects.kinds import DEPLOYMENTS, REPLICA_SETS
from kubetide.objects.meta import LabelSelector
from kubetide.objects.workload import Deployment, ReplicaSet

# Annotations of a Deployment that are its own and not its ReplicaSets'.
_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        "deployment.kubernetes.io/revision-history",
        "deployment.kubernetes.io/desired-replicas",
        "deployment.kubernetes.io/max-replicas",
        "deprecated.deployment.rollback.to",
    }
)


def looks_the_same(deployment: Deployment, rs: ReplicaSet) -> bool:
    """Return whether a ReplicaSet may have been made from this template, seen by the fields in use."""
    template = rs.spec.template
    labels = {k: v for k, v in (template.metadata.labels or {}).items() if k != HASH_LABEL}
    given = deployment.spec.template
    return (
        template.spec == given.spec
        and labels == (given.metadata.labels or {})
        and (template.metadata.annotations or {}) == (given.metadata.annotations or {})
    )


def without_hash(template: Json) -> Json:
    """Return the template without the label ``pod-template-hash``, and without empty parts."""
    metadata = {key: value for key, value in (template.get("metadata") or {}).items() if value}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    return {"metadata": {**metadata, "labels": labels}, "spec": template.get("spec")}


def copied_annotations(deployment: Deployment) -> dict[str, str]:
    """Return the annotations that a ReplicaSet takes over from its Deployment."""
    given = deployment.metadata.annotations or {}
    return {name: value for name, value in given.items() if name not in _NOT_COPIED}


def replica_set_body(deployment: Deployment, template: Json, hash_: str) -> Json:
    """Return the body of the ReplicaSet for a template, its size and annotations still to be filled in."""
    meta = deployment.metadata
    given: dict[str, Any] = template.get("metadata") or {}
    labels = {**(given.get("labels") or {}), HASH_LABEL: hash_}
    selector = to_json(deployment.spec.selector or LabelSelector())
    return {
        "apiVersion": REPLICA_SETS.api_version,
        "kind": REPLICA_SETS.kind,
        "metadata": {
            "name": f"{meta.name}-{hash_}",
            "labels": labels,
            "ownerReferences": [to_json(owner_reference(DEPLOYMENTS, meta))],
        },
        "spec": {
            "selector": {
                **selector,
                "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: hash_},
            },
            "template": {**template, "metadata": {**given, "labels": labels}},
            "minReadySeconds": deployment.spec.min_ready_seconds,
        },
    }
