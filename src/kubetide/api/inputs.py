"""Objects as people provide them: YAML text, a file, or mappings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kubetide.embedded.apiserver.defaults.defaults import defaults
from kubetide.embedded.apiserver.manifests.manifest import ManifestError, load_manifests
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.ports.errors import KubetideError

Objects = str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""YAML or JSON text, the path of a file of it, one object, or several."""


class InputError(KubetideError):
    """Unreadable or missing objects; the text names object, field and fix."""


def read_objects(given: Objects) -> list[tuple[Kind[Any], Json]]:
    """Return the objects with their kinds, validated and defaulted as by an API server. Raises InputError."""
    source = "objects"
    if isinstance(given, Path):
        source = str(given)
        try:
            text = given.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{given} cannot be read: {error}; check the path") from error
    elif isinstance(given, str):
        text = given
    else:
        several = [given] if isinstance(given, Mapping) else list(given)
        text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": several}).decode()
    try:
        return [(kind, defaults(kind, json)) for kind, json in load_manifests(text, source)]
    except ManifestError as error:
        raise InputError(str(error)) from error
