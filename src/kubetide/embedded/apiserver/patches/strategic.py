"""Strategic merge patches: merge patches that know which lists have keys.

Source: apimachinery v1.36, util/strategicpatch (``StrategicMergePatch``), and its order of list
items: what the patch names comes in the patch's order, what only the object has keeps its own, and
where nothing says which comes first, the patch's item does.

Inputs are never changed; a result shares with them what it can, so neither may be changed later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubetide.embedded.apiserver.patches.merging import PLAIN, Shape
from kubetide.units.patch import same_json

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"

Json = dict[str, Any]


class StrategicPatchError(ValueError):
    """A strategic merge patch that cannot be read or applied; ``str()`` is upstream's sentence."""


class StrategicFormatError(StrategicPatchError):
    """Of those, the ones that upstream answers as a fault of the server."""


def strategic_merge(target: Json, patch: Json, shape: Shape = PLAIN) -> Json:
    """Apply a strategic merge patch to an object of that shape. Raises StrategicPatchError."""
    if not isinstance(patch, dict):
        raise StrategicPatchError("invalid JSON document")
    return _merge_map(target, patch, shape)


def _merge_map(original: Json, patch: Json, shape: Shape) -> Json:
    if _PATCH in patch:
        directive = patch[_PATCH]
        if directive == "replace":
            return {key: value for key, value in patch.items() if key != _PATCH}
        if directive == "delete":
            return {}
        raise StrategicFormatError(f"unknown patch type: {directive} in map: {go_text(patch)}")
    merged = dict(original)
    _retain(merged, patch)
    done = {_RETAIN}
    for key, values in patch.items():
        if key.startswith(_DELETE):
            done.add(key)
            _delete_scalars(merged, key.removeprefix(_DELETE), values)
    for key, order in patch.items():
        if key.startswith(_ORDER):
            member = key.removeprefix(_ORDER)
            done |= {key, member}
            _merge_in_order(merged, patch, member, order, shape.child(member))
    for key, value in patch.items():
        if key in done:
            continue
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge_value(merged.get(key), value, shape.child(key))
    return merged


def _merge_value(original: Any, patch: Any, shape: Shape) -> Any:
    if isinstance(original, dict) and isinstance(patch, dict):
        return _without_directives(patch) if shape.replace else _merge_map(original, patch, shape)
    if isinstance(original, list) and isinstance(patch, list) and shape.merge:
        return _merge_list(original, patch, shape)
    return _without_directives(patch)


def _without_directives(value: Any) -> Any:
    """Return a patch's value as it stands where the object has nothing: no nulls, no directives."""
    if isinstance(value, dict):
        if value.get(_PATCH) == "delete":
            return {}
        return {
            key: _without_directives(item)
            for key, item in value.items()
            if item is not None and not key.startswith("$")
        }
    if isinstance(value, list):
        return [
            _without_directives(item)
            for item in value
            if not (isinstance(item, dict) and (item.get(_PATCH) == "delete" or set(item) == {_PATCH}))
        ]
    return value


def _retain(merged: Json, patch: Json) -> None:
    """Remove what ``$retainKeys`` does not name; the patch itself may set only what it names."""
    if _RETAIN not in patch:
        return
    retained = patch[_RETAIN]
    if not isinstance(retained, list):
        raise StrategicPatchError("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in retained:
            raise StrategicPatchError("invalid patch format of retainKeys")
    for key in list(merged):
        if key not in retained:
            del merged[key]


def _delete_scalars(merged: Json, member: str, values: Any) -> None:
    if not isinstance(values, list):
        raise StrategicPatchError("invalid patch format of primitive list")
    current = merged.get(member)
    if isinstance(current, list):
        merged[member] = [item for item in current if not _holds(values, item)]


def _merge_in_order(merged: Json, patch: Json, member: str, order: Any, shape: Shape) -> None:
    """Merge a list and brings it into the order that ``$setElementOrder`` gives."""
    if not isinstance(order, list):
        raise StrategicPatchError("invalid patch format of setElementOrder list")
    original = merged.get(member)
    original = original if isinstance(original, list) else []
    sent = patch.get(member)
    sent = sent if isinstance(sent, list) else []
    key = shape.merge_key
    _check_order([item for item in sent if not _is_special(item)], order, member, key)
    if not sent and member not in merged:
        return
    items = _merge_list(original, sent, shape) if sent else original
    merged[member] = _arranged(items, order, original, key)


def _check_order(sent: list[Any], order: list[Any], member: str, key: str) -> None:
    """Raise unless the patch's own items stand in the list of the order, in that order."""
    places = [_index(order, item, key) for item in sent]
    if -1 in places or places != sorted(places):
        raise StrategicPatchError(
            f"The order in patch list:\n{sent}\n doesn't match {_ORDER}{member} list:\n{order}\n"
        )


def _is_special(item: Any) -> bool:
    return isinstance(item, dict) and _PATCH in item


def _merge_list(original: list[Any], patch: list[Any], shape: Shape) -> list[Any]:
    key = shape.merge_key
    if not original and not patch:
        return original
    if any(isinstance(item, list) for item in (*original, *patch)):
        raise StrategicPatchError("lists of lists are not supported")
    if len({isinstance(item, dict) for item in (*original, *patch)}) > 1:
        raise StrategicPatchError("list element types are not identical")
    if not key:
        merged: list[Any] = []
        for item in (*original, *patch):
            if not _holds(merged, item):
                merged.append(item)
        return _arranged(merged, patch, original, "")
    original, patch = _special(original, patch, key)
    merged = list(original)
    for item in patch:
        if key not in item:
            raise StrategicFormatError(f"map: {go_text(item)} does not contain declared merge key: {key}")
        place = _index(merged, item, key)
        if place >= 0:
            merged[place] = _merge_map(merged[place], item, shape.item)
        else:
            merged.append(_without_directives(item))
    return _arranged(merged, patch, original, key)


def _special(original: list[Json], patch: list[Json], key: str) -> tuple[list[Json], list[Json]]:
    """Carry out ``$patch: delete`` and ``$patch: replace`` among the items; return what is left of both."""
    plain = []
    replaces = False
    for item in patch:
        directive = item.get(_PATCH)
        if directive is None:
            plain.append(item)
        elif directive == "delete":
            if key not in item:
                raise StrategicPatchError(f"delete patch type with no merge key defined: {key}")
            original = [other for other in original if not _same_key(other, item, key)]
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise StrategicPatchError("merge patch type is not supported in a list")
        else:
            raise StrategicPatchError(f"unknown patch type: {directive}")
    return ([], plain) if replaces else (original, plain)


def _arranged(items: list[Any], order: Sequence[Any], original: Sequence[Any], key: str) -> list[Any]:
    """Bring a merged list into order: see the module."""
    named = sorted(
        (item for item in items if _index(order, item, key) >= 0), key=lambda item: _index(order, item, key)
    )
    others = sorted(
        (item for item in items if _index(order, item, key) < 0),
        key=lambda item: _index(original, item, key),
    )
    result: list[Any] = []
    left, right = 0, 0
    while left < len(others) and right < len(named):
        a = _index(original, others[left], key)
        b = _index(original, named[right], key)
        if 0 <= a < b:
            result.append(others[left])
            left += 1
        else:
            result.append(named[right])
            right += 1
    return [*result, *others[left:], *named[right:]]


def _index(items: Sequence[Any], value: Any, key: str) -> int:
    """Return the place of the item with the same key (the same value, without one), or -1."""
    for place, item in enumerate(items):
        if _same_key(item, value, key) if key else same_json(item, value):
            return place
    return -1


def _same_key(a: Any, b: Any, key: str) -> bool:
    if not isinstance(a, dict) or not isinstance(b, dict) or key not in a or key not in b:
        return False
    return same_json(a[key], b[key])


def _holds(items: Sequence[Any], value: Any) -> bool:
    return any(same_json(item, value) for item in items)


def go_text(value: Any) -> str:
    """Return a JSON value as Go's ``%v`` prints it, which is how upstream's messages show patches."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(go_text(item) for item in value)}]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
