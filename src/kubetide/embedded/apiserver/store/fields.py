"""Sets of fields: which places of an object a manager owns, and how they are written down.

A path is a tuple of elements as ``FieldsV1`` writes them: ``f:name`` for a member, ``k:{...}`` for an
item of a list with keys, ``v:...`` for an item of a set. Owned are values: scalars, lists and maps
that are one value, empty maps, and the items of lists. That an outer map "is there" is owned by
nobody, which is where this says less than upstream's ``"."`` of maps.

Source: structured-merge-diff v6 (fieldpath, typed), as apiserver v1.36 uses it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kubetide.embedded.apiserver.patches.merging import Shape
from kubetide.objects.base import Json

Path = tuple[str, ...]
Paths = frozenset[Path]
NOTHING: Paths = frozenset()

_ITEM = object()
"""The value of a list's item as such: that it is there."""


class FieldsError(ValueError):
    """An object with list items whose keys are not unique; ``str()`` names the place."""


def values_in(obj: Json, shape: Shape) -> dict[Path, Any]:
    """Return every place that can be owned, with its value. Raises FieldsError."""
    found: dict[Path, Any] = {}
    for key, value in obj.items():
        if value is not None:
            _collect(value, shape.child(key), (f"f:{key}",), found)
    return found


def _collect(value: Any, shape: Shape, path: Path, found: dict[Path, Any]) -> None:
    if isinstance(value, dict) and value and not shape.atomic:
        for key, member in value.items():
            if member is not None:
                _collect(member, shape.child(key), (*path, f"f:{key}"), found)
    elif isinstance(value, list) and shape.list_type != "atomic":
        for element, item in items_of(value, shape, path):
            place = (*path, element)
            found[place] = _ITEM
            if isinstance(item, dict) and not shape.item.atomic:
                for key, member in item.items():
                    if member is not None:
                        _collect(member, shape.item.child(key), (*place, f"f:{key}"), found)
            elif isinstance(item, dict):
                found[place] = item
    else:
        found[path] = value


def items_of(items: list[Any], shape: Shape, path: Path = ()) -> list[tuple[str, Any]]:
    """Return the items of a list that is not one value, each with its element. Raises FieldsError."""
    found: dict[str, Any] = {}
    for index, item in enumerate(items):
        element = _element_of(item, shape, path, index)
        if element in found:
            raise FieldsError(f"{text_of(path)}: duplicate entries for key {_text(element)}")
        found[element] = item
    return list(found.items())


def _element_of(item: Any, shape: Shape, path: Path, index: int) -> str:
    if shape.list_type == "set":
        return "v:" + _json(item)
    at = f"{text_of(path)}: element {index}: associative list with keys"
    if not isinstance(item, dict):
        raise FieldsError(f"{at} may not have non-map elements")
    keys = {}
    for key in sorted(shape.keys):
        value = item.get(key)
        if value is None:
            value = shape.key_defaults.get(key)
        if value is not None:
            keys[key] = value
    if not keys:
        names = " ".join(json.dumps(key) for key in shape.keys)
        raise FieldsError(
            f"{at} has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return "k:" + _json(keys)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


# ── Text and FieldsV1 ───────────────────────────────────────────────────────────────────────────


def text_of(path: Path) -> str:
    """Return a path as messages write it: ``.spec.containers[name="app"].image``."""
    return "".join(_text(element) for element in path)


def _text(element: str) -> str:
    kind, _, name = element.partition(":")
    if kind == "f":
        return f".{name}"
    if kind == "v":
        return f"[={name}]"
    keys = json.loads(name)
    return "[" + ",".join(f"{key}={_json(value)}" for key, value in sorted(keys.items())) + "]"


def to_fields_v1(paths: Iterable[Path]) -> Json:
    """Write a set of paths down as ``FieldsV1``, in order."""
    root: Json = {}
    for path in sorted(paths):
        node = root
        for depth, element in enumerate(path):
            inner = node.get(element)
            if inner is None:
                inner = node[element] = {}
            elif not inner and depth < len(path) - 1:
                inner["."] = {}  # what was a member of the set becomes the parent of others
            node = inner
    return root


def from_fields_v1(fields: Any) -> Paths:
    """Read ``FieldsV1``; what cannot be read is no field."""
    found: list[Path] = []
    _read(fields, (), found)
    return frozenset(found)


def _read(node: Any, path: Path, found: list[Path]) -> None:
    if not isinstance(node, dict):
        return
    if not node and path:
        found.append(path)
    for element, inner in node.items():
        if element == ".":
            found.append(path)
        elif element[:2] in {"f:", "k:", "v:"}:
            _read(inner, (*path, element), found)


# ── What a write does to the fields ─────────────────────────────────────────────────────────────


class Comparison:
    """What is different between two states of an object."""

    def __init__(self, old: Mapping[Path, Any], new: Mapping[Path, Any]) -> None:
        self.added: Paths = frozenset(path for path in new if path not in old)
        self.removed: Paths = frozenset(path for path in old if path not in new)
        self.modified: Paths = frozenset(
            path for path, value in new.items() if path in old and old[path] != value
        )

    @property
    def written(self) -> Paths:
        """What has another value now, or is new."""
        return self.added | self.modified


def without(paths: Paths, prefixes: Iterable[Path]) -> Paths:
    """Return the paths that are not at or below any of the prefixes."""
    dropped = tuple(prefixes)
    return frozenset(path for path in paths if not any(path[: len(prefix)] == prefix for prefix in dropped))


def only(paths: Paths, prefix: Path) -> Paths:
    """Return the paths at or below the prefix."""
    return frozenset(path for path in paths if path[: len(prefix)] == prefix)


# ── Merging and removing ────────────────────────────────────────────────────────────────────────


def merge(live: Any, config: Any, shape: Shape) -> Any:
    """Lay an applied configuration over the live value: what it says wins, what it leaves out stays."""
    if isinstance(config, dict) and isinstance(live, dict) and not shape.atomic:
        merged = dict(live)
        for key, value in config.items():
            merged[key] = merge(live.get(key), value, shape.child(key))
        return merged
    if isinstance(config, list) and isinstance(live, list) and shape.list_type != "atomic":
        return _merge_items(dict(items_of(live, shape)), dict(items_of(config, shape)), shape)
    return config


def _merge_items(live: dict[str, Any], config: dict[str, Any], shape: Shape) -> list[Any]:
    """Items that both have come in the configuration's order, the live ones' own stay before their neighbour."""
    result: list[Any] = []
    waiting = [element for element in live if element not in config]
    places = {element: place for place, element in enumerate(live)}
    for element, item in config.items():
        if element in live:
            while waiting and places[waiting[0]] < places[element]:
                result.append(live[waiting.pop(0)])
            result.append(merge(live[element], item, shape.item))
        else:
            result.append(item)
    return [*result, *(live[element] for element in waiting)]


def remove(obj: Any, paths: Iterable[Path], shape: Shape) -> Any:
    """Return the value without what stands at those paths; maps that this empties go too."""
    members: dict[str, list[Path]] = {}
    gone: set[str] = set()
    for path in paths:
        if len(path) == 1:
            gone.add(path[0])
        elif path:
            members.setdefault(path[0], []).append(path[1:])
    if isinstance(obj, dict):
        result = {}
        for key, value in obj.items():
            element = f"f:{key}"
            if element in gone:
                continue
            if element in members:
                left = remove(value, members[element], shape.child(key))
                if left in ({}, []) and value not in ({}, []):
                    continue
                result[key] = left
            else:
                result[key] = value
        return result
    if isinstance(obj, list) and shape.list_type != "atomic":
        items = []
        for element, item in items_of(obj, shape):
            if element in gone:
                continue
            # An item that stays keeps the keys that it is known by.
            inner = [
                path for path in members.get(element, ()) if path[0].removeprefix("f:") not in shape.keys
            ]
            items.append(remove(item, inner, shape.item) if inner else item)
        return items
    return obj
