"""Kinds that a CustomResourceDefinition brings: what is filled in, cut off, checked and scaled.

Source: apiextensions-apiserver v1.36, registry/customresource.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubetide.embedded.apiserver.manifests.custom import subresources_of
from kubetide.embedded.apiserver.patches.merging import Shape, struct
from kubetide.embedded.apiserver.patches.shapes import shape_of
from kubetide.embedded.apiserver.store.custom_kinds.custom_scale import scale_faults
from kubetide.embedded.apiserver.store.custom_kinds.schema import ABSENT, defaulted, faults_in, pruned
from kubetide.embedded.apiserver.store.custom_kinds.schema_shape import shape_of_schema
from kubetide.objects.base import Json
from kubetide.objects.definition import CustomResourceDefinition, DefinitionVersion, PrinterColumn, ScalePaths
from kubetide.objects.field_errors import FieldError
from kubetide.objects.kinds import Kind


@dataclass(frozen=True)
class CustomKind(Kind[Json]):
    """One version of a custom kind."""

    schema: Json = field(default_factory=dict, compare=False, repr=False)
    scale: ScalePaths | None = None
    columns: tuple[PrinterColumn, ...] = ()
    shape: Shape = field(default_factory=Shape, compare=False, repr=False)
    served: bool = True
    singular: str = ""
    categories: tuple[str, ...] = ()

    @property
    def has_status(self) -> bool:
        """Whether the status is written apart from the rest."""
        return "status" in self.subresources

    def admitted(self, obj: Json) -> Json:
        """Return the object without unknown fields and with the defaults filled in."""
        result: Json = defaulted(pruned(obj, self.schema, root=True), self.schema)
        return result

    def faults(self, obj: Json, old: Json | None = None) -> list[FieldError]:
        """Return every rule of the schema that the object breaks, and that ``old`` has not broken alike.

        What the scale subresource reads must be readable whatever the schema says.
        """
        before = ABSENT if old is None else _without_metadata(old)
        return faults_in(_without_metadata(obj), self.schema, "", before) + scale_faults(obj, self.scale)


def _without_metadata(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key != "metadata"}


def kind_of(definition: CustomResourceDefinition, version: DefinitionVersion) -> CustomKind:
    """Return the kind of one version of a definition that has been checked."""
    spec = definition.spec
    schema = (version.schema.schema if version.schema else None) or {}
    parts = version.subresources
    own = shape_of_schema(schema)
    bare = Kind(spec.group, version.name, spec.names.kind, spec.names.plural, dict)
    return CustomKind(
        group=spec.group,
        version=version.name,
        kind=spec.names.kind,
        plural=spec.names.plural,
        model=dict,
        namespaced=spec.scope == "Namespaced",
        subresources=subresources_of(version),
        short_names=spec.names.short_names or (),
        schema=schema,
        scale=parts.scale if parts is not None else None,
        columns=version.additional_printer_columns or (),
        shape=struct(**{**own.fields, "metadata": shape_of(bare).child("metadata")}),
        served=version.served,
        singular=spec.names.singular,
        categories=spec.names.categories or (),
    )


def shape_in(kind: Kind[Any]) -> Shape:
    """Return the shape of a kind's objects, built in or custom."""
    return kind.shape if isinstance(kind, CustomKind) else shape_of(kind)


def value_at(obj: Json, path: str) -> Any:
    """Return what stands at a path such as ``.spec.replicas``, None where nothing does."""
    value: Any = obj
    for part in path.strip(".").split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def with_value_at(obj: Json, path: str, value: Any) -> Json:
    """Return the object with another value at the path."""
    first, _, rest = path.strip(".").partition(".")
    inner = obj.get(first)
    return {
        **obj,
        first: with_value_at(inner if isinstance(inner, dict) else {}, rest, value) if rest else value,
    }
