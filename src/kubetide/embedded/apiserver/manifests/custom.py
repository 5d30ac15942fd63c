"""The kinds that a CustomResourceDefinition brings, as anybody can name them; their schemas are the server's matter."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.objects.base import Json
from kubetide.objects.definition import CustomResourceDefinition, DefinitionVersion
from kubetide.objects.kinds import Kind


def kinds_defined_by(definition: CustomResourceDefinition) -> Iterator[Kind[Json]]:
    """Yield a kind for each version that is served."""
    spec = definition.spec
    for version in spec.versions or ():
        if version.served:
            yield Kind(
                group=spec.group,
                version=version.name,
                kind=spec.names.kind,
                plural=spec.names.plural,
                model=dict,
                namespaced=spec.scope == "Namespaced",
                subresources=subresources_of(version),
                short_names=spec.names.short_names or (),
            )


def subresources_of(version: DefinitionVersion) -> tuple[str, ...]:
    """Return the names of the subresources that a version has."""
    parts = version.subresources
    if parts is None:
        return ()
    there = (("status", parts.status), ("scale", parts.scale))
    return tuple(name for name, part in there if part is not None)
