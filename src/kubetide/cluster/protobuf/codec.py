"""Lists and watches of pods and nodes in protobuf.

Source: API concepts v1.36, "Kubernetes Protobuf encoding": a list is the magic number and a message with the
type and the list; a watch is a stream of frames, four bytes of length before each (big-endian), of events
whose objects have the form of a body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar, cast

from google.protobuf.message import DecodeError

from kubetide.cluster.decoding import INITIAL_END, ListMeta, ObjectList, event_type
from kubetide.cluster.protobuf.messages import EVENT, TYPE_META, envelope, list_envelope
from kubetide.cluster.protobuf.readers import Reader, Readers
from kubetide.cluster.protobuf.shared import Shared
from kubetide.cluster.refusals import error_of_status
from kubetide.objects.api_types import type_of_kind
from kubetide.objects.kinds import NODES, PODS, Kind
from kubetide.objects.protobuf import MAGIC, ProtobufError, decode_object
from kubetide.ports.cluster import WatchEvent
from kubetide.ports.errors import InternalError

T = TypeVar("T")

KINDS: tuple[Kind[Any], ...] = (PODS, NODES)
"""Those of which there are many; all else comes as JSON."""

_UNREADABLE = (DecodeError, ValueError, OverflowError)
"""What decoding raises: of bytes that are no message, of text that is not UTF-8, and of times without a year."""
_LENGTH = 4
_LONGEST_FRAME = 64 << 20
"""Bytes of one event; etcd keeps no object of over 1.5 MiB."""


class _Forms(NamedTuple):
    """What the objects of a kind come in, and what reads them."""

    one: Any
    many: Any
    read: Reader


class ProtobufCodec:
    """Reads pods and nodes into the structs that JSON gives, too."""

    def __init__(self) -> None:
        types = {kind.resource: type_of_kind(kind) for kind in KINDS}
        readers = Readers({types[kind.resource]: kind.model for kind in KINDS})
        self._event = readers.types[EVENT].FromString
        type_meta = readers.types[TYPE_META].FromString
        self._types: Shared[bytes, tuple[str, str]] = Shared(
            lambda piece: ((said := type_meta(piece)).api_version, said.kind)
        )
        self._forms = {
            kind.resource: _Forms(
                readers.types[envelope(types[kind.resource])],
                readers.types[list_envelope(types[kind.resource])],
                readers.reader(
                    kind.model, types[kind.resource], api_version=kind.api_version, kind=kind.kind
                ),
            )
            for kind in KINDS
        }

    def knows(self, kind: Kind[Any]) -> bool:
        """Return whether objects of the kind can be read."""
        return kind in KINDS

    def decode_list(self, kind: Kind[T], body: bytes) -> ObjectList[T]:
        """Read a list. Raises InternalError."""
        forms = self._forms[kind.resource]
        try:
            whole = self._opened(forms.many, body, f"{kind.kind}List", kind)
            items = tuple(map(forms.read, whole.items))
        except _UNREADABLE as error:
            raise InternalError(f"the server's answer cannot be read: {error}") from error
        for item in items:
            if not item.metadata.name:
                raise InternalError("the server's answer cannot be read: an object has no name")
        meta = whole.metadata
        return ObjectList(ListMeta(meta.resource_version, meta.continue_), items)

    @staticmethod
    def cut(rest: bytes, piece: bytes) -> tuple[Sequence[bytes], bytes]:
        """Cut a piece of a stream into whole frames; return them, and the beginning of the next one.

        Raises: InternalError for a frame that is too long to be one.
        """
        data, at = rest + piece, 0
        frames = []
        while len(data) - at >= _LENGTH:
            begin = at + _LENGTH
            end = begin + int.from_bytes(data[at:begin], "big")
            if end - begin > _LONGEST_FRAME:
                raise InternalError(f"an event of a watch is longer than {_LONGEST_FRAME >> 20} MiB")
            if end > len(data):
                break
            frames.append(data[begin:end])
            at = end
        return frames, data[at:]

    def decode_event(self, frame: bytes, kind: Kind[T]) -> tuple[WatchEvent[T], bool]:
        """Read an event, and whether it marks the end of what a watch begins with.

        Raises: the ApiError that an ERROR event carries, InternalError for what cannot be read.
        """
        try:
            event = self._event(frame)
            body = event.object.raw
            if event.type == "ERROR":
                raise error_of_status(decode_object(body))
            forms = self._forms[kind.resource]
            found = forms.read(self._opened(forms.one, body, kind.kind, kind))
        except _UNREADABLE as error:
            raise InternalError(f"an event of a watch cannot be read: {error}") from error
        meta = found.metadata
        if event.type == "BOOKMARK":
            ends = (meta.annotations or {}).get(INITIAL_END) == "true"
            return WatchEvent("BOOKMARK", None, meta.resource_version, "", ""), ends
        if not meta.name:
            raise InternalError("an event of a watch cannot be read: its object has no name")
        made = WatchEvent(event_type(event.type), found, meta.resource_version, meta.namespace, meta.name)
        return cast("WatchEvent[T]", made), False

    def _opened(self, form: Any, body: bytes, kind_name: str, kind: Kind[Any]) -> Any:
        """Return what an envelope holds. Raises ProtobufError for another kind, whose numbers mean other things."""
        if not body.startswith(MAGIC):
            raise ProtobufError("the magic number is missing")
        whole = form.FromString(body[len(MAGIC) :])
        found = self._types[whole.type_meta]
        if found != (kind.api_version, kind_name):
            said_version, said_kind = found
            raise ProtobufError(
                f"it holds {said_kind!r} of {said_version!r}, not {kind_name} of {kind.api_version}"
            )
        return whole.raw
