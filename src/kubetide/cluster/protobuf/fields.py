"""Which fields of a message a struct has: these alone are read, the rest is skipped while the message is parsed."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from kubetide.objects.api_types import QUANTITY, TIME, Field, api_types
from kubetide.objects.meta import Condition, ObjectMeta
from kubetide.objects.node import Node, NodeSpec, NodeStatus
from kubetide.objects.pod import Container, ContainerStatus, Pod, PodSpec, PodStatus, Volume

Form = Literal["number", "name", "text", "time", "amount", "json", "struct", "apart", "message", "inlined"]
Many = Literal["one", "list", "map"]

# Of these hardly two objects have the same, so that looking for an equal one would be in vain.
_OWN: frozenset[Any] = frozenset(
    {
        Condition,
        Container,
        ContainerStatus,
        Node,
        NodeSpec,
        NodeStatus,
        ObjectMeta,
        Pod,
        Volume,  # of its token, with a name of its own, in every pod
    }
)
_OWN_TEXTS = frozenset({"name", "generate_name", "uid", "resource_version"})


class ModelField(NamedTuple):
    """A field of a message that is read.

    Attributes:
        name: Of the struct's field; of an inlined message one of its own.
        number: Of the message's field.
        form: What it holds: a ``number`` or boolean, a ``name`` (a text that no other object has), a
            ``text``, ``time``, ``amount`` (a quantity) or ``json``; a ``struct`` that others may have too, one
            that is read ``apart`` (much of it is as in other pods), a ``message`` of its own; or ``inlined`` fields, which JSON has in place of the message.
        many: One, or a list or map of them.
        type: Of the API: the name of the message's type.
        model: The struct of a ``struct``, ``apart``, ``message`` or ``inlined``, else None.
        optional: Whether absent differs from zero, and is None in the struct.
        default: What the struct has where nothing is said, of a number.
    """

    name: str
    number: int
    form: Form
    many: Many = "one"
    type: str = ""
    model: Any = None
    optional: bool = False
    default: int = 0


def model_fields(model: Any, type_name: str) -> tuple[ModelField, ...]:
    """Return the fields that a struct has of a type of the API; what the type has not is left out."""
    hints = typing.get_type_hints(model)
    members = {member.encode_name: member for member in msgspec.structs.fields(model)}
    found = []
    for field in api_types()[type_name]:
        if not field.name and _meets(field.type, members):
            found.append(
                ModelField(f"inlined_{field.number}", field.number, "inlined", type=field.type, model=model)
            )
        elif field.name in members:
            member = members[field.name]
            found.append(_model_field(field, member.name, hints[member.name], member.default, model))
    return tuple(found)


def _meets(type_name: str, members: dict[str, Any]) -> bool:
    return any(field.name in members for field in api_types()[type_name])


def _model_field(field: Field, name: str, hint: Any, default: Any, owner: Any) -> ModelField:
    optional = _is_optional(hint)
    hint = _without_none(hint)
    many, kind = _many_of(field.type)
    if many == "list":
        hint = typing.get_args(hint)[0]
    form = _form_of(kind, hint, name, owner)
    return ModelField(
        name,
        field.number,
        form,
        many,
        kind,
        hint if form in {"struct", "apart", "message"} else None,
        optional,
        int(default) if form == "number" and isinstance(default, int) else 0,
    )


def _form_of(kind: str, hint: Any, name: str, owner: Any) -> Form:
    if kind in {"int", "bool"}:
        return "number"
    if kind == "string":
        return "name" if owner is ObjectMeta and name in _OWN_TEXTS else "text"
    if kind == TIME:
        return "time"
    if kind == QUANTITY:
        return "amount"
    if owner is Pod and hint in {PodSpec, PodStatus}:
        return "apart"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return "message" if hint in _OWN else "struct"
    return "json"


def _many_of(kind: str) -> tuple[Many, str]:
    if kind.startswith("[]"):
        return "list", kind[2:]
    return ("map", kind[2:]) if kind.startswith("{}") else ("one", kind)


def _is_optional(hint: Any) -> bool:
    return type(None) in typing.get_args(hint)


def _without_none(hint: Any) -> Any:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        rest = [one for one in typing.get_args(hint) if one is not type(None)]
        return rest[0] if len(rest) == 1 else hint
    return hint


def nested(model: Any, type_name: str) -> Iterator[tuple[Any, str]]:
    """Yield every struct and type that a message of that type is read into, the outermost first."""
    seen: dict[str, Any] = {}
    todo = [(model, type_name)]
    while todo:
        one, name = todo.pop()
        if name in seen:
            continue
        seen[name] = one
        yield one, name
        todo += [(field.model, field.type) for field in model_fields(one, name) if field.model is not None]
