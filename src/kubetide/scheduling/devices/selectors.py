"""CEL selectors of devices: what an expression may read, compiled once, evaluated per device.

Source: dynamic-resource-allocation v1.36 (package cel), with DRAConsumableCapacity on and
DRAListTypeAttributes off, as in v1.36 by default.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kubetide.objects.resource import Device, DeviceAttribute
from kubetide.units.cel import (
    FUNCTIONS,
    CelError,
    EvaluationError,
    OpenMap,
    Program,
    compile_expression,
)
from kubetide.units.cel.kubernetes import QUANTITY, parse_semver
from kubetide.units.cel.types import ANY, BOOL, STRING, Type, map_of
from kubetide.units.cel.values import printed_kind
from kubetide.units.quantity import Quantity, QuantityError

_DEVICE = Type("kubernetes.DRADevice")
_FIELDS = {
    "driver": STRING,
    "allowMultipleAllocations": BOOL,
    "attributes": map_of(STRING, map_of(STRING, ANY)),
    "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
}
_PRINTED = {"any": "google.protobuf.Any"}

Variables = dict[str, Any]
"""What an expression sees of one device."""


class SelectorError(Exception):
    """A selector that has no verdict on a device; the message is upstream's."""


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> Program | str:
    """The program, or upstream's error."""
    try:
        program = compile_expression(
            expression,
            variables={"device": _DEVICE},
            objects={_DEVICE.name: _FIELDS},
            functions=FUNCTIONS,
        )
    except CelError as error:
        return str(error)
    if program.type in {BOOL, ANY}:
        return program
    return f"must evaluate to bool or the unknown type, not {_printed(program.type)}"


def compile_problem(expression: str) -> str:
    """Why an expression cannot be used; empty when it can."""
    found = _compiled(expression)
    return found if isinstance(found, str) else ""


def matches(expression: str, variables: Variables) -> bool:
    """Whether a device is selected.

    Raises: SelectorError when the expression has no value for it, or one that is no bool.
    """
    program = _compiled(expression)
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
    """Gives what expressions see of a device.

    Raises: SelectorError for an attribute that has no value or no semantic version.
    """
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
        try:
            return parse_semver(attribute.version_value)
        except EvaluationError as error:
            raise SelectorError(f"attribute {name}: parse semantic version: {error}") from None
    raise SelectorError(f"attribute {name}: unsupported attribute value")


def _printed(given: Type) -> str:
    name = _PRINTED.get(given.name, given.name)
    return f"{name}({', '.join(map(_printed, given.arguments))})" if given.arguments else name
