"""The CEL expressions that select devices: what they may read, compiled once each.

Source: dynamic-resource-allocation v1.36 (package cel), with DRAConsumableCapacity on and
DRAListTypeAttributes off, as in v1.36 by default.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubetide.cel import Program
    from kubetide.cel.types import Type

_PRINTED = {"any": "google.protobuf.Any"}


@lru_cache(maxsize=1024)
def compiled(expression: str) -> Program | str:
    """Return the program, or upstream's error."""
    # CEL is loaded when an expression is met.
    from kubetide.cel import FUNCTIONS, CelError, compile_expression  # noqa: PLC0415
    from kubetide.cel.kubernetes import QUANTITY  # noqa: PLC0415
    from kubetide.cel.types import ANY, BOOL, STRING, Type, map_of  # noqa: PLC0415

    device = Type("kubernetes.DRADevice")
    fields = {
        "driver": STRING,
        "allowMultipleAllocations": BOOL,
        "attributes": map_of(STRING, map_of(STRING, ANY)),
        "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
    }
    try:
        program = compile_expression(
            expression, variables={"device": device}, objects={device.name: fields}, functions=FUNCTIONS
        )
    except CelError as error:
        return str(error)
    if program.type in {BOOL, ANY}:
        return program
    return f"must evaluate to bool or the unknown type, not {_printed(program.type)}"


def compile_problem(expression: str) -> str:
    """Return why an expression cannot be used; empty when it can."""
    found = compiled(expression)
    return found if isinstance(found, str) else ""


def _printed(given: Type) -> str:
    name = _PRINTED.get(given.name, given.name)
    return f"{name}({', '.join(map(_printed, given.arguments))})" if given.arguments else name
