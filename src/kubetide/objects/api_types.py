"""The types of the Kubernetes API v1.36: their fields' names, numbers and types.

``api_types.json`` is made by ``tools/api_types.py``; it holds what the served kinds can reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec

from kubetide.objects.kinds import Kind

META = "io.k8s.apimachinery.pkg.apis.meta.v1"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"
TIME = f"{META}.Time"
MICRO_TIME = f"{META}.MicroTime"
DURATION = f"{META}.Duration"
FIELDS_V1 = f"{META}.FieldsV1"
BINDING = "io.k8s.api.core.v1.Binding"
EVICTION = "io.k8s.api.policy.v1.Eviction"
STATUS = f"{META}.Status"
DELETE_OPTIONS = f"{META}.DeleteOptions"
OBJECT_META = f"{META}.ObjectMeta"


class Field(NamedTuple):
    """A field of a type.

    Attributes:
        number: Of the protobuf form.
        name: Of the JSON form; empty where the members of its type stand in its place.
        type: ``string``, ``bool``, ``int``, ``float``, ``bytes`` or the name of a type, after ``[]``
            for a list or ``{}`` for a map.
        keeps_zero: Zero differs from absent.
    """

    number: int
    name: str
    type: str
    keeps_zero: bool


@cache
def api_types() -> dict[str, tuple[Field, ...]]:
    """Return the fields of every type by its name."""
    raw = files(__package__).joinpath("api_types.json").read_bytes()
    table: dict[str, list[list[Any]]] = msgspec.json.decode(raw)
    return {
        name: tuple(Field(number, field, kind, bool(keeps)) for number, field, kind, keeps in fields)
        for name, fields in table.items()
    }


def fields_of(name: str) -> Iterator[Field]:
    """Yield the fields of a type as they stand in JSON: those of an inlined type in its place."""
    for field in api_types().get(name, ()):
        if field.name:
            yield field
        else:
            yield from fields_of(field.type)


def type_name(group: str, version: str, kind: str) -> str:
    """Return the name that upstream's schemas have for a built-in kind."""
    return f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}.{kind}"


def type_of_kind(kind: Kind[Any]) -> str:
    """Return the name of a kind's type, empty for one that is not built in."""
    name = type_name(kind.group, kind.version, kind.kind)
    return name if name in api_types() else ""
