"""Manifests of CustomResourceDefinitions, of which the chart installs some and the embedded server has all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind


def definition_of(
    kind: Kind[Any],
    versions: Sequence[Json],
    *,
    short_names: Sequence[str] = (),
    annotations: Mapping[str, str] | None = None,
    categories: Sequence[str] = (),
) -> Json:
    """Return a manifest that defines a kind.

    Args:
        kind: Its group and names.
        versions: As they stand in ``spec.versions``.
        short_names: Where the kind itself has none.
        annotations: Of the definition.
        categories: Such as ``all``.
    """
    names: Json = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        "shortNames": list(kind.short_names or short_names),
    }
    if categories:
        names["categories"] = list(categories)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}", "annotations": dict(annotations or {})},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": list(versions),
        },
    }
