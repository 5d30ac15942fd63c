"""Which objects the API server refuses, and with which words.

``validate`` is asked about an object after defaulting. It knows the rules that a person meets when
writing manifests; fields that no part of this program reads pass unseen.

Source: Kubernetes v1.36, pkg/apis/*/validation.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kubetide.embedded.apiserver.manifests.structure import misfits
from kubetide.embedded.apiserver.rules.batch import validate_cron_job, validate_job, validate_job_update
from kubetide.embedded.apiserver.rules.config_map import validate_config_map, validate_config_map_update
from kubetide.embedded.apiserver.rules.devices import (
    validate_device_class,
    validate_resource_claim,
    validate_resource_claim_template,
    validate_resource_claim_template_update,
    validate_resource_claim_update,
    validate_resource_slice,
    validate_resource_slice_update,
)
from kubetide.embedded.apiserver.rules.hpa import validate_hpa, validate_target_group
from kubetide.embedded.apiserver.rules.pod import validate_pod, validate_pod_update
from kubetide.embedded.apiserver.rules.pod_resize import validate_pod_resize
from kubetide.embedded.apiserver.rules.statefulset import validate_stateful_set, validate_stateful_set_update
from kubetide.embedded.apiserver.rules.storage import (
    validate_attachment,
    validate_capacity,
    validate_capacity_update,
    validate_claim,
    validate_claim_update,
    validate_class,
    validate_class_update,
    validate_csi_driver,
    validate_csi_driver_update,
    validate_csi_node,
    validate_volume,
    validate_volume_update,
)
from kubetide.embedded.apiserver.rules.webhooks import validate_webhooks
from kubetide.embedded.apiserver.rules.workload import (
    validate_budget,
    validate_pod_template,
    validate_workload,
    validate_workload_update,
)
from kubetide.objects.field_errors import (
    IMMUTABLE,
    FieldError,
    check_labels,
    forbidden,
    invalid,
    read_quantity,
    required,
    too_long,
    unsupported,
)
from kubetide.objects.kinds import CAPACITY_KINDS, ELASTIC_WORKLOADS, TIME_TABLE_KINDS, VERTICAL_KINDS
from kubetide.units.names import (
    dns1123_label_errors,
    dns1123_subdomain_errors,
    label_key_errors,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubetide.objects.base import Json
    from kubetide.objects.kinds import Kind

__all__ = ["FieldError", "validate"]

_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_HIGHEST_USER_PRIORITY = 1_000_000_000
# The annotations of one object together, as upstream limits them.
_ANNOTATION_BYTES = 256 * 1024
# Their objects may have any finalizer, such as finalizer.keda.sh.
_CUSTOM_GROUPS = frozenset(
    {
        "apiextensions.k8s.io",
        *(one.group for one in (*TIME_TABLE_KINDS, *VERTICAL_KINDS, *CAPACITY_KINDS, ELASTIC_WORKLOADS)),
    }
)
_STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def validate(
    kind: Kind[Any], obj: Json, old: Json | None = None, subresource: str = "", *, reads: bool = False
) -> list[FieldError]:
    """Return every rule that the object breaks, none when it is fine.

    Args:
        kind: what the object is.
        obj: the object after defaulting.
        old: for an update, the object that it replaces.
        subresource: what the update was sent to; ``resize`` of a pod has rules of its own.
        reads: whether it is known already that the object reads as its type.
    """
    errors = [
        invalid(misfit.path, misfit.value, f"expected {misfit.expected}, got {misfit.got}")
        for misfit in (() if reads else misfits(kind, obj))
    ]
    if errors:
        return errors  # the rules below rely on the types
    errors = _metadata(kind, obj.get("metadata") or {})
    key = (kind.group, kind.kind)
    if key in _RULES:
        errors += _RULES[key](obj)
    if old is not None:
        errors += _metadata_update(obj.get("metadata") or {}, old.get("metadata") or {})
        if subresource == "resize":
            errors += validate_pod_resize(obj, old)
        elif key in _UPDATE_RULES:
            errors += _UPDATE_RULES[key](obj, old)
    if key == ("autoscaling", "HorizontalPodAutoscaler"):
        errors += validate_target_group(obj, old)
    return errors


def _metadata(kind: Kind[Any], metadata: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    name = metadata.get("name") or ""
    check = _name_rule(kind)
    prefix = metadata.get("generateName") or ""
    if prefix:
        # What is appended makes good what a prefix ends with.
        errors += [
            invalid("metadata.generateName", prefix, text) for text in check(prefix.rstrip("-.") or "x")
        ]
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors += [invalid("metadata.name", name, text) for text in check(name)]
    namespace = metadata.get("namespace") or ""
    if kind.namespaced:
        if not namespace:
            errors.append(required("metadata.namespace"))
        else:
            errors += [
                invalid("metadata.namespace", namespace, text) for text in dns1123_label_errors(namespace)
            ]
    elif namespace:
        errors.append(forbidden("metadata.namespace", "not allowed on this type"))
    errors += check_labels("metadata.labels", metadata.get("labels"))
    annotations: dict[str, str] = metadata.get("annotations") or {}
    for key in annotations:
        # Unlike a label's, the key of an annotation may have capitals in its prefix.
        errors += [invalid("metadata.annotations", key, text) for text in label_key_errors(key.lower())]
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _ANNOTATION_BYTES:
        errors.append(too_long("metadata.annotations", _ANNOTATION_BYTES))
    errors += _owners(metadata.get("ownerReferences") or [])
    names = metadata.get("finalizers") or []
    errors += _finalizers(names)
    if kind.model is not dict and kind.group not in _CUSTOM_GROUPS:
        errors += _unqualified_finalizers(names)
    return errors


def _name_rule(kind: Kind[Any]) -> Callable[[str], tuple[str, ...]]:
    if kind.kind == "Namespace":
        return _namespace_errors
    # Roles are named like system:node, in any characters of a part of a path.
    return _path_part_errors if kind.group == "rbac.authorization.k8s.io" else dns1123_subdomain_errors


def _path_part_errors(name: str) -> tuple[str, ...]:
    if name in {".", ".."}:
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{char}'" for char in "/%" if char in name)


def _namespace_errors(name: str) -> tuple[str, ...]:
    return ("must not contain dots",) if "." in name else dns1123_label_errors(name)


def _finalizers(names: list[str]) -> list[FieldError]:
    """Source: apimachinery v1.36, ValidateFinalizers."""
    at = "metadata.finalizers"
    errors = [invalid(at, name, text) for name in names for text in label_key_errors(name)]
    both = [name for name in names if name in {"orphan", "foregroundDeletion"}]
    if len(set(both)) > 1:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid(at, names, detail))
    return errors


def _unqualified_finalizers(names: list[str]) -> list[FieldError]:
    """The stricter rule of the kinds that are built in."""
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"metadata.finalizers[{index}]", name, detail)
        for index, name in enumerate(names)
        if "/" not in name and name not in _STANDARD_FINALIZERS
    ]


def _owners(owners: list[Json]) -> list[FieldError]:
    errors: list[FieldError] = []
    at = "metadata.ownerReferences"
    for owner in owners:
        version = owner.get("apiVersion") or ""
        if not version or version.count("/") > 1:
            errors.append(invalid(f"{at}.apiVersion", version, "version must not be empty"))
        errors += [
            invalid(f"{at}.{field}", "", "must not be empty")
            for field in ("kind", "name", "uid")
            if not owner.get(field)
        ]
        if (version, owner.get("kind")) == ("v1", "Event"):
            errors.append(invalid(at, owner, "/v1, Kind=Event is disallowed from being an owner"))
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        first, second = controllers[:2]
        detail = (
            f'Only one reference can have Controller set to true. Found "true" in references for '
            f"{first.get('kind')}/{first.get('name')} and {second.get('kind')}/{second.get('name')}"
        )
        errors.append(invalid(at, owners, detail))
    return errors


def _metadata_update(metadata: Json, old: Json) -> list[FieldError]:
    errors = [
        invalid(f"metadata.{name}", metadata.get(name), IMMUTABLE)
        for name in ("name", "namespace", "uid", "creationTimestamp")
        if metadata.get(name) and old.get(name) and metadata[name] != old[name]
    ]
    if old.get("deletionTimestamp"):
        added = [
            name for name in metadata.get("finalizers") or [] if name not in (old.get("finalizers") or [])
        ]
        if added:
            shown = ", ".join(json.dumps(name, ensure_ascii=False) for name in added)
            detail = (
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{shown}}}"
            )
            errors.append(forbidden("metadata.finalizers", detail))
    return errors * 2  # upstream looks at them twice


def _node(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate((obj.get("spec") or {}).get("taints") or ()):
        at = f"metadata.taints[{index}]"  # upstream's path
        key, effect = taint.get("key") or "", taint.get("effect") or ""
        errors += [invalid(f"{at}.key", key, text) for text in label_key_errors(key)]
        if not effect:
            errors.append(required(f"{at}.effect"))
        elif effect not in _TAINT_EFFECTS:
            errors.append(unsupported(f"{at}.effect", effect, _TAINT_EFFECTS, in_order=True))
        elif (key, effect) in seen:
            errors.append(
                FieldError(at, "Duplicate value", taint, "taints must be unique by key and effect pair")
            )
        seen.add((key, effect))
    status = obj.get("status") or {}
    for part in ("capacity", "allocatable"):
        for name, value in (status.get(part) or {}).items():
            read_quantity(f"status.{part}[{name}]", value, errors)
    return errors


def _node_update(obj: Json, old: Json) -> list[FieldError]:
    before = (old.get("spec") or {}).get("providerID")
    if before and (obj.get("spec") or {}).get("providerID") != before:
        return [
            forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid')
        ]
    return []


def _priority_class(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    name = (obj.get("metadata") or {}).get("name") or ""
    system = name in {"system-cluster-critical", "system-node-critical"}
    if name.startswith("system-") and not system:
        detail = "priority class names with 'system-' prefix are reserved for system use only"
        errors.append(forbidden("metadata.name", detail))
    if (obj.get("value") or 0) > _HIGHEST_USER_PRIORITY and not system:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
        errors.append(forbidden("value", detail))
    policy = obj.get("preemptionPolicy")
    if policy and policy not in {"Never", "PreemptLowerPriority"}:
        errors.append(unsupported("preemptionPolicy", policy, ("Never", "PreemptLowerPriority")))
    return errors


def _priority_class_update(obj: Json, old: Json) -> list[FieldError]:
    if (obj.get("value") or 0) != (old.get("value") or 0):
        return [forbidden("value", "may not be changed in an update.")]
    return []


def _lease(obj: Json) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = []
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    transitions = spec.get("leaseTransitions")
    if transitions is not None and transitions < 0:
        errors.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
    return errors


_RULES: dict[tuple[str, str], Callable[[Json], list[FieldError]]] = {
    ("", "Pod"): validate_pod,
    ("", "Node"): _node,
    ("", "ConfigMap"): validate_config_map,
    ("", "PodTemplate"): validate_pod_template,
    ("apps", "Deployment"): lambda obj: validate_workload("Deployment", obj),
    ("apps", "ReplicaSet"): lambda obj: validate_workload("ReplicaSet", obj),
    ("apps", "DaemonSet"): lambda obj: validate_workload("DaemonSet", obj),
    ("apps", "StatefulSet"): validate_stateful_set,
    ("batch", "Job"): validate_job,
    ("batch", "CronJob"): validate_cron_job,
    ("autoscaling", "HorizontalPodAutoscaler"): validate_hpa,
    ("policy", "PodDisruptionBudget"): validate_budget,
    ("coordination.k8s.io", "Lease"): _lease,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): validate_webhooks,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): validate_webhooks,
    ("", "PersistentVolume"): validate_volume,
    ("", "PersistentVolumeClaim"): validate_claim,
    ("storage.k8s.io", "StorageClass"): validate_class,
    ("storage.k8s.io", "CSINode"): validate_csi_node,
    ("storage.k8s.io", "CSIDriver"): validate_csi_driver,
    ("storage.k8s.io", "CSIStorageCapacity"): validate_capacity,
    ("storage.k8s.io", "VolumeAttachment"): validate_attachment,
    ("resource.k8s.io", "ResourceSlice"): validate_resource_slice,
    ("resource.k8s.io", "DeviceClass"): validate_device_class,
    ("resource.k8s.io", "ResourceClaim"): validate_resource_claim,
    ("resource.k8s.io", "ResourceClaimTemplate"): validate_resource_claim_template,
}

_UPDATE_RULES: dict[tuple[str, str], Callable[[Json, Json], list[FieldError]]] = {
    ("", "Pod"): validate_pod_update,
    ("", "Node"): _node_update,
    ("", "ConfigMap"): validate_config_map_update,
    ("apps", "Deployment"): validate_workload_update,
    ("apps", "ReplicaSet"): validate_workload_update,
    ("apps", "DaemonSet"): validate_workload_update,
    ("apps", "StatefulSet"): validate_stateful_set_update,
    ("batch", "Job"): validate_job_update,
    ("scheduling.k8s.io", "PriorityClass"): _priority_class_update,
    ("", "PersistentVolume"): validate_volume_update,
    ("", "PersistentVolumeClaim"): validate_claim_update,
    ("storage.k8s.io", "StorageClass"): validate_class_update,
    ("storage.k8s.io", "CSIDriver"): validate_csi_driver_update,
    ("storage.k8s.io", "CSIStorageCapacity"): validate_capacity_update,
    ("resource.k8s.io", "ResourceSlice"): validate_resource_slice_update,
    ("resource.k8s.io", "ResourceClaim"): validate_resource_claim_update,
    ("resource.k8s.io", "ResourceClaimTemplate"): validate_resource_claim_template_update,
}
