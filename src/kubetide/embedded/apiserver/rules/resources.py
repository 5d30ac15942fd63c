"""Rules of requests and limits. Source: Kubernetes v1.36, pkg/apis/core/validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubetide.objects.field_errors import (
    FieldError,
    forbidden,
    invalid,
    read_quantity,
    required,
    unsupported,
)
from kubetide.objects.pod_requests import container_requests
from kubetide.units.names import label_key_errors
from kubetide.units.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_CONTAINER_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_POD_RESOURCES = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"
_STANDARD_RESOURCES = frozenset(
    [f"{kind}{name}" for kind in ("", "requests.", "limits.") for name in _CONTAINER_RESOURCES]
    + [
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "storage",
    ]
    + ["requests.storage", "services.nodeports", "services.loadbalancers"]
)


def check_resources(resources: Json, at: str, *, of_pod: bool = False) -> list[FieldError]:
    """Check names and amounts, and that no request exceeds its limit.

    Args:
        resources: ``requests`` and ``limits``.
        at: the field path.
        of_pod: whether these are the pod's own, not a container's.
    """
    errors: list[FieldError] = []
    limits = _amounts(resources.get("limits"), f"{at}.limits", errors, of_pod=of_pod)
    requests = _amounts(resources.get("requests"), f"{at}.requests", errors, of_pod=of_pod)
    for name, asked in requests.items():
        limit = limits.get(name)
        overcommit = "/" not in name and not name.startswith(_HUGE_PAGES)
        if limit is None:
            if not overcommit and name not in (resources.get("limits") or {}):
                errors.append(required(f"{at}.limits", "Limit must be set for non overcommitable resources"))
        elif not overcommit and asked != limit:
            errors.append(invalid(f"{at}.requests", str(asked), f"must be equal to {name} limit of {limit}"))
        elif asked > limit:
            detail = f"must be less than or equal to {name} limit of {limit}"
            errors.append(invalid(f"{at}.requests", str(asked), detail))
    names = {*(resources.get("limits") or ()), *(resources.get("requests") or ())}
    if any(name.startswith(_HUGE_PAGES) for name in names) and not names & {"cpu", "memory"}:
        errors.append(forbidden(at, "HugePages require cpu or memory"))
    return errors


def check_level(spec: Json, at: str) -> list[FieldError]:
    """Check that the resources of a pod, which are valid, cover those of its containers."""
    level = spec["resources"]
    errors: list[FieldError] = []
    inside = container_requests(spec)
    for name, text in (level.get("requests") or {}).items():
        needed, asked = inside.get(name), Quantity.parse(text)
        if needed is not None and needed > asked:
            detail = f"must be greater than or equal to aggregate container requests of {needed}"
            errors.append(invalid(f"{at}.requests[{name}]", str(asked), detail))
    limits = {name: Quantity.parse(text) for name, text in (level.get("limits") or {}).items()}
    for index, container in enumerate(spec.get("containers") or ()):
        for name, text in ((container.get("resources") or {}).get("limits") or {}).items():
            limit = Quantity.parse(text)
            if name in limits and limit > limits[name]:
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                errors.append(invalid(f"{at}.containers[{index}][{name}].limits", str(limit), detail))
    return errors


def _amounts(values: Json | None, at: str, errors: list[FieldError], *, of_pod: bool) -> dict[str, Quantity]:
    amounts: dict[str, Quantity] = {}
    for name, value in (values or {}).items():
        field = f"{at}[{name}]"
        errors += _name(name, field, of_pod=of_pod)
        quantity = read_quantity(field, value, errors)
        if quantity is None:
            continue
        amounts[name] = quantity
        if name.startswith(_HUGE_PAGES) and not _is_whole_pages(name, quantity):
            detail = f"{quantity} is not positive integer multiple of {name}"
            errors.append(invalid(field, str(quantity), detail))
        if ("/" in name or name.startswith(_HUGE_PAGES)) and quantity.exact_milli() % 1000:
            errors.append(invalid(field, str(quantity), "must be an integer"))
    return amounts


def _is_whole_pages(name: str, quantity: Quantity) -> bool:
    try:
        size = Quantity.parse(name.removeprefix(_HUGE_PAGES))
    except QuantityError:
        return False
    return size.sign() > 0 and size.exact_milli() % 1000 == 0 and quantity.value() % size.value() == 0


def container_resource_errors(name: str, field: str) -> list[FieldError]:
    """Return what is wrong with the name of a resource that a container has."""
    return _name(name, field, of_pod=False)


def _name(name: str, field: str, *, of_pod: bool) -> list[FieldError]:
    errors = [invalid(field, name, text) for text in label_key_errors(name)]
    if not errors and "/" not in name and not _is_standard(name):
        errors.append(invalid(field, name, "must be a standard resource type or fully qualified"))
    if of_pod:
        if not errors and name not in _POD_RESOURCES and not name.startswith(_HUGE_PAGES):
            errors.append(unsupported(field, name, sorted((*_POD_RESOURCES, _HUGE_PAGES))))
    elif "/" in name:
        quota = f"requests.{name}"
        if "kubernetes.io/" not in name and (name.startswith("requests.") or label_key_errors(quota)):
            errors.append(invalid(field, name, "doesn't follow extended resource name standard"))
    elif name not in _CONTAINER_RESOURCES and not name.startswith(_HUGE_PAGES):
        errors.append(invalid(field, name, "must be a standard resource for containers"))
    return errors


def _is_standard(name: str) -> bool:
    """Return whether Kubernetes knows the resource at all, if only in quotas."""
    return name in _STANDARD_RESOURCES or name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}"))
