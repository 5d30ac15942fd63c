"""What a request to ``pods/resize`` may change. Source: KEP-1287, and kube-apiserver v1.36.2's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubetide.objects.field_errors import FieldError, forbidden, invalid
from kubetide.objects.qos import qos_class
from kubetide.units.patch import same_json
from kubetide.units.quantity import Quantity, QuantityError

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_PARTS = ("containers", "initContainers")
_MUTABLE = frozenset({"cpu", "memory"})
_SIDES = ("requests", "limits")
_MIRROR = "kubernetes.io/config.mirror"


def resized(new: Json, old: Json) -> Json:
    """Return the old pod with what a resize takes from the new one, both with their defaults.

    That is resources and resize policies. Containers that are not the same ones are left as they
    are sent, so that validation can name them.
    """
    requested, spec = new.get("spec") or {}, dict(old.get("spec") or {})
    for part in _PARTS:
        if part in spec or requested.get(part):
            spec[part] = _containers(requested.get(part) or [], spec.get(part) or [])
    before = spec.pop("resources", None)
    if requested.get("resources") is not None:
        spec["resources"] = _known(requested["resources"], before or {})
    return {**old, "spec": spec}


def _containers(new: list[Json], old: list[Json]) -> list[Json]:
    if [container.get("name") for container in new] != [container.get("name") for container in old]:
        return new
    result = []
    for container, before in zip(new, old, strict=True):
        resized = {name: value for name, value in before.items() if name != "resizePolicy"}
        resized["resources"] = _known(container.get("resources") or {}, before.get("resources") or {})
        if container.get("resizePolicy"):
            resized["resizePolicy"] = container["resizePolicy"]
        result.append(resized)
    return result


def _known(new: Json, old: Json) -> Json:
    """Return the resources that are known, each amount in the text it had when it is the same."""
    known: Json = {name: new[name] for name in ("claims", *_SIDES) if new.get(name)}
    for side in _SIDES:
        if side in known:
            before = old.get(side) or {}
            known[side] = {name: _amount(text, before.get(name)) for name, text in known[side].items()}
    return known


def _amount(text: Any, before: Any) -> Any:
    try:
        amount = Quantity.parse(text)
        return before if before is not None and amount == Quantity.parse(before) else str(amount)
    except QuantityError:
        return text  # validation names it


def validate_pod_resize(obj: Json, old: Json) -> list[FieldError]:
    """Return what a resize breaks beside the rules of every pod."""
    if _MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden("[]", "static pods cannot be resized")]
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    if (before.get("os") or {}).get("name") == "windows":
        return [forbidden("[]", "windows pods cannot be resized")]
    for part in _PARTS:
        if len(spec.get(part) or ()) != len(before.get(part) or ()):
            return [forbidden(f"spec.{part}", f"{part} may not be added or removed on resize")]
    errors: list[FieldError] = []
    level, level_before = spec.get("resources"), before.get("resources")
    if level_before and not level:
        errors.append(forbidden("spec.resources", "pod-level resources cannot be removed"))
    else:
        errors += _removed(level or {}, level_before or {}, "spec.resources", "pod-level resource")
        if not same_json(_immutable(level or {}), _immutable(level_before or {})):
            errors.append(forbidden("spec", "only cpu and memory resources are mutable at pod-level"))
    renamed, fixed = False, True
    for part in _PARTS:
        for index, (container, was) in enumerate(
            zip(spec.get(part) or (), before.get(part) or (), strict=True)
        ):
            at = f"spec.{part}[{index}]"
            if container.get("name") != was.get("name"):
                renamed = True
                errors.append(forbidden(f"{at}.name", f"{part} may not be renamed or reordered on resize"))
            resources, resources_before = container.get("resources") or {}, was.get("resources") or {}
            errors += _removed(resources, resources_before, f"{at}.resources", "resource")
            fixed = fixed and same_json(
                [_immutable(resources), container.get("resizePolicy") or []],
                [_immutable(resources_before), was.get("resizePolicy") or []],
            )
    if errors and level_before and not level:
        return errors  # what follows would say the same once more
    if not fixed and not renamed:
        errors.append(forbidden("spec", "only cpu and memory resources are mutable"))
    qos_before = qos_class(before)
    if qos_class(spec) != qos_before:
        errors.append(invalid("spec", qos_before, "Pod QOS Class may not change as a result of resizing"))
    return errors


def _removed(new: Json, old: Json, at: str, what: str) -> list[FieldError]:
    return [
        forbidden(f"{at}.{side}", f"{what} {side} cannot be removed")
        for side in _SIDES
        if (old.get(side) or {}).keys() - (new.get(side) or {}).keys()
    ]


def _immutable(resources: Json) -> Json:
    """Return the part of resources that a resize may not change."""
    fixed: Json = {
        name: value for name, value in resources.items() if name not in _SIDES and value not in (None, [])
    }
    for side in _SIDES:
        amounts = {n: a for n, a in (resources.get(side) or {}).items() if n not in _MUTABLE}
        if amounts:
            fixed[side] = amounts
    return fixed
