"""Which claims for devices, device classes and slices the API server refuses.

Not looked into: ``config`` of claims and classes, the policies of shared capacity, network data.
Source: Kubernetes v1.36, pkg/apis/resource/validation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kubetide.embedded.apiserver.rules.placement import check_node_terms
from kubetide.objects.device_expressions import compile_problem
from kubetide.objects.field_errors import (
    IMMUTABLE,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    too_many,
    unsupported,
)
from kubetide.units.names import dns1123_label_errors, dns1123_subdomain_errors, valid_label_key
from kubetide.units.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kubetide.objects.base import Json

_MOST_REQUESTS = 32
_MOST_ALTERNATIVES = 8
_MOST_USERS = 256
_MOST_DEVICES, _MOST_DEVICES_WITH_TAINTS_OR_COUNTERS = 128, 64
_MOST_ATTRIBUTES = 32
_LONGEST_EXPRESSION = 10 * 1024
_LONGEST_DRIVER = 63
_LONGEST_POOL = 253
_LONGEST_TEXT = 64

_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_ONE_DEVICE_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NO_DEVICE_PLACE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
    "`perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_SUBREQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ATTRIBUTE_VALUES = ("int", "bool", "string", "version")
_SEMVER = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


# ── Claims ──────────────────────────────────────────────────────────────────────────────────────


def validate_resource_claim(obj: Json) -> list[FieldError]:
    errors = _claim_spec(obj.get("spec") or {}, "spec")
    return errors + _claim_status(obj, "status")


def validate_resource_claim_update(obj: Json, old: Json) -> list[FieldError]:
    errors = _immutable("spec", obj.get("spec"), old.get("spec"))
    now, was = obj.get("status") or {}, old.get("status") or {}
    if now.get("allocation") is not None and was.get("allocation") is not None:
        errors += _immutable("status.allocation", now["allocation"], was["allocation"])
    deleted = (obj.get("metadata") or {}).get("deletionTimestamp")
    if deleted and any(one not in (was.get("reservedFor") or ()) for one in now.get("reservedFor") or ()):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.append(forbidden("status.reservedFor", detail))
    return errors


def validate_resource_claim_template(obj: Json) -> list[FieldError]:
    return _claim_spec((obj.get("spec") or {}).get("spec") or {}, "spec.spec")


def validate_resource_claim_template_update(obj: Json, old: Json) -> list[FieldError]:
    return _immutable("spec", obj.get("spec"), old.get("spec"))


def _claim_spec(spec: Json, at: str) -> list[FieldError]:
    devices, at = spec.get("devices") or {}, f"{at}.devices"
    requests = devices.get("requests") or []
    constraints = devices.get("constraints") or []
    errors = _few(f"{at}.requests", requests, _MOST_REQUESTS)
    if not errors:
        for number, request in enumerate(requests):
            errors += _request(request, f"{at}.requests[{number}]")
        errors += _once(f"{at}.requests", (one.get("name") or "" for one in requests))
    many = _few(f"{at}.constraints", constraints, _MOST_REQUESTS)
    if many:
        return errors + many
    for number, constraint in enumerate(constraints):
        errors += _constraint(constraint, f"{at}.constraints[{number}]", _request_names(requests))
    return errors


def _request_names(requests: list[Json]) -> set[str]:
    names = {one.get("name") or "" for one in requests}
    for one in requests:
        names |= {f"{one.get('name')}/{sub.get('name')}" for sub in one.get("firstAvailable") or ()}
    return names


def _request(request: Json, at: str) -> list[FieldError]:
    errors = _label(f"{at}.name", request.get("name") or "")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not alternatives:
        errors.append(required(at, _ONE_KIND))
    elif exactly is not None and alternatives:
        errors.append(invalid(at, None, f"{_ONE_KIND}, but multiple fields are set"))
    elif exactly is not None:
        errors += _asked(exactly, f"{at}.exactly")
    else:
        at = f"{at}.firstAvailable"
        many = _few(at, alternatives, _MOST_ALTERNATIVES)
        if many:
            return errors + many
        for number, one in enumerate(alternatives):
            errors += _label(f"{at}[{number}].name", one.get("name") or "")
            errors += _asked(one, f"{at}[{number}]")
        errors += _once(at, (one.get("name") or "" for one in alternatives))
    return errors


def _asked(request: Json, at: str) -> list[FieldError]:
    name = request.get("deviceClassName") or ""
    field = f"{at}.deviceClassName"
    errors = [invalid(field, name, text) for text in dns1123_subdomain_errors(name)] if name else []
    if not name:
        errors.append(required(field))
    errors += _selectors(request, at)
    mode, count = request.get("allocationMode") or "", request.get("count") or 0
    if mode == "All":
        if count:
            detail = "must not be specified when allocationMode is 'All'"
            errors.append(invalid(f"{at}.count", count, detail))
    elif mode == "ExactCount":
        if count <= 0:
            errors.append(invalid(f"{at}.count", count, "must be greater than zero"))
    else:
        modes = ("All", "ExactCount")
        errors.append(unsupported(f"{at}.allocationMode", mode, modes))
    return errors


def _constraint(constraint: Json, at: str, names: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for number, name in enumerate(constraint.get("requests") or ()):
        if name not in names:
            errors.append(invalid(f"{at}.requests[{number}]", name, _SUBREQUEST))
    for part in ("matchAttribute", "distinctAttribute"):
        name = constraint.get(part)
        if name is not None:
            if "/" not in name:
                detail = "a fully qualified name must be a domain and a name separated by a slash"
                errors.append(invalid(f"{at}.{part}", name, detail))
            return errors
    detail = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    return [*errors, required(at, detail)]


def _claim_status(obj: Json, at: str) -> list[FieldError]:
    status = obj.get("status") or {}
    users = status.get("reservedFor") or []
    errors = _few(f"{at}.reservedFor", users, _MOST_USERS)
    if not errors:
        for number, user in enumerate(users):
            errors += [
                required(f"{at}.reservedFor[{number}].{part}")
                for part in ("resource", "name", "uid")
                if not user.get(part)
            ]
        errors += _once(f"{at}.reservedFor", (one.get("uid") or "" for one in users))
    allocation = status.get("allocation")
    if users and allocation is None:
        detail = "may not be specified when `allocated` is not set"
        errors.append(forbidden(f"{at}.reservedFor", detail))
    if allocation is None:
        return errors
    names = _request_names(((obj.get("spec") or {}).get("devices") or {}).get("requests") or [])
    results = (allocation.get("devices") or {}).get("results") or []
    at = f"{at}.allocation"
    errors += _few(f"{at}.devices.results", results, _MOST_REQUESTS)
    for number, result in enumerate(results[:_MOST_REQUESTS]):
        place = f"{at}.devices.results[{number}]"
        if (result.get("request") or "") not in names:
            errors.append(invalid(f"{place}.request", result.get("request") or "", _SUBREQUEST))
        errors += _driver(f"{place}.driver", result.get("driver") or "")
        errors += _pool(f"{place}.pool", result.get("pool") or "")
        errors += _label(f"{place}.device", result.get("device") or "")
    if allocation.get("nodeSelector") is not None:
        errors += check_node_terms(allocation["nodeSelector"], f"{at}.nodeSelector")
    return errors


# ── Classes ─────────────────────────────────────────────────────────────────────────────────────


def validate_device_class(obj: Json) -> list[FieldError]:
    spec = obj.get("spec") or {}
    errors = _selectors(spec, "spec")
    name = spec.get("extendedResourceName")
    if name is not None and not _is_extended(name):
        errors.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return errors


def _is_extended(name: str) -> bool:
    if "/" not in name or "kubernetes.io/" in name or name.startswith("requests."):
        return False
    return valid_label_key(f"requests.{name}")


def _selectors(owner: Json, at: str) -> list[FieldError]:
    selectors, at = owner.get("selectors") or [], f"{at}.selectors"
    errors = _few(at, selectors, _MOST_REQUESTS)
    if errors:
        return errors
    for number, selector in enumerate(selectors):
        field = f"{at}[{number}].cel"
        if selector.get("cel") is None:
            errors.append(required(field))
            continue
        expression = selector["cel"].get("expression") or ""
        field = f"{field}.expression"
        if len(expression.encode()) > _LONGEST_EXPRESSION:
            errors.append(too_long(field, _LONGEST_EXPRESSION))
        elif problem := compile_problem(expression):
            errors.append(invalid(field, expression, problem))
    return errors


# ── Slices ──────────────────────────────────────────────────────────────────────────────────────


def validate_resource_slice(obj: Json) -> list[FieldError]:
    spec, at = obj.get("spec") or {}, "spec"
    pool = spec.get("pool") or {}
    errors = _driver(f"{at}.driver", spec.get("driver") or "")
    errors += _pool(f"{at}.pool.name", pool.get("name") or "")
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if count <= 0:
        errors.append(invalid(f"{at}.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        detail = "must be greater than or equal to zero"
        errors.append(invalid(f"{at}.pool.generation", generation, detail))
    errors += _place(spec, at)
    devices = spec.get("devices")
    if spec.get("sharedCounters") is not None and devices is not None:
        errors.append(invalid(at, "", "only one of `sharedCounters` or `devices` is allowed"))
    most = _MOST_DEVICES
    if any(one.get("taints") or one.get("consumesCounters") for one in devices or ()):
        most = _MOST_DEVICES_WITH_TAINTS_OR_COUNTERS
    many = _few(f"{at}.devices", devices or [], most)
    if many:
        return errors + many
    for number, device in enumerate(devices or ()):
        apart = bool(spec.get("perDeviceNodeSelection"))
        errors += _device(device, f"{at}.devices[{number}]", apart=apart)
    return errors + _once(f"{at}.devices", (one.get("name") or "" for one in devices or ()))


def validate_resource_slice_update(obj: Json, old: Json) -> list[FieldError]:
    now, was = obj.get("spec") or {}, old.get("spec") or {}
    errors = _immutable(
        "spec.pool.name", (now.get("pool") or {}).get("name"), (was.get("pool") or {}).get("name")
    )
    errors += _immutable("spec.driver", now.get("driver"), was.get("driver"))
    return errors + _immutable("spec.nodeName", now.get("nodeName"), was.get("nodeName"))


def _place(spec: Json, at: str) -> list[FieldError]:
    """Check that one thing says which nodes the slice is for."""
    errors: list[FieldError] = []
    given: list[str] = []
    name, selector = spec.get("nodeName"), spec.get("nodeSelector")
    if name is not None:
        if name:
            given.append("`nodeName`")
            errors += [invalid(f"{at}.nodeName", name, text) for text in dns1123_subdomain_errors(name)]
        else:
            detail = "must be either unset or set to a non-empty string"
            errors.append(invalid(f"{at}.nodeName", name, detail))
    if selector is not None:
        given.append("`nodeSelector`")
        errors += check_node_terms(selector, f"{at}.nodeSelector")
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            detail = "must have exactly one node selector term"
            errors.append(invalid(f"{at}.nodeSelector.nodeSelectorTerms", terms, detail))
    for part in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(part):
            given.append(f"`{part}`")
        elif spec.get(part) is not None:
            errors.append(
                invalid(f"{at}.{part}", False, "must be either unset or set to true")
            )  # the value that was given
    if not given:
        errors.append(required(at, _ONE_PLACE))
    elif len(given) > 1:
        shown = f"{{{', '.join(given)}}}"
        errors.append(invalid(at, shown, f"{_ONE_PLACE}, but multiple fields are set"))
    return errors


def _device(device: Json, at: str, *, apart: bool) -> list[FieldError]:
    errors = _label(f"{at}.name", device.get("name") or "")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > _MOST_ATTRIBUTES:
        detail = f"the total number of attributes and capacities must not exceed {_MOST_ATTRIBUTES}"
        errors.append(invalid(at, len(attributes) + len(capacity), detail))
    for name, attribute in attributes.items():
        errors += _attribute(attribute, f"{at}.attributes[{name}]")
    for name, one in capacity.items():
        try:
            Quantity.parse(one.get("value") or 0)
        except QuantityError as error:
            errors.append(invalid(f"{at}.capacity[{name}].value", one.get("value"), str(error)))
    places = [part for part in ("nodeName", "nodeSelector", "allNodes") if device.get(part) is not None]
    if apart and not places:
        errors.append(required(at, _ONE_DEVICE_PLACE))
    elif apart and len(places) > 1:
        shown = f"{{{', '.join(f'`{part}`' for part in places)}}}"
        errors.append(invalid(at, shown, _ONE_DEVICE_PLACE))
    elif places and not apart:
        errors.append(invalid(at, None, _NO_DEVICE_PLACE))
    return errors


def _attribute(attribute: Json, at: str) -> list[FieldError]:
    given = [name for name in _ATTRIBUTE_VALUES if attribute.get(name) is not None]
    errors: list[FieldError] = []
    version = attribute.get("version")
    if version is not None and not _SEMVER.fullmatch(version):
        detail = "must be a string compatible with semver.org spec 2.0.0"
        errors.append(invalid(f"{at}.version", version, detail))
    errors += [
        too_long(f"{at}.{part}", _LONGEST_TEXT)
        for part in ("string", "version")
        if len((attribute.get(part) or "").encode()) > _LONGEST_TEXT
    ]
    if len(given) != 1:
        shown: Any = attribute if given else ""
        errors.append(invalid(at, shown, "exactly one value must be specified"))
    return errors


# ── What they share ─────────────────────────────────────────────────────────────────────────────


def _driver(at: str, name: str) -> list[FieldError]:
    if not name:
        return [required(at)]
    errors = [too_long(at, _LONGEST_DRIVER)] if len(name) > _LONGEST_DRIVER else []
    return errors + [invalid(at, name, text) for text in dns1123_subdomain_errors(name.lower())]


def _pool(at: str, name: str) -> list[FieldError]:
    if not name:
        return [required(at)]
    errors = [too_long(at, _LONGEST_POOL)] if len(name) > _LONGEST_POOL else []
    for part in name.split("/"):
        errors += [invalid(at, part, text) for text in dns1123_subdomain_errors(part)]
    return errors


def _label(at: str, name: str) -> list[FieldError]:
    return [invalid(at, name, text) for text in dns1123_label_errors(name)]


def _few(at: str, items: list[Any], most: int) -> list[FieldError]:
    return [too_many(at, len(items), most)] if len(items) > most else []


def _once(at: str, names: Iterable[str]) -> list[FieldError]:
    seen: set[str] = set()
    errors: list[FieldError] = []
    for number, name in enumerate(names):
        if name in seen:
            errors.append(duplicate(f"{at}[{number}]", name))
        seen.add(name)
    return errors


def _immutable(at: str, now: Any, was: Any) -> list[FieldError]:
    return [] if now == was else [invalid(at, now, IMMUTABLE)]
