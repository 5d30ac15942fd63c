"""CEL selectors of devices, evaluated per device.

Source: dynamic-resource-allocation v1.36 (package cel).
"""

from __future__ import annotations

from typing import Any

from kubetide.objects.device_expressions import compile_problem, compiled
from kubetide.objects.resource import Device, DeviceAttribute
from kubetide.units.quantity import Quantity, QuantityError

__all__ = ["SelectorError", "Variables", "compile_problem", "matches", "variables_of"]

Variables = dict[str, Any]
"""What an expression sees of one device."""


class SelectorError(Exception):
    """A selector that cannot be evaluated for a device; the message is upstream's."""


def matches(expression: str, variables: Variables) -> bool:
    """Return whether the selectors select a device.

    Raises: SelectorError when the expression has no value for it, or one that is no bool.
    """
    from kubetide.cel import EvaluationError  # noqa: PLC0415  CEL is loaded when an expression is met
    from kubetide.cel.values import printed_kind  # noqa: PLC0415

    program = compiled(expression)
    if isinstance(program, str):
        raise SelectorError(program)
    try:
        value = program.evaluate(variables)
    except EvaluationError as error:
        raise SelectorError(str(error)) from None
    if type(value) is not bool:
        kind = printed_kind(value)
        why = f"unsupported native conversion from {kind} to 'bool'"
        if kind.startswith("kubernetes."):
            why = f"type conversion error from '{kind.removeprefix('kubernetes.')}' to 'bool'"
        raise SelectorError(f"CEL result of type {kind} could not be converted to bool: {why}")
    return value


def variables_of(driver: str, device: Device) -> Variables:
    """Return the variables of expressions for a device.

    Raises: SelectorError for an attribute that has no value or no semantic version.
    """
    from kubetide.cel import OpenMap  # noqa: PLC0415  as above

    attributes: OpenMap = OpenMap()
    for name, attribute in (device.attributes or {}).items():
        domain, identifier = _qualified(name, driver)
        attributes.setdefault(domain, {})[identifier] = _value(name, attribute)
    capacity: OpenMap = OpenMap()
    for name, amount in (device.capacity or {}).items():
        domain, identifier = _qualified(name, driver)
        try:
            capacity.setdefault(domain, {})[identifier] = Quantity.parse(amount.value)
        except QuantityError as error:
            raise SelectorError(f"capacity {name}: {error}") from None
    return {
        "device": {
            "driver": driver,
            "allowMultipleAllocations": bool(device.allow_multiple_allocations),
            "attributes": attributes,
            "capacity": capacity,
        }
    }


def _qualified(name: str, driver: str) -> tuple[str, str]:
    """Domain and identifier of an attribute; the driver's name is the domain of those without."""
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _value(name: str, attribute: DeviceAttribute) -> Any:
    if attribute.int_value is not None:
        return attribute.int_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.string_value is not None:
        return attribute.string_value
    if attribute.version_value is not None:
        from kubetide.cel import EvaluationError  # noqa: PLC0415  as above
        from kubetide.cel.kubernetes import parse_semver  # noqa: PLC0415

        try:
            return parse_semver(attribute.version_value)
        except EvaluationError as error:
            raise SelectorError(f"attribute {name}: parse semantic version: {error}") from None
    raise SelectorError(f"attribute {name}: unsupported attribute value")
