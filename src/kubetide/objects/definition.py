"""apiextensions.k8s.io/v1 CustomResourceDefinition."""

from __future__ import annotations

from typing import Any

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.meta import ApiObject, Condition


class DefinitionNames(ApiStruct):
    plural: str = ""
    singular: str = ""
    short_names: tuple[str, ...] | None = None
    kind: str = ""
    list_kind: str = ""
    categories: tuple[str, ...] | None = None


class ScalePaths(ApiStruct):
    """JSON paths such as ``.spec.replicas``."""

    spec_replicas_path: str = ""
    status_replicas_path: str = ""
    label_selector_path: str = ""


class DefinitionSubresources(ApiStruct):
    status: dict[str, Any] | None = None
    scale: ScalePaths | None = None


class PrinterColumn(ApiStruct):
    name: str = ""
    type: str = ""
    format: str = ""
    description: str = ""
    priority: int = 0
    json_path: str = field(default="", name="jsonPath")


class DefinitionSchema(ApiStruct):
    schema: dict[str, Any] | None = field(default=None, name="openAPIV3Schema")


class DefinitionVersion(ApiStruct):
    name: str = ""
    served: bool = False
    storage: bool = False
    schema: DefinitionSchema | None = None
    subresources: DefinitionSubresources | None = None
    additional_printer_columns: tuple[PrinterColumn, ...] | None = None


class DefinitionConversion(ApiStruct):
    strategy: str = ""


class DefinitionSpec(ApiStruct):
    group: str = ""
    names: DefinitionNames = field(default_factory=DefinitionNames)
    scope: str = ""
    versions: tuple[DefinitionVersion, ...] | None = None
    conversion: DefinitionConversion | None = None
    preserve_unknown_fields: bool = False


class DefinitionStatus(ApiStruct):
    conditions: tuple[Condition, ...] | None = None
    accepted_names: DefinitionNames | None = None
    stored_versions: tuple[str, ...] | None = None


class CustomResourceDefinition(ApiObject):
    spec: DefinitionSpec = field(default_factory=DefinitionSpec)
    status: DefinitionStatus = field(default_factory=DefinitionStatus)
