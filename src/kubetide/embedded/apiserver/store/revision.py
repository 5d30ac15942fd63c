"""One object at one version: its full JSON, and the struct it is read as.

A revision is immutable and shared by the store, its history, every watcher and every list. Its
JSON shares structure with the revisions before it, so nobody may change it.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from kubetide.objects.base import Json
from kubetide.objects.meta import Key

T = TypeVar("T")

_PARTS = ("spec", "status")


class Revision:
    """The JSON of an object at ``version``; structs are made when first asked for, once a model."""

    __slots__ = ("_model", "_others", "_struct", "json", "key", "version")

    def __init__(self, version: int, key: Key, json: Json) -> None:
        self.version = version
        self.key = key
        self.json = json
        self._model: type[Any] | None = None
        self._struct: Any = None
        self._others: dict[type[Any], Any] | None = None

    def read_as(self, model: type[T]) -> T:
        """Return the object as ``model``; ``dict`` gives the JSON itself.

        Raises: msgspec.ValidationError when a field has another type than the model says. Stored
        objects have been read as their kind's model before, so for that it cannot happen.
        """
        if model is self._model:
            return cast("T", self._struct)
        if model is dict:
            return cast("T", self.json)
        if self._others is not None and model in self._others:
            return cast("T", self._others[model])
        struct = msgspec.convert(self.json, model)
        if self._model is None:
            self._model, self._struct = model, struct
        else:
            self._others = {**(self._others or {}), model: struct}
        return struct

    def read_after(self, old: Revision, model: type[T], *, same_metadata: bool) -> T:
        """Return the object as ``model``, with the parts of the revision before it that are still its JSON.

        Most writes change one part: the others are then neither read anew nor held twice, and readers
        see at once that they are the same. With ``same_metadata`` the metadata is too, but for the
        version. Raises as ``read_as``.
        """
        if old._model is not model:
            return self.read_as(model)
        former: Any = old._struct
        known = {
            name: getattr(former, name)
            for name in _PARTS
            if name in self.json and self.json[name] is old.json.get(name) and hasattr(former, name)
        }
        if same_metadata:
            known["metadata"] = replace(former.metadata, resource_version=str(self.version))
        rest = {name: value for name, value in self.json.items() if name not in known}
        struct: Any = msgspec.convert(rest, model)
        self._model, self._struct = model, replace(struct, **known)
        return cast("T", self._struct)

    @property
    def metadata(self) -> Json:
        return cast("Json", self.json["metadata"])

    @property
    def uid(self) -> str:
        return cast("str", self.json["metadata"].get("uid", ""))


class Change(msgspec.Struct, frozen=True):
    """One write: what was there before, what is there now. ``new`` is None after a removal.

    ``last`` is the state that an event carries: the new one, or that of a removed object with the
    version of its removal.
    """

    old: Revision | None
    new: Revision | None
    last: Revision
