"""The ``scale`` subresource: one shape for every workload that has a replica count."""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind, value_at, with_value_at
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.objects.meta import LabelSelector
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import Deployment, ReplicaSet, ReplicationController, Scale
from kubetide.ports.errors import BadRequest, InternalError, Invalid
from kubetide.units.selectors import Selector, SelectorError

SCALE = Kind("autoscaling", "v1", "Scale", "scales", Scale)
"""The type of the answer; it is stored nowhere."""


def scale_of(kind: Kind[Any], revision: Revision) -> Revision:
    """Return the Scale of a built-in workload that has one, at the version of that object."""
    if isinstance(kind, CustomKind):
        return _scale_of_custom(kind, revision)
    workload: Deployment | ReplicaSet | StatefulSet | ReplicationController = revision.read_as(kind.model)
    if isinstance(workload, ReplicationController):
        selector: LabelSelector | None = LabelSelector(match_labels=workload.spec.selector)
    else:
        selector = workload.spec.selector
    try:
        shown = str(Selector.from_object(selector))
    except SelectorError as error:  # of an object that was not checked when it was stored
        raise InternalError(f"spec.selector of {kind.resource} {revision.key[1]}: {error}") from error
    return _scale(
        revision,
        workload.spec.replicas or 0,
        workload.status.replicas,
        shown,
    )


def _scale_of_custom(kind: CustomKind, revision: Revision) -> Revision:
    paths = kind.scale
    assert paths is not None, "without paths there is no such subresource"
    replicas = value_at(revision.json, paths.spec_replicas_path)
    if not isinstance(replicas, int):
        raise InternalError(f'the spec replicas field "{paths.spec_replicas_path}" does not exist')
    status = value_at(revision.json, paths.status_replicas_path)
    selector = value_at(revision.json, paths.label_selector_path) if paths.label_selector_path else None
    return _scale(
        revision,
        replicas,
        status if isinstance(status, int) else 0,
        selector if isinstance(selector, str) else "",
    )


def with_replicas(kind: Kind[Any], json: Json, replicas: int) -> Json:
    """Return the object with that many replicas asked for."""
    path = kind.scale.spec_replicas_path if isinstance(kind, CustomKind) and kind.scale else ".spec.replicas"
    return with_value_at(json, path, replicas)


def _scale(revision: Revision, replicas: int, running: int, selector: str) -> Revision:
    meta = revision.metadata
    fields = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    json: Json = {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {field: meta[field] for field in fields if field in meta},
        "spec": {"replicas": replicas},
        "status": {
            "replicas": running,
            "selector": selector,
        },
    }
    return Revision(revision.version, revision.key, json)


def replicas_in(body: Json, name: str) -> int:
    """Return the replicas that a Scale asks for. Raises BadRequest, Invalid."""
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
