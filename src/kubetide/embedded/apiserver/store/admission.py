"""What happens to an object between the request and the store: priority, defaults, validation.

Source: the Priority admission plugin, defaulting and validation of apiserver v1.36.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubetide.embedded.apiserver.defaults.defaults import defaults
from kubetide.embedded.apiserver.rules.pod_resize import resized
from kubetide.embedded.apiserver.rules.validation import validate
from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind
from kubetide.embedded.apiserver.store.custom_kinds.definitions import definition_faults, with_defaults
from kubetide.embedded.apiserver.store.errors import forbidden, invalid
from kubetide.embedded.apiserver.store.match_label_keys import with_match_label_keys
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.embedded.apiserver.store.store import Store
from kubetide.embedded.apiserver.store.volumes import VOLUME_PROTECTION, with_volume_rules
from kubetide.objects.base import Json
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, PRIORITY_CLASSES, Kind
from kubetide.objects.nulls import without_nulls
from kubetide.objects.policy import PriorityClass
from kubetide.objects.qos import qos_class
from kubetide.ports.errors import BadRequest

SYSTEM_PRIORITY_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}

_EVERY_CLASS = Selection(PRIORITY_CLASSES)

# What a new object's status is. Nodes bring theirs; of the others the controllers write it.
_FIRST_STATUS: dict[str, Json] = {
    "pods": {"phase": "Pending"},
    "namespaces": {"phase": "Active"},
    "persistentvolumes": {"phase": "Pending"},
    "persistentvolumeclaims": {"phase": "Pending"},
    "volumeattachments.storage.k8s.io": {"attached": False},
    "resourceclaims.resource.k8s.io": {},
}

_GATED: Json = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
"""The condition of a new pod with gates. Source: Kubernetes v1.36, registry/core/pod."""


def admitted(store: Store, kind: Kind[Any], json: Json) -> Json:
    """Return a new object that is ``readable`` as it is stored. Raises Forbidden, Invalid."""
    if "status" in kind.subresources and kind.resource != "nodes":
        json = {key: value for key, value in json.items() if key != "status"}
        if kind.resource in _FIRST_STATUS:
            json["status"] = dict(_FIRST_STATUS[kind.resource])
    json = with_priority(store, kind, json)
    if kind.resource == "pods":
        json = with_match_label_keys(_with_service_account(json))
    elif kind.resource == "jobs.batch":
        json = _with_job_selector(json)
    elif kind.resource in VOLUME_PROTECTION:
        json = with_volume_rules(store, kind, json)
    elif kind.resource == "namespaces":
        json = {**json, "spec": {"finalizers": ["kubernetes"], **(json.get("spec") or {})}}
    json = checked(kind, json)
    if kind.resource == "pods":
        json["status"]["qosClass"] = qos_class(json["spec"])
        if json["spec"].get("schedulingGates"):
            gated = {**_GATED, "lastTransitionTime": json["metadata"]["creationTimestamp"]}
            json["status"]["conditions"] = [gated]
    return json


def readable(kind: Kind[Any], json: Json) -> Json:
    """Return JSON that its kind's model can read, at the price of members that are null.

    Raises: BadRequest when a field has another type than the model says.
    """
    try:
        msgspec.convert(json, kind.model)
    except msgspec.ValidationError as error:
        plain: Json = without_nulls(json)
        if plain != json:
            return readable(kind, plain)
        raise BadRequest(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {error}'
        ) from error
    return json


def filled(kind: Kind[Any], json: Json) -> Json:
    """Return an object that is ``readable`` with the defaults filled in, and without what a custom kind does not know."""
    if isinstance(kind, CustomKind):
        return kind.admitted(json)
    return with_defaults(json) if kind is CUSTOM_RESOURCE_DEFINITIONS else defaults(kind, json, reads=True)


def checked(kind: Kind[Any], json: Json, old: Json | None = None, subresource: str = "") -> Json:
    """Return an object that is ``readable`` with the defaults filled in. Raises Invalid when it breaks a rule."""
    json = filled(kind, json)
    if subresource == "resize":
        assert old is not None, "what is resized is there"
        json = resized(json, old)
    faults = validate(kind, json, old, subresource, reads=True)
    if isinstance(kind, CustomKind):
        faults += kind.faults(json, old)
    elif kind is CUSTOM_RESOURCE_DEFINITIONS:
        faults = faults or definition_faults(json, old)
    if faults:
        raise invalid(kind, json["metadata"]["name"], faults)
    return json


def _with_job_selector(job: Json) -> Json:
    """Return a Job that selects just its own pods, by its uid, unless its author selects by hand.

    Source: apiserver v1.36, registry/batch/job, generateSelector.
    """
    spec = job.get("spec") or {}
    if spec.get("manualSelector"):
        return job
    meta = job["metadata"]
    template = spec.get("template") or {}
    given = template.get("metadata") or {}
    labels = {
        **(given.get("labels") or {}),
        "batch.kubernetes.io/controller-uid": meta["uid"],
        "controller-uid": meta["uid"],
        "batch.kubernetes.io/job-name": meta["name"],
        "job-name": meta["name"],
    }
    selector = spec.get("selector") or {}
    matched = {
        **(selector.get("matchLabels") or {}),
        "batch.kubernetes.io/controller-uid": meta["uid"],
    }
    return {
        **job,
        "spec": {
            **spec,
            "selector": {**selector, "matchLabels": matched},
            "template": {**template, "metadata": {**given, "labels": labels}},
        },
    }


def with_priority(store: Store, kind: Kind[Any], pod: Json) -> Json:
    """Return a pod with the priority of its class; anything else as it is. Raises Forbidden."""
    if kind.resource != "pods":
        return pod
    spec = pod.get("spec") or {}
    name = spec.get("priorityClassName") or ""
    if name:
        revision = store.get(PRIORITY_CLASSES, ("", name))
        if revision is None:
            raise forbidden(
                kind, pod["metadata"].get("name") or "", f"no PriorityClass with name {name} was found"
            )
        found = revision.read_as(PriorityClass)
    else:
        found = _global_default(store) or PriorityClass()
        name = found.metadata.name
    policy = found.preemption_policy or "PreemptLowerPriority"
    for field, what, computed in (
        ("priority", "integer value of priority", found.value),
        ("preemptionPolicy", "string value of PreemptionPolicy", policy),
    ):
        said = spec.get(field)
        if said is not None and said != computed:
            raise forbidden(
                kind,
                pod["metadata"].get("name") or "",
                f"the {what} ({said}) must not be provided in pod spec; "
                f"priority admission controller computed {computed} from the given PriorityClass name",
            )
    spec = {**spec, "priority": found.value, "preemptionPolicy": policy}
    if name:
        spec["priorityClassName"] = name
    return {**pod, "spec": spec}


def _with_service_account(pod: Json) -> Json:
    """Return a pod that runs as somebody. Source: the ServiceAccount admission plugin, without tokens."""
    spec = pod["spec"]
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    return {**pod, "spec": {**spec, "serviceAccountName": name, "serviceAccount": name}}


def _global_default(store: Store) -> PriorityClass | None:
    """Return the class for pods that name none: of several defaults the one with the lowest value."""
    classes = [revision.read_as(PriorityClass) for revision in store.select(PRIORITY_CLASSES, _EVERY_CLASS)]
    return min(
        (found for found in classes if found.global_default), key=lambda found: found.value, default=None
    )
