"""Objects, lists and events as bytes, in the form that a client has asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from kubetide.embedded.apiserver.http.negotiation import PLAIN, Form
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.watcher import Entry
from kubetide.embedded.apiserver.tables import columns_of, row_of
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.units.time import Instant

PAGE = 500
"""Objects that are encoded at one go: the time that everything else waits (about 10 ms)."""

_CACHED_EVENTS = 2_000

_PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}

encode = msgspec.json.Encoder().encode


class View(NamedTuple):
    """How to show objects: the form, what a table's rows carry (``includeObject``), and the time for ages."""

    kind: Kind[Any]
    form: Form = PLAIN
    include: str = "Metadata"
    now: Instant = Instant(0)


class Page(NamedTuple):
    """What a list says of itself."""

    version: int
    more: str = ""
    remaining: int | None = None

    def metadata(self) -> Json:
        found: Json = {"resourceVersion": str(self.version)}
        if self.more:
            found["continue"] = self.more
            if self.remaining is not None:
                found["remainingItemCount"] = self.remaining
        return found


def object_bytes(view: View, revision: Revision) -> bytes:
    """Return one object."""
    shape = view.form.shape
    if shape == "Table":
        version = revision.metadata.get("resourceVersion", "")
        return encode(_table(view, {"resourceVersion": version}, [revision]))
    if shape == "PartialObjectMetadata":
        return encode({**_PARTIAL, "metadata": revision.metadata})
    return encode(revision.json)


def list_bytes(view: View, items: Sequence[Revision], page: Page) -> Iterator[bytes]:
    """Yield a list in parts: each is made when it is asked for, so that others may run in between."""
    shape = view.form.shape
    if shape == "Table":
        table = _table(view, page.metadata(), ())
        head: Json = {key: value for key, value in table.items() if key != "rows"}
        field, item = "rows", _row_maker(view)
    else:
        field = "items"
        if shape.startswith("PartialObjectMetadata"):
            head = {"kind": "PartialObjectMetadataList", "apiVersion": _PARTIAL["apiVersion"]}
            item = _partial
        else:
            head = {"kind": f"{view.kind.kind}List", "apiVersion": view.kind.api_version}
            # Items of a list do not repeat its type, except those of custom resources.
            item = _whole if view.kind.model is dict else _without_type
        head["metadata"] = page.metadata()
    yield encode(head)[:-1] + b',"' + field.encode() + b'":['
    for start in range(0, len(items), PAGE):
        part = encode([item(revision) for revision in items[start : start + PAGE]])[1:-1]
        yield part if start == 0 else b"," + part
    yield b"]}\n"


class EventEncoder:
    """Encodes each revision once, however many watches send it."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, int], bytes] = {}

    def lines(self, view: View, entries: Sequence[Entry], *, first: bool) -> bytes:
        """Return the lines of a batch of events; ``first``: a table's columns have not been sent yet."""
        lines: list[bytes] = []
        for entry in entries:
            revision = entry.revision
            if revision is None:
                lines.append(bookmark_line(view, entry.version))
            elif view.form.shape == "Table":
                table = _table(view, {"resourceVersion": str(entry.version)}, [revision])
                if not first:
                    table["columnDefinitions"] = None
                first = False
                lines.append(_line(entry.type, encode(table)))
            elif view.form.shape:
                lines.append(_line(entry.type, object_bytes(view, revision)))
            else:
                lines.append(_line(entry.type, self._shared(view.kind, revision)))
        return b"".join(lines)

    def _shared(self, kind: Kind[Any], revision: Revision) -> bytes:
        key = (kind.api_version, kind.plural, revision.version)
        found = self._objects.get(key)
        if found is None:
            found = self._objects[key] = encode(revision.json)
            if len(self._objects) > _CACHED_EVENTS:
                del self._objects[next(iter(self._objects))]
        return found


def bookmark_line(view: View, version: int, *, end_of_initial: bool = False) -> bytes:
    """Return a BOOKMARK event, by which a reader knows how far it has come."""
    metadata: Json = {"resourceVersion": str(version), "creationTimestamp": None}
    if end_of_initial:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    if view.form.shape == "Table":
        body: Json = {**_table(view, {"resourceVersion": str(version)}, ()), "columnDefinitions": None}
        row = {"kind": view.kind.kind, "apiVersion": view.kind.api_version, "metadata": metadata}
        body["rows"] = [{"cells": [], "object": row}]
        return _line("BOOKMARK", encode(body))
    if view.form.shape:
        return _line("BOOKMARK", encode({**_PARTIAL, "metadata": metadata}))
    kind = view.kind
    return _line(
        "BOOKMARK", encode({"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata})
    )


def error_line(status: Json) -> bytes:
    """Return an ERROR event, the last of a watch."""
    return _line("ERROR", encode(status))


def _line(kind: str, body: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + body + b"}\n"


def _table(view: View, metadata: Json, revisions: Sequence[Revision]) -> Json:
    maker = _row_maker(view)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns_of(view.kind),
        "rows": [maker(revision) for revision in revisions],
    }


def _row_maker(view: View) -> Callable[[Revision], Any]:
    kind, include, now = view.kind, view.include, view.now

    def make(revision: Revision) -> Json:
        row: Json = {"cells": row_of(kind, revision.json, now)}
        if include == "Object":
            row["object"] = revision.json
        elif include != "None":
            row["object"] = _partial(revision)
        return row

    return make


def _partial(revision: Revision) -> Any:
    return {**_PARTIAL, "metadata": revision.metadata}


def _whole(revision: Revision) -> Any:
    return revision.json


def _without_type(revision: Revision) -> Any:
    return {key: value for key, value in revision.json.items() if key not in {"kind", "apiVersion"}}
