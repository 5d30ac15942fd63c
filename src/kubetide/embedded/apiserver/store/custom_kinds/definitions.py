"""Which CustomResourceDefinitions can be served.

Source: apiextensions-apiserver v1.36, pkg/apis/apiextensions/validation.
"""

from __future__ import annotations

import msgspec

from kubetide.embedded.apiserver.store.custom_kinds.schema import schema_faults
from kubetide.objects.base import Json
from kubetide.objects.definition import CustomResourceDefinition, DefinitionSpec, DefinitionVersion
from kubetide.objects.field_errors import FieldError, invalid, required, unsupported
from kubetide.units.names import dns1123_label_errors, dns1123_subdomain_errors

_IMMUTABLE = "field is immutable"


def with_defaults(body: Json) -> Json:
    """Return a definition with the names that follow from others."""
    spec = body.get("spec") or {}
    names = spec.get("names") or {}
    kind = names.get("kind") or ""
    filled = {"singular": kind.lower(), "listKind": f"{kind}List" if kind else ""}
    names = {**names, **{key: value for key, value in filled.items() if not names.get(key)}}
    return {
        **body,
        "spec": {**spec, "names": names, "conversion": spec.get("conversion") or {"strategy": "None"}},
    }


def definition_faults(body: Json, before: Json | None) -> list[FieldError]:
    """Return what keeps a definition from being served, and what it changes that must stay."""
    definition = msgspec.convert(body, CustomResourceDefinition)
    spec = definition.spec
    faults = _name_faults(definition.metadata.name, spec)
    if spec.scope not in {"Namespaced", "Cluster"}:
        scopes = ("Cluster", "Namespaced")
        faults.append(unsupported("spec.scope", spec.scope, scopes) if spec.scope else required("spec.scope"))
    if spec.conversion is not None and spec.conversion.strategy != "None":
        faults.append(unsupported("spec.conversion.strategy", spec.conversion.strategy, ("None",)))
    if spec.preserve_unknown_fields:
        faults.append(
            invalid(
                "spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema"
            )
        )
    versions = spec.versions or ()
    if sum(version.storage for version in versions) != 1:
        faults.append(
            invalid(
                "spec.versions",
                [one.name for one in versions],
                "must have exactly one version marked as storage version",
            )
        )
    names = [version.name for version in versions]
    if len(set(names)) != len(names):
        faults.append(invalid("spec.versions", names, "must contain unique version names"))
    schemas = [version.schema.schema if version.schema else None for version in versions]
    # Upstream takes one schema of all versions for that of the definition.
    shared = bool(schemas) and all(schema and schema == schemas[0] for schema in schemas)
    for index, version in enumerate(versions):
        faults += _version_faults(version, f"spec.versions[{index}]", shared=shared)
    if before is not None:
        old = msgspec.convert(before, CustomResourceDefinition)
        faults += [
            invalid(field, new, _IMMUTABLE)
            for field, new, was in (
                ("spec.group", spec.group, old.spec.group),
                ("spec.scope", spec.scope, old.spec.scope),
                ("spec.names.kind", spec.names.kind, old.spec.names.kind),
                ("spec.names.plural", spec.names.plural, old.spec.names.plural),
            )
            if new != was
        ]
        for name in old.status.stored_versions or ():
            if name not in names:
                faults.append(
                    invalid(
                        "status.storedVersions",
                        name,
                        "missing from spec.versions; an object may still be stored in it",
                    )
                )
    return faults


def _name_faults(name: str, spec: DefinitionSpec) -> list[FieldError]:
    faults = []
    expected = f"{spec.names.plural}.{spec.group}"
    if name != expected:
        faults.append(invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    if not spec.group:
        faults.append(required("spec.group"))
    elif "." not in spec.group:
        faults.append(invalid("spec.group", spec.group, "should be a domain with at least one dot"))
    else:
        faults += [invalid("spec.group", spec.group, text) for text in dns1123_subdomain_errors(spec.group)]
    for field, value in (
        ("plural", spec.names.plural),
        ("singular", spec.names.singular),
        ("kind", spec.names.kind),
        ("listKind", spec.names.list_kind),
    ):
        at = f"spec.names.{field}"
        if not value:
            faults.append(required(at))
        else:
            faults += [invalid(at, value, text) for text in dns1123_label_errors(value.lower())]
    return faults


def _version_faults(version: DefinitionVersion, at: str, *, shared: bool) -> list[FieldError]:
    faults = [invalid(f"{at}.name", version.name, text) for text in dns1123_label_errors(version.name)]
    schema = version.schema.schema if version.schema else None
    where = "spec.validation.openAPIV3Schema" if shared else f"{at}.schema.openAPIV3Schema"
    if schema is None:
        return [*faults, required(where)]
    faults += schema_faults(schema, where)
    scale = version.subresources.scale if version.subresources else None
    if scale is not None:
        for field, path, prefix in (
            ("specReplicasPath", scale.spec_replicas_path, ".spec."),
            ("statusReplicasPath", scale.status_replicas_path, ".status."),
            ("labelSelectorPath", scale.label_selector_path, (".spec.", ".status.")),
        ):
            where = f"{at}.subresources.scale.{field}"
            if not path and field != "labelSelectorPath":
                faults.append(required(where))
            elif path and (not path.startswith(prefix) or "[" in path):
                text = prefix if isinstance(prefix, str) else " or ".join(prefix)
                faults.append(invalid(where, path, f"should be a json path under {text}"))
    return faults
