"""JSON patches: RFC 7386 merge patch, RFC 6902 JSON patch.

Inputs are never changed. A result is new along the changed path and shares everything else with
the inputs, so neither may be changed afterwards.
"""

from __future__ import annotations

import re
from typing import Any

Value = Any
"""Any JSON value: dict, list, str, int, float, bool, None."""


class PatchError(ValueError):
    """A JSON patch that cannot be read or applied; ``index`` counts its operations from 0."""

    def __init__(self, index: int, detail: str) -> None:
        super().__init__(f"operation {index}: {detail}")
        self.index = index
        self.detail = detail


def same_json(a: Value, b: Value) -> bool:
    """Return whether two JSON values are equal: ``1`` equals ``1.0`` and differs from ``true``."""
    if isinstance(a, dict):
        return (
            isinstance(b, dict)
            and len(a) == len(b)
            and all(key in b and same_json(value, b[key]) for key, value in a.items())
        )
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same_json, a, b))
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)


# ── Merge patch ─────────────────────────────────────────────────────────────────────────────────


def merge_patch(target: Value, patch: Value) -> Value:
    """Apply a merge patch: members are merged, ``null`` removes, everything else replaces.

    Source: RFC 7386, section 2.
    """
    if not isinstance(patch, dict):
        return patch
    if not isinstance(target, dict):
        target = {}
    elif not patch:
        return target
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value) if isinstance(value, dict) else value
    return merged


def merge_diff(old: Value, new: Value) -> Value:
    """Return the smallest merge patch that makes new out of old; ``{}`` when they are equal.

    A ``null`` member in new cannot be said in a merge patch: it is left out, as if it were absent.
    """
    if not isinstance(old, dict) or not isinstance(new, dict):
        return {} if isinstance(new, dict) and same_json(old, new) else new
    patch: dict[str, Value] = {key: None for key in old if new.get(key) is None}
    for key, value in new.items():
        if value is None:
            continue
        if key not in old:
            patch[key] = value
        elif not same_json(old[key], value):
            both = isinstance(old[key], dict) and isinstance(value, dict)
            patch[key] = merge_diff(old[key], value) if both else value
    return patch


# ── JSON patch ──────────────────────────────────────────────────────────────────────────────────

_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_BAD_ESCAPE = re.compile(r"~(?![01])")


def json_patch(target: Value, ops: Value) -> Value:
    """Apply add, remove, replace, move, copy and test in order; all of them or none.

    Raises: PatchError with the index of the operation that cannot be read or applied.
    Source: RFC 6902, and RFC 6901 for pointers.
    """
    if not isinstance(ops, list):
        raise PatchError(0, f"a JSON patch is a list of operations, not {type(ops).__name__}")
    for index, op in enumerate(ops):
        try:
            target = _apply(target, op)
        except _OpError as exc:
            raise PatchError(index, str(exc)) from None
    return target


class _OpError(Exception):
    """What is wrong with one operation; the index is added outside."""


def _apply(target: Value, op: Value) -> Value:
    if not isinstance(op, dict):
        raise _OpError("an operation is an object with op and path")
    name = op.get("op")
    if not isinstance(name, str):
        raise _OpError("op is one of add, remove, replace, move, copy, test")
    path = _pointer(op, "path")
    if name == "add":
        return _edit(target, path, "add", _value(op))
    if name == "remove":
        return _edit(target, path, "remove", None)
    if name == "replace":
        return _edit(target, path, "replace", _value(op))
    if name == "test":
        found = _find(target, path)
        if not same_json(found, _value(op)):
            raise _OpError(f"test failed: the value at {_text(path)} differs")
        return target
    if name in {"move", "copy"}:
        source = _pointer(op, "from")
        value = _find(target, source)
        if name == "move":
            if source == path:
                return target
            if path[: len(source)] == source:
                raise _OpError(f"cannot move {_text(source)} into itself")
            target = _edit(target, source, "remove", None)
        return _edit(target, path, "add", value)
    raise _OpError(f"unknown op {name!r}: one of add, remove, replace, move, copy, test")


def _value(op: dict[str, Value]) -> Value:
    if "value" not in op:
        raise _OpError(f"op {op['op']!r} needs a value")
    return op["value"]


def _pointer(op: dict[str, Value], member: str) -> tuple[str, ...]:
    text = op.get(member)
    if not isinstance(text, str):
        raise _OpError(f"op {op.get('op')!r} needs {member}, a JSON pointer")
    if not text:
        return ()
    if not text.startswith("/"):
        raise _OpError(f"{member} {text!r} is not a JSON pointer: it starts with /")
    if _BAD_ESCAPE.search(text):
        raise _OpError(f"{member} {text!r} is not a JSON pointer: ~ is written ~0 and / is written ~1")
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/"))


def _text(path: tuple[str, ...]) -> str:
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path) or "the whole document"


def _find(target: Value, path: tuple[str, ...]) -> Value:
    for depth, part in enumerate(path):
        target = _child(target, part, path[: depth + 1])
    return target


def _child(parent: Value, part: str, path: tuple[str, ...]) -> Value:
    if isinstance(parent, dict):
        if part in parent:
            return parent[part]
    elif isinstance(parent, list):
        return parent[_index(parent, part, path, end=len(parent) - 1)]
    raise _OpError(f"there is nothing at {_text(path)}")


def _index(parent: list[Value], part: str, path: tuple[str, ...], *, end: int) -> int:
    """Read an array index from 0 to ``end``."""
    if not _INDEX.fullmatch(part):
        raise _OpError(f"{part!r} in {_text(path)} is not an array index")
    if len(part) > 10 or int(part) > end:
        raise _OpError(f"index {part} in {_text(path)} is out of range: the array has {len(parent)} items")
    return int(part)


def _edit(target: Value, path: tuple[str, ...], action: str, value: Value, depth: int = 0) -> Value:
    """Return the target with one change at path[depth:], copying only along the way."""
    if depth == len(path):  # the whole document
        return None if action == "remove" else value
    part = path[depth]
    here = path[: depth + 1]
    if depth < len(path) - 1:
        child = _edit(_child(target, part, here), path, action, value, depth + 1)
        if isinstance(target, dict):
            return {**target, part: child}
        items = list(target)
        items[int(part)] = child
        return items
    if isinstance(target, dict):
        members = dict(target)
        if action != "add" and part not in members:
            raise _OpError(f"there is nothing at {_text(here)} to {action}")
        if action == "remove":
            del members[part]
        else:
            members[part] = value
        return members
    if isinstance(target, list):
        items = list(target)
        if action == "add":
            at = len(items) if part == "-" else _index(items, part, here, end=len(items))
            items.insert(at, value)
        else:
            at = _index(items, part, here, end=len(items) - 1)
            items[at : at + 1] = [] if action == "remove" else [value]
        return items
    raise _OpError(f"there is nothing at {_text(path[:depth])} that could hold {part!r}")
