"""Initial objects from a dump of a cluster: those that people wrote, without those that controllers created."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from kubetide.objects.base import Json
from kubetide.objects.kinds import CLAIMS, CSI_NODES, EVENTS, LEASES, NODES, PERSISTENT_VOLUMES, Kind

Objects = list[tuple[Kind[object], Json]]

_MADE_BY_THE_RUN = frozenset({NODES, CSI_NODES, LEASES, EVENTS})
"""Kinds of which a run has its own."""
_MADE_BY_NODES = frozenset({"Node"})


def without_made(objects: Objects) -> tuple[Objects, tuple[str, ...]]:
    """Return the initial objects, and a notice about a dump among them; empty if there is none.

    Objects with a ``uid`` come from a dump. Those that an owner among the objects makes anew are left out, and so are
    nodes; owners that are not among them are forgotten, since their uids name nothing here.
    """
    there = {_name_of(kind, json) for kind, json in objects}
    volumes = {json["metadata"].get("name") for kind, json in objects if kind is PERSISTENT_VOLUMES}
    begun: Objects = []
    left_out: Counter[str] = Counter()
    dumped, orphans = 0, list[str]()
    for kind, json in objects:
        metadata = json["metadata"]
        if not metadata.get("uid"):
            begun.append((kind, json))
            continue
        dumped += 1
        owners = list(_owners(metadata))
        if kind in _MADE_BY_THE_RUN or any(_makes(owner, kind, metadata, there) for owner in owners):
            left_out[kind.kind] += 1
            continue
        if owners and owners[0].get("controller"):
            orphans.append(
                f"{_title(kind, metadata)}: its owner {owners[0].get('kind')} {owners[0].get('name')} is not among the "
                "objects; it stands on its own, and nothing makes it anew"
            )
        begun.append((kind, _written(kind, json, volumes)))
    if not dumped:
        return objects, ()
    made = ", ".join(f"{number} {kind}" for kind, number in sorted(left_out.items()))
    said = (
        f"manifests: {dumped} objects come from a cluster; left out is what its server added (status, uids ...)"
        f"{f', and what the run makes itself: {made}' if made else ''}"
    )
    return begun, (said, *orphans)


def _owners(metadata: Json) -> Iterator[Json]:
    for owner in metadata.get("ownerReferences") or ():
        if isinstance(owner, dict):
            yield owner


def _makes(owner: Json, kind: Kind[Any], metadata: Json, there: set[tuple[str, str, str]]) -> bool:
    """Return whether an owner is among the objects, or is a node that brings its own pods."""
    namespace = (metadata.get("namespace") or "default") if kind.namespaced else ""
    kinds = (owner.get("kind") or "", owner.get("name") or "")
    return bool(owner.get("controller")) and (
        kinds[0] in _MADE_BY_NODES or (kinds[0], namespace, kinds[1]) in there
    )


def _written(kind: Kind[Any], json: Json, volumes: set[Any]) -> Json:
    gone = ("uid", "ownerReferences")
    metadata = {name: value for name, value in json["metadata"].items() if name not in gone}
    written = {**json, "metadata": metadata}
    spec = json.get("spec")
    if kind is CLAIMS and spec and spec.get("volumeName") not in volumes:
        written["spec"] = {name: value for name, value in spec.items() if name != "volumeName"}
    return written


def _name_of(kind: Kind[Any], json: Json) -> tuple[str, str, str]:
    metadata = json["metadata"]
    namespace = (metadata.get("namespace") or "default") if kind.namespaced else ""
    return kind.kind, namespace, metadata.get("name") or ""


def _title(kind: Kind[Any], metadata: Json) -> str:
    name = metadata.get("name")
    return (
        f"{kind.kind} {metadata.get('namespace') or 'default'}/{name}"
        if kind.namespaced
        else f"{kind.kind} {name}"
    )
