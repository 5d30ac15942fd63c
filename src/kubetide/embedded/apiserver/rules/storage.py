"""Which volumes, claims, storage classes and CSI objects the API server refuses.

Of the sources of a volume the commonest are looked into; of the others only that there is one.

Source: Kubernetes v1.36, pkg/apis/core/validation and pkg/apis/storage/validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubetide.embedded.apiserver.rules.placement import check_node_terms
from kubetide.objects.field_errors import (
    IMMUTABLE,
    FieldError,
    check_choice,
    check_not_negative,
    check_selector,
    duplicate,
    forbidden,
    invalid,
    read_quantity,
    required,
    too_long,
    unsupported,
)
from kubetide.units.names import dns1123_subdomain_errors, label_key_errors
from kubetide.units.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES = ("Block", "Filesystem")
_BINDING_MODES = ("Immediate", "WaitForFirstConsumer")
# In the order in which upstream looks for them: the first one is checked, others are too many.
_SOURCES = (
    *(
        "hostPath",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "flocker",
        "nfs",
        "rbd",
        "quobyte",
    ),
    *("cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk"),
    *("portworxVolume", "azureDisk", "scaleIO", "local", "storageos", "csi"),
)
_NEEDED_IN_SOURCE = {"hostPath": ("path",), "local": ("path",), "nfs": ("server", "path")}
_LONGEST_DRIVER = 63
_LONGEST_NODE_ID = 256


# ── Volumes ─────────────────────────────────────────────────────────────────────────────────────


def validate_volume(obj: Json) -> list[FieldError]:
    spec, at = obj.get("spec") or {}, "spec"
    errors = _access_modes(spec, at, "")
    capacity = spec.get("capacity") or {}
    if not capacity:
        errors.append(required(f"{at}.capacity"))
    if list(capacity) != ["storage"]:
        errors.append(unsupported(f"{at}.capacity", capacity, ("storage",)))
    for name, value in capacity.items():
        errors += _positive(f"{at}.capacity[{name}]", value, basic=True)
    policies = ("Delete", "Recycle", "Retain")
    errors += check_choice(
        f"{at}.persistentVolumeReclaimPolicy", spec.get("persistentVolumeReclaimPolicy"), policies
    )
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        if affinity.get("required") is None:
            errors.append(required(f"{at}.nodeAffinity.required", "must specify required node constraints"))
        else:
            errors += check_node_terms(affinity["required"], f"{at}.nodeAffinity.required")
    errors += _source(spec, at)
    return errors + _class_and_mode(spec, at)


def validate_volume_update(obj: Json, old: Json) -> list[FieldError]:
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    errors = []
    if {name: new.get(name) for name in _SOURCES} != {name: was.get(name) for name in _SOURCES}:
        detail = "spec.persistentvolumesource is immutable after creation"
        errors.append(forbidden("spec.persistentvolumesource", detail))
    if new.get("volumeMode") != was.get("volumeMode"):
        errors.append(invalid("volumeMode", new.get("volumeMode"), IMMUTABLE))
    return errors


def _source(spec: Json, at: str) -> list[FieldError]:
    given = [name for name in _SOURCES if spec.get(name) is not None]
    if not given:
        return [required(at, "must specify a volume type")]
    errors: list[FieldError] = [
        forbidden(f"{at}.{name}", "may not specify more than 1 volume type") for name in given[1:]
    ]
    name = given[0]
    source = spec[name]
    if not isinstance(source, dict):
        return [*errors, invalid(f"{at}.{name}", source, "expected an object")]
    errors += [
        required(f"{at}.{name}.{field}") for field in _NEEDED_IN_SOURCE.get(name, ()) if not source.get(field)
    ]
    if name == "nfs":
        path = source.get("path") or ""
        if not (isinstance(path, str) and path.startswith("/")):
            errors.append(invalid(f"{at}.nfs.path", path, "must be an absolute path"))
    if name == "csi":
        errors += _driver_name(f"{at}.csi.driver", source.get("driver") or "")
        if not source.get("volumeHandle"):
            errors.append(required(f"{at}.csi.volumeHandle"))
    if name == "local" and spec.get("nodeAffinity") is None:
        errors.append(required(f"{at}.nodeAffinity", "Local volume requires node affinity"))
    return errors


# ── Claims ──────────────────────────────────────────────────────────────────────────────────────


def validate_claim(obj: Json) -> list[FieldError]:
    return check_claim_spec(obj.get("spec") or {}, "spec")


def check_claim_spec(spec: Json, at: str) -> list[FieldError]:
    """Check what a claim asks for, also where a pod or a StatefulSet holds a template of it."""
    detail = "at least 1 access mode is required"
    errors = [required(f"{at}.accessModes", detail)] if not spec.get("accessModes") else []
    errors += check_selector(f"{at}.selector", spec.get("selector"))
    if spec.get("accessModes"):
        errors += _access_modes(spec, at, detail)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    field = f"{at}.resources[storage]"
    errors += [required(field)] if size is None else _positive(field, size)
    return errors + _class_and_mode(spec, at)


def validate_claim_update(obj: Json, old: Json) -> list[FieldError]:
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    errors = []
    free = {"resources", "volumeAttributesClassName"}
    bound = (obj.get("status") or {}).get("phase") == "Bound"
    if not was.get("volumeName"):
        free.add("volumeName")
    if was.get("storageClassName") is None:
        free.add("storageClassName")  # a class that became the default later may be filled in
    fixed = [{key: value for key, value in one.items() if key not in free} for one in (new, was)]
    sizes = [(one.get("resources") or {}).get("requests") for one in (new, was)]
    if fixed[0] != fixed[1] or (sizes[0] != sizes[1] and not bound):
        detail = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
            "bound claims"
        )
        errors.append(forbidden("spec", detail))
    if new.get("volumeMode") != was.get("volumeMode"):
        errors.append(invalid("volumeMode", new.get("volumeMode"), IMMUTABLE))
    return errors


# ── Storage classes and CSI ─────────────────────────────────────────────────────────────────────


def validate_class(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    provisioner = obj.get("provisioner") or ""
    if not provisioner:
        errors.append(required("provisioner"))
    else:
        errors += [
            invalid("provisioner", provisioner.lower(), text)
            for text in label_key_errors(provisioner.lower())
        ]
    errors += check_choice("reclaimPolicy", obj.get("reclaimPolicy"), ("Delete", "Retain"))
    mode = obj.get("volumeBindingMode")
    if mode not in _BINDING_MODES:
        errors.append(unsupported("volumeBindingMode", mode, _BINDING_MODES))
    for index, term in enumerate(obj.get("allowedTopologies") or ()):
        seen: set[str] = set()
        for place, one in enumerate(term.get("matchLabelExpressions") or ()):
            errors += _topology(one, f"allowedTopologies[{index}].matchLabelExpressions[{place}]", seen)
    return errors


def validate_class_update(obj: Json, old: Json) -> list[FieldError]:
    fields = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
    return [
        invalid(name, obj.get(name), IMMUTABLE)
        for name in fields
        if (obj.get(name) or None) != (old.get(name) or None)
    ]


def validate_csi_node(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
        at = f"spec.drivers[{index}]"
        name, node_id = driver.get("name") or "", driver.get("nodeID") or ""
        errors += _driver_name(f"{at}.name", name)
        if not node_id:
            errors.append(required(f"{at}.nodeID"))
        elif len(node_id) > _LONGEST_NODE_ID:
            detail = f"must be {_LONGEST_NODE_ID} characters or less"
            errors.append(invalid(f"{at}.nodeID", node_id, detail))
        count = (driver.get("allocatable") or {}).get("count")
        errors += check_not_negative(f"{at}.allocatable.count", count)
        if name in seen:
            errors.append(duplicate(f"{at}.name", name))
        seen.add(name)
        keys: set[str] = set()
        for key in driver.get("topologyKeys") or ():
            if key in keys:
                errors.append(duplicate(at, key))
            keys.add(key)
            errors += [invalid(at, key, text) for text in label_key_errors(key)]
    return errors


def validate_csi_driver(obj: Json) -> list[FieldError]:
    spec = obj.get("spec") or {}
    policies = ("File", "None", "ReadWriteOnceWithFSType")
    errors = check_choice("spec.fsGroupPolicy", spec.get("fsGroupPolicy"), policies)
    for mode in spec.get("volumeLifecycleModes") or ():
        modes = ("Persistent", "Ephemeral")
        errors += check_choice("spec.volumeLifecycleModes", mode, modes, in_order=True)
    return errors


def validate_csi_driver_update(obj: Json, old: Json) -> list[FieldError]:
    new, was = obj.get("spec") or {}, old.get("spec") or {}
    shown = (
        ("attachRequired", "spec.attachedRequired"),
        ("volumeLifecycleModes", "spec.volumeLifecycleModes"),
    )
    return [
        invalid(field, new.get(name), IMMUTABLE) for name, field in shown if new.get(name) != was.get(name)
    ]


def validate_capacity(obj: Json) -> list[FieldError]:
    errors = check_selector("nodeTopology", obj.get("nodeTopology"))
    name = obj.get("storageClassName") or ""
    errors += [invalid("storageClassName", name, text) for text in dns1123_subdomain_errors(name)]
    if obj.get("capacity") is not None:
        read_quantity("capacity", obj["capacity"], errors)
    return errors


def validate_capacity_update(obj: Json, old: Json) -> list[FieldError]:
    fields = ("nodeTopology", "storageClassName")
    return [invalid(name, obj.get(name), IMMUTABLE) for name in fields if obj.get(name) != old.get(name)]


def validate_attachment(obj: Json) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = _driver_name("spec.attacher", spec.get("attacher") or "")
    source = spec.get("source") or {}
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    volume, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
    if volume is None and inline is None:
        errors.append(required("spec.source", detail))
    elif volume is not None and inline is not None:
        errors.append(forbidden("spec.source", detail))
    elif volume is not None:
        field = "spec.source.persistentVolumeName"
        if not volume:
            errors.append(required(field, "must specify non empty persistentVolumeName"))
        errors += [invalid(field, volume, text) for text in dns1123_subdomain_errors(volume)]
    node = spec.get("nodeName") or ""
    return errors + [invalid("spec.nodeName", node, text) for text in dns1123_subdomain_errors(node)]


# ── Shared ──────────────────────────────────────────────────────────────────────────────────────


def _access_modes(spec: Json, at: str, missing: str) -> list[FieldError]:
    field, modes = f"{at}.accessModes", spec.get("accessModes") or []
    if not modes:
        return [required(field, missing)]
    errors = [unsupported(field, mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    others = [mode for mode in modes if mode in _ACCESS_MODES and mode != "ReadWriteOncePod"]
    if "ReadWriteOncePod" in modes and others:
        errors.append(forbidden(field, "may not use ReadWriteOncePod with other access modes"))
    return errors


def _class_and_mode(spec: Json, at: str) -> list[FieldError]:
    name = spec.get("storageClassName") or ""
    field = f"{at}.storageClassName"
    errors = [invalid(field, name, text) for text in dns1123_subdomain_errors(name)] if name else []
    return errors + check_choice(f"{at}.volumeMode", spec.get("volumeMode"), _VOLUME_MODES)


def _positive(field: str, value: Any, *, basic: bool = False) -> list[FieldError]:
    """Check an amount of storage; as a ``basic`` resource a negative one is wrong in another way too."""
    try:
        quantity = Quantity.parse(value)
    except QuantityError:
        return [invalid(field, value, "must be a valid resource quantity")]
    errors = []
    if basic and quantity.sign() < 0:
        errors.append(invalid(field, quantity.value(), "must be a valid resource quantity"))
    if quantity.sign() <= 0:
        errors.append(invalid(field, str(quantity), "must be greater than zero"))
    return errors


def _driver_name(field: str, name: str) -> list[FieldError]:
    if not name:
        return [required(field)]
    errors = [too_long(field, _LONGEST_DRIVER)] if len(name) > _LONGEST_DRIVER else []
    return errors + [invalid(field, name, text) for text in dns1123_subdomain_errors(name.lower())]


def _topology(one: Json, at: str, seen: set[str]) -> list[FieldError]:
    values, key = one.get("values") or [], one.get("key") or ""
    errors = [] if values else [required(f"{at}.values")]
    errors += [
        duplicate(f"{at}.values[{index}]", value)
        for index, value in enumerate(values)
        if value in values[:index]
    ]
    errors += [invalid(f"{at}.key", key, text) for text in label_key_errors(key)]
    if key in seen:
        errors.append(duplicate(f"{at}.key", key))
    seen.add(key)
    return errors
