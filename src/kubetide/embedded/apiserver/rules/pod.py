"""Rules of a pod and of a pod template. Source: Kubernetes v1.36, pkg/apis/core/validation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from kubetide.embedded.apiserver.rules.placement import check_placement
from kubetide.embedded.apiserver.rules.resources import check_level, check_resources
from kubetide.objects.field_errors import (
    DUPLICATE,
    FieldError,
    check_choice,
    check_labels,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
    unsupported,
)
from kubetide.units.names import dns1123_label_errors, label_key_errors, port_name_errors
from kubetide.units.patch import same_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubetide.objects.base import Json

_encoder = msgspec.msgpack.Encoder()
_sound: dict[bytes, None] = {}
_MOST_SOUND, _LONGEST_SOUND = 512, 20_000

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_RESIZED = ("cpu", "memory")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")
_PROTOCOLS = ("TCP", "UDP", "SCTP")

# What an update may change; the rest of a pod's spec is fixed.
_FREE_FIELDS = frozenset(
    {"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"}
)
_GATED_FIELDS = frozenset({"nodeSelector", "affinity"})
_FIXED = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def validate_pod(obj: Json) -> list[FieldError]:
    return validate_pod_spec(obj.get("spec") or {}, "spec", level_resources=True)


def validate_pod_spec(
    spec: Json, at: str, *, level_resources: bool = False, claims: Sequence[str] = ()
) -> list[FieldError]:
    """Return what a pod spec breaks; ``at`` is its field path.

    A workload's pods, and the workload whenever it is scaled, come with one spec: what is sound is remembered.

    Args:
        level_resources: whether the pod's own ``resources`` were defaulted, as in a pod and not in
            a template.
        claims: names of claim templates, which each pod has as volumes beside its own.
    """
    text = _text_of((level_resources, claims, spec))
    if text in _sound:
        return []
    errors = _broken(spec, at, level_resources=level_resources, claims=claims)
    if not errors and len(text) <= _LONGEST_SOUND:
        if len(_sound) >= _MOST_SOUND:
            _sound.clear()
        _sound[text] = None
    return errors


def _text_of(value: object) -> bytes:
    try:
        return _encoder.encode(value)
    except (OverflowError, UnicodeEncodeError):
        # JSON has numbers and texts that this format has not.
        return repr(value).encode(errors="backslashreplace")


def _broken(spec: Json, at: str, *, level_resources: bool, claims: Sequence[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    volumes = _volume_names(spec, at, errors).union(claims)
    containers = spec.get("containers") or []
    if not containers:
        errors.append(required(f"{at}.containers"))
    names: set[str] = set()
    host_network = bool(spec.get("hostNetwork"))
    for part in ("containers", "initContainers"):
        # Init containers run one after the other and may share a host port; containers may not.
        taken: set[str] = set()
        for index, container in enumerate(spec.get(part) or ()):
            place = f"{at}.{part}[{index}]"
            errors += _container(container, place, names, volumes)
            errors += _resize_policy(container, f"{place}.resizePolicy", spec.get("restartPolicy"))
            errors += _ports(
                container, place, taken if part == "containers" else set(), host_network=host_network
            )
    errors += check_choice(
        f"{at}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES, missing="", in_order=True
    )
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and deadline < 1:
        errors.append(
            invalid(f"{at}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
        )
    errors += check_labels(f"{at}.nodeSelector", spec.get("nodeSelector"))
    if level_resources and spec.get("resources"):
        found = check_resources(spec["resources"], f"{at}.resources", of_pod=True)
        errors += found or (check_level(spec, f"{at}.resources") if not errors else [])
    if spec.get("overhead"):
        errors += check_resources({"limits": spec["overhead"]}, f"{at}.overhead")
    errors += check_placement(spec, at)
    gates: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        name = gate.get("name") or ""
        errors += [invalid(f"{at}.schedulingGates[{index}]", name, text) for text in label_key_errors(name)]
        if name in gates:
            errors.append(duplicate(f"{at}.schedulingGates[{index}]", name))
        gates.add(name)
    return errors


def _volume_names(spec: Json, at: str, errors: list[FieldError]) -> set[str]:
    names: set[str] = set()
    for index, volume in enumerate(spec.get("volumes") or ()):
        field = f"{at}.volumes[{index}].name"
        name = volume.get("name") or ""
        if not name:
            errors.append(required(field))
            continue
        errors += [invalid(field, name, text) for text in dns1123_label_errors(name)]
        if name in names:
            errors.append(duplicate(field, name))
        names.add(name)
    return names


def _container(container: Json, at: str, names: set[str], volumes: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    name = container.get("name") or ""
    if not name:
        errors.append(required(f"{at}.name"))
    else:
        errors += [invalid(f"{at}.name", name, text) for text in dns1123_label_errors(name)]
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
    image = container.get("image") or ""
    if not image:
        errors.append(required(f"{at}.image"))
    elif image != image.strip():
        errors.append(invalid(f"{at}.image", image, "must not have leading or trailing whitespace"))
    pull = container.get("imagePullPolicy")
    errors += check_choice(f"{at}.imagePullPolicy", pull, ("Always", "IfNotPresent", "Never"))
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        field = f"{at}.volumeMounts[{index}].name"
        if not mount.get("name"):
            errors.append(required(field))
        elif mount["name"] not in volumes:
            errors.append(not_found(field, mount["name"]))
    return errors + check_resources(container.get("resources") or {}, f"{at}.resources")


def _resize_policy(container: Json, at: str, pod_restarts: str | None) -> list[FieldError]:
    errors: list[FieldError] = []
    named: set[str] = set()
    for index, policy in enumerate(container.get("resizePolicy") or ()):
        name, restart = policy.get("resourceName") or "", policy.get("restartPolicy") or ""
        if name in named:
            errors.append(duplicate(f"{at}[{index}]", name))
        named.add(name)
        for value, known in ((name, _RESIZED), (restart, _RESIZE_POLICIES)):
            if not value:
                errors.append(required(at))
            elif value not in known:
                errors.append(unsupported(at, value, known))
        if pod_restarts == "Never" and restart and restart != "NotRequired":
            errors.append(invalid(at, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
    return errors


def _ports(container: Json, at: str, taken: set[str], *, host_network: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(container.get("ports") or ()):
        place = f"{at}.ports[{index}]"
        name = port.get("name") or ""
        if name:
            errors += [invalid(f"{place}.name", name, text) for text in port_name_errors(name)]
            if name in names:
                errors.append(duplicate(f"{place}.name", name))
            names.add(name)
        inside, outside = port.get("containerPort") or 0, port.get("hostPort") or 0
        if not inside:
            errors.append(required(f"{place}.containerPort"))
        elif not 0 < inside < 65536:
            errors.append(invalid(f"{place}.containerPort", inside, "must be between 1 and 65535, inclusive"))
        if outside and not 0 < outside < 65536:
            errors.append(invalid(f"{place}.hostPort", outside, "must be between 1 and 65535, inclusive"))
        protocol = port.get("protocol") or "TCP"
        if protocol not in _PROTOCOLS:
            errors.append(unsupported(f"{place}.protocol", protocol, _PROTOCOLS))
        if outside and host_network and outside != inside:
            errors.append(
                invalid(f"{place}.hostPort", outside, "must match `containerPort` when `hostNetwork` is true")
            )
        if outside:
            key = f"{protocol}/{port.get('hostIP') or ''}/{outside}"
            if key in taken:
                errors.append(FieldError(f"{place}.hostPort", DUPLICATE, key))
            taken.add(key)
    return errors


# ── Updates ─────────────────────────────────────────────────────────────────────────────────────


def validate_pod_update(obj: Json, old: Json) -> list[FieldError]:
    """Return what a change of a pod breaks; only the ``binding`` subresource sets ``nodeName``."""
    new_spec, old_spec = obj.get("spec") or {}, old.get("spec") or {}
    errors: list[FieldError] = []
    for part in ("containers", "initContainers"):
        if len(new_spec.get(part) or ()) != len(old_spec.get(part) or ()):
            return [forbidden(f"spec.{part}", "pod updates may not add or remove containers")]
    free = _FREE_FIELDS | _GATED_FIELDS if old_spec.get("schedulingGates") else _FREE_FIELDS
    if not same_json(_fixed_part(new_spec, free), _fixed_part(old_spec, free)):
        errors.append(forbidden("spec", _FIXED))
    new = new_spec.get("tolerations") or []
    if any(toleration not in new for toleration in old_spec.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        errors.append(forbidden("spec.tolerations", detail))
    before = [gate.get("name") for gate in old_spec.get("schedulingGates") or ()]
    errors += [
        forbidden(
            "spec.schedulingGates", "only deletion is allowed, but found new scheduling gate '" + name + "'"
        )
        for name in (gate.get("name") or "" for gate in new_spec.get("schedulingGates") or ())
        if name not in before
    ]
    grace, grace_before = (
        new_spec.get("terminationGracePeriodSeconds"),
        old_spec.get("terminationGracePeriodSeconds"),
    )
    if grace != grace_before and not (grace == 1 and (grace_before or 0) < 0):
        errors.append(forbidden("spec", _FIXED))
    return errors


def _fixed_part(spec: Json, free: frozenset[str]) -> dict[str, Any]:
    """Return the spec without what an update may change, and without what is empty."""
    fixed = {
        name: value for name, value in spec.items() if name not in free and value not in (None, "", [], {})
    }
    for part in ("containers", "initContainers"):
        if part in fixed:
            fixed[part] = [
                {name: value for name, value in container.items() if name != "image"}
                for container in fixed[part]
            ]
    return fixed
