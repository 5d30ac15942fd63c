"""What a workload's template becomes: its hash, the pods made from it, owner references, patches of status."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from kubetide.objects.base import ApiStruct, Json, json_name
from kubetide.objects.kinds import Kind
from kubetide.objects.meta import LabelSelector, ObjectMeta, OwnerReference
from kubetide.units.patch import merge_diff
from kubetide.units.selectors import Selector

# Kubernetes' alphabet for generated names: no vowels and no digits that make words.
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_HASH_LENGTH = 10


def template_hash(template: Json, collisions: int = 0) -> str:
    """Return ten characters that stand for a pod template: equal templates, equal hash, whatever their key order.

    ``collisions`` is the count by which a workload avoids a name that something else has taken.
    Upstream hashes its own in-memory form, so the characters differ from upstream's.
    """
    encoded = msgspec.json.encode([template, collisions], order="sorted")
    number = int.from_bytes(blake2b(encoded, digest_size=8).digest(), "big")
    chars = []
    for _ in range(_HASH_LENGTH):
        number, digit = divmod(number, len(_SAFE))
        chars.append(_SAFE[digit])
    return "".join(chars)


def owner_reference(kind: Kind[Any], meta: ObjectMeta) -> OwnerReference:
    """Return the reference by which an object of that kind controls what it makes."""
    return OwnerReference(
        api_version=kind.api_version,
        kind=kind.kind,
        name=meta.name,
        uid=meta.uid,
        controller=True,
        block_owner_deletion=True,
    )


def to_json(value: ApiStruct) -> Json:
    """Return the plain JSON of a struct, defaults left out."""
    plain: Json = msgspec.to_builtins(value)
    return plain


def owners_patch(meta: ObjectMeta, *, add: OwnerReference | None = None, remove_uid: str = "") -> Json:
    """Return the patch that adds or removes an owner, only if the object is still the one that was read."""
    owners = [to_json(owner) for owner in meta.owner_references or () if owner.uid != remove_uid]
    if add is not None:
        owners.append(to_json(add))
    return {
        "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "ownerReferences": owners or None,
        }
    }


def pod_from_template(template: Json, owner: OwnerReference, *, name: str) -> Json:
    """Return the body of a pod that an owner makes from its template; the spec is shared with the template."""
    given = template.get("metadata") or {}
    metadata: Json = {key: given[key] for key in ("labels", "annotations", "finalizers") if given.get(key)}
    metadata["name"] = name
    metadata["generateName"] = f"{owner.name}-"
    metadata["ownerReferences"] = [to_json(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}


def status_patch(
    old: ApiStruct, new: ApiStruct, *, resource_version: str = "", always: Sequence[str] = ()
) -> Json | None:
    """Return the merge patch from one status to another, None when they say the same.

    Fields at their default are removed, as upstream omits them; those named in ``always`` (by
    field name) are written out in every patch, as upstream never omits them.
    """
    difference: Json = {}
    for name, written in zip(new.__struct_fields__, new.__struct_encode_fields__, strict=True):
        before, now = getattr(old, name), getattr(new, name)
        if before != now:
            difference[written] = _said(before, now)
    if not difference:
        return None
    for name in always:
        difference[json_name(name)] = getattr(new, name)
    patch: Json = {"status": difference}
    if resource_version:
        patch["metadata"] = {"resourceVersion": resource_version}
    return patch


def _said(before: Any, now: Any) -> Any:
    """Return what a merge patch says for a field that has changed."""
    if isinstance(now, dict):
        return merge_diff(before or {}, now)
    if isinstance(now, tuple):
        return [msgspec.to_builtins(item) for item in now] or None
    # Falsy is what is left out: None, 0, "".
    return msgspec.to_builtins(now) if now else None


class Selectors:
    """Parsed selectors of objects, by uid; parsed again only when a selector has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[LabelSelector | None, Selector]] = {}

    def of(self, uid: str, selector: LabelSelector | None) -> Selector:
        """Return the selector of the object. Raises ValueError when it is not valid."""
        known = self._known.get(uid)
        if known is not None and known[0] == selector:
            return known[1]
        parsed = Selector.from_object(selector)
        self._known[uid] = (selector, parsed)
        return parsed

    def forget(self, uid: str) -> None:
        """Drop the selector of an object that is gone."""
        self._known.pop(uid, None)


def scaled_value(value: str | int, total: int, *, round_up: bool) -> int:
    """Return an int-or-percent as a number: ``"25%"`` of ``total``, rounded as asked.

    Raises: ValueError when it is neither. Source: apimachinery 1.36 intstr, GetScaledValueFromIntOrPercent.
    """
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if digits == value or not (digits.isascii() and digits.isdigit()):
        raise ValueError(
            f"invalid value for IntOrString: invalid type: string is not a percentage: {value!r}"
        )
    product = int(digits) * total
    return -(-product // 100) if round_up else product // 100
