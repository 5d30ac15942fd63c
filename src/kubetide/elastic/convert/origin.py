"""The origin of a section: names, labels and annotations of the converted objects, as an annotation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kubetide.objects.base import Json
from kubetide.ports.errors import KubetideError

ORIGIN: Final = "kubetide.dev/converted-from"

HORIZONTAL: Final = "horizontal"
VERTICAL: Final = "vertical"
SCHEDULE: Final = "schedule"


class NotConvertible(KubetideError):
    """Something that the other form cannot express; the text names it."""


class Origin(msgspec.Struct, omit_defaults=True, rename="camel"):
    """One converted object.

    Attributes:
        section: What became of it.
        target: Its reference of the target, where that is written otherwise than in the ElasticWorkload.
        labels, annotations: By key; None for those whose value is that of the ElasticWorkload.
    """

    section: str
    api_version: str
    kind: str
    name: str
    target: Json | None = None
    labels: dict[str, str | None] = {}
    annotations: dict[str, str | None] = {}


_origins = msgspec.json.Decoder(list[Origin])


def named(obj: Json) -> str:
    """Return the name of an object for messages."""
    meta = obj.get("metadata") or {}
    where = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{obj.get('kind')} {where}{meta.get('name')}"


def check_metadata(obj: Json) -> None:
    """Check that conversion loses no metadata. Raises NotConvertible."""
    meta = obj.get("metadata") or {}
    for owner in meta.get("ownerReferences") or ():
        raise NotConvertible(
            f"{named(obj)}: belongs to {owner.get('kind')} {owner.get('name')}, which would make it again; convert that"
        )
    if meta.get("finalizers"):
        raise NotConvertible(f"{named(obj)}: metadata.finalizers cannot be kept")


def merged_metadata(name: str, namespace: str, parts: Sequence[tuple[str, Json, Json | None]]) -> Json:
    """Return the metadata of an ElasticWorkload.

    Args:
        parts: By section, the object it was and its target's reference where that is written otherwise; where
            two have a label of different values, the first one's stands.
    """
    both: dict[str, dict[str, str]] = {"labels": {}, "annotations": {}}
    for _, obj, _ in parts:
        for field, known in both.items():
            for key, value in ((obj.get("metadata") or {}).get(field) or {}).items():
                known.setdefault(key, value)
    origins = [
        Origin(
            section,
            obj["apiVersion"],
            obj["kind"],
            obj["metadata"]["name"],
            target,
            *(_differences(obj["metadata"].get(field) or {}, known) for field, known in both.items()),
        )
        for section, obj, target in parts
    ]
    both["annotations"][ORIGIN] = msgspec.json.encode(origins).decode()
    meta: Json = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {**meta, **{field: known for field, known in both.items() if known}}


def _differences(own: Mapping[str, str], merged: Mapping[str, str]) -> dict[str, str | None]:
    return {key: None if merged[key] == value else value for key, value in own.items()}


def origins_of(obj: Json) -> dict[str, Origin]:
    """Return the origins of the sections, as far as the annotation has them. Raises NotConvertible."""
    text = (obj["metadata"].get("annotations") or {}).get(ORIGIN)
    if text is None:
        return {}
    try:
        return {one.section: one for one in _origins.decode(text)}
    except msgspec.MsgspecError as error:
        raise NotConvertible(f"{named(obj)}: annotation {ORIGIN}: {error}; remove it") from error


def metadata_back(obj: Json, origin: Origin | None, others: Iterable[Origin], *, takes_new: bool) -> Json:
    """Return the metadata of the object that a section is converted to.

    Args:
        others: All origins of the ElasticWorkload.
        takes_new: Whether labels and annotations that no origin had go to this object.
    """
    meta = obj["metadata"]
    found: Json = {"name": meta["name"] if origin is None else origin.name}
    if meta.get("namespace"):
        found["namespace"] = meta["namespace"]
    known = list(others)
    for field in ("labels", "annotations"):
        merged = {key: value for key, value in (meta.get(field) or {}).items() if key != ORIGIN}
        old = {key for one in known for key in getattr(one, field)}
        own: dict[str, str | None] = {} if origin is None else getattr(origin, field)
        result = {key: merged.get(key) if value is None else value for key, value in own.items()}
        if takes_new:
            result |= {key: value for key, value in merged.items() if key not in old}
        said = {key: value for key, value in result.items() if value is not None}
        if said:
            found[field] = said
    return found
