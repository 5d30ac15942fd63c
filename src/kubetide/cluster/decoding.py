"""From bytes to the typed objects of the port: only the fields in use."""

from __future__ import annotations

from collections.abc import Sequence
from sys import intern
from typing import Any, Generic, TypeVar, cast

import msgspec

from kubetide.cluster.refusals import UNREADABLE, error_of_status
from kubetide.objects.base import json_name
from kubetide.objects.kinds import Kind, may_be_unreadable
from kubetide.objects.meta import ObjectMeta
from kubetide.ports.cluster import EventType, UnreadableObject, WatchEvent, field_problem
from kubetide.ports.errors import InternalError

T = TypeVar("T")

INITIAL_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark after the objects that a watch begins with."""


class ListMeta(msgspec.Struct, rename=json_name):
    """What a list says of itself; ``continue_`` leads to its next part."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ObjectList(msgspec.Struct, Generic[T]):
    """A list, or a part of one."""

    metadata: ListMeta
    items: tuple[T, ...] | None = None


class _Identified(msgspec.Struct):
    """What is read of an object of which no more can be read."""

    metadata: ObjectMeta


class _RawEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _TypedEvent(msgspec.Struct, Generic[T]):
    type: str
    object: T


_OF_OBJECTS = tuple(f'{{"type":"{one}",'.encode() for one in ("ADDED", "MODIFIED", "DELETED"))
"""What events begin with that bring an object of the kind, as Go writes them: these are read in one go."""


class _BookmarkMeta(msgspec.Struct, rename=json_name):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Bookmark(msgspec.Struct):
    metadata: _BookmarkMeta


_read_event = msgspec.json.Decoder(_RawEvent).decode
_read_bookmark = msgspec.json.Decoder(_Bookmark).decode
_set = msgspec.structs.force_setattr

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_event_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decoder_of(model: Any) -> msgspec.json.Decoder[Any]:
    """Return the decoder of a type; making one costs more than using it."""
    found = _decoders.get(model)
    if found is None:
        found = _decoders[model] = msgspec.json.Decoder(model)
    return found


def _event_decoder_of(model: Any) -> msgspec.json.Decoder[Any]:
    found = _event_decoders.get(model)
    if found is None:
        found = _event_decoders[model] = msgspec.json.Decoder(_TypedEvent[model])
    return found


def decode(model: type[T], body: bytes) -> T:
    """Read an answer. Raises InternalError for one that cannot be read."""
    try:
        return cast("T", decoder_of(model).decode(body))
    except UNREADABLE as error:
        raise InternalError(f"the server's answer cannot be read: {error}") from error


def decode_list(kind: Kind[T], body: bytes) -> tuple[ObjectList[T], Sequence[UnreadableObject]]:
    """Read a list, and which of its items cannot be read; items get the types that servers leave out.

    Raises InternalError.
    """
    model: Any = kind.model
    unread: list[UnreadableObject] = []
    try:
        found = cast("ObjectList[T]", decode(ObjectList[model], body))
    except InternalError:
        if not may_be_unreadable(kind):
            raise
        parts = decode(ObjectList[msgspec.Raw], body)
        items: list[Any] = []
        for part in parts.items or ():
            one = _read_or_unread(kind, part)
            (unread if isinstance(one, UnreadableObject) else items).append(one)
        found = ObjectList(parts.metadata, tuple(items))
    for item in found.items or ():
        _name_type(kind, item)
        _meta_of(item)
    return found, unread


def decode_event(line: bytes, kind: Kind[T]) -> tuple[WatchEvent[T], bool]:
    """Read an event, and whether it marks the end of what a watch begins with.

    Raises: the ApiError that an ERROR event carries, InternalError for what cannot be read.
    """
    found: Any
    try:
        if line.startswith(_OF_OBJECTS):
            typed = _event_decoder_of(kind.model).decode(line)
            said, found = typed.type, typed.object
        else:
            event = _read_event(line)
            if event.type == "ERROR":
                raise error_of_status(msgspec.json.decode(event.object))
            if event.type == "BOOKMARK":
                # Its object holds no more than this, and nulls where a type wants lists.
                mark = _read_bookmark(event.object).metadata
                ends = (mark.annotations or {}).get(INITIAL_END) == "true"
                return WatchEvent("BOOKMARK", None, mark.resource_version, "", ""), ends
            said, found = event.type, decoder_of(kind.model).decode(event.object)
    except UNREADABLE as error:
        if not may_be_unreadable(kind):
            raise InternalError(f"an event of a watch cannot be read: {error}") from error
        said, found = _unread_event(line, kind)
    if not isinstance(found, dict | UnreadableObject):
        for field in ("api_version", "kind"):
            _set(found, field, intern(getattr(found, field)))
    meta = _meta_of(found)
    made = WatchEvent(event_type(said), found, meta.resource_version, meta.namespace, meta.name)
    return cast("WatchEvent[T]", made), False


def _unread_event(line: bytes, kind: Kind[Any]) -> tuple[str, Any]:
    try:
        event = _read_event(line)
    except UNREADABLE as error:
        raise InternalError(f"an event of a watch cannot be read: {error}") from error
    return event.type, _read_or_unread(kind, event.object)


def _read_or_unread(kind: Kind[Any], raw: msgspec.Raw) -> Any:
    """Read an object, or ``UnreadableObject`` in its place. Raises InternalError for one whose metadata cannot be read either, or names nothing."""
    try:
        return decoder_of(kind.model).decode(raw)
    except UNREADABLE as error:
        return UnreadableObject(_meta_of(decode(_Identified, bytes(raw))), field_problem(error))


def _meta_of(item: Any) -> ObjectMeta:
    """Return the metadata of an object. Raises InternalError for one that no cache could find again."""
    try:
        plain = isinstance(item, dict)
        meta = msgspec.convert(item.get("metadata"), ObjectMeta) if plain else item.metadata
    except UNREADABLE as error:
        raise InternalError(f"the metadata of an object cannot be read: {error}") from error
    if not meta.name:
        raise InternalError("the server's answer cannot be read: an object has no name")
    return cast("ObjectMeta", meta)


def event_type(text: str) -> EventType:
    """Return a type of events that bring objects. Raises InternalError."""
    if text not in {"ADDED", "MODIFIED", "DELETED"}:
        raise InternalError(f'an event of a watch cannot be read: unknown type "{text}"')
    return cast("EventType", text)


def _name_type(kind: Kind[Any], item: Any) -> None:
    """Write into an item of a list what type it is of; nobody shares it yet."""
    if isinstance(item, dict):
        item.setdefault("apiVersion", kind.api_version)
        item.setdefault("kind", kind.kind)
    else:
        _set(item, "api_version", kind.api_version)
        _set(item, "kind", kind.kind)
