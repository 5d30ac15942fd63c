"""Checks the types of an expression before it is run.

Source: cel-go's type checker with homogeneous lists and maps, as Kubernetes sets it up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubetide.cel.declarations import Functions, Overload
from kubetide.cel.standard import to_duration, to_pattern, to_timestamp
from kubetide.cel.syntax import (
    Bind,
    Call,
    Fold,
    Has,
    Issue,
    ListOf,
    Literal,
    Logic,
    MapOf,
    MapOptional,
    Name,
    Node,
    Position,
    Select,
)
from kubetide.cel.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    Bindings,
    Type,
    assignable,
    fresh,
    is_dynamic,
    join,
    list_of,
    map_of,
    optional_of,
    substitute,
    type_of,
)
from kubetide.cel.values import EvaluationError, kind_of

Objects = Mapping[str, Mapping[str, Type]]
"""The fields of object types, by the type's name."""

_READ_EARLY: Mapping[str, Callable[[str], Any]] = {
    "matches": to_pattern,
    "duration": to_duration,
    "timestamp": to_timestamp,
}
_TYPE_NAMES = ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type")


class Checker:
    """One check: finds types, collects issues, and settles which qualified functions are meant."""

    def __init__(self, variables: Mapping[str, Type], objects: Objects, functions: Functions) -> None:
        self._objects = objects
        self._functions = functions
        self._bindings: Bindings = {}
        self._uses = 0
        self._variables = {**{name: type_of(Type(name)) for name in _TYPE_NAMES}, **variables}
        self._late: list[Issue] = []
        self._aggregates: list[list[tuple[Position, Type]]] = []
        self.issues: list[Issue] = []

    def check(self, node: Node) -> Type:
        """Return the type of an expression; what is wrong is in ``issues``."""
        found = substitute(self._type(node, self._variables), self._bindings, final=True)
        if not self.issues:
            self._check_aggregates()
            self.issues += self._late
        return found

    def _check_aggregates(self) -> None:
        """The elements of a list, and the keys and the values of a map, must be of one type."""
        for elements in self._aggregates:
            first: Type | None = None
            for position, given in elements:
                found = substitute(given, self._bindings, final=True)
                if first is None:
                    first = found
                elif found != first:
                    self._say(position, f"expected type '{first}' but found '{found}'")

    def _type(self, node: Node, scope: Mapping[str, Type]) -> Type:
        match node:
            case Literal():
                return Type(kind_of(node.value))
            case Name():
                return self._name(node, scope)
            case Select():
                return self._select(node, scope)
            case Has():
                self._field(node.operand, node.field, node.position, scope)
                return BOOL
            case Call():
                return self._call(node, scope)
            case Logic():
                return self._logic(node, scope)
            case ListOf():
                return self._list(node, scope)
            case MapOf():
                return self._map(node, scope)
            case Fold():
                return self._fold(node, scope)
            case Bind():
                value = self._type(node.value, scope)
                return self._type(node.body, {**scope, node.name: value})
            case MapOptional():
                return self._map_optional(node, scope)

    def _resolved(self, given: Type) -> Type:
        return substitute(given, self._bindings)

    def _say(self, position: int, message: str) -> Type:
        self.issues.append(Issue(position, message))
        return ERROR

    def _name(self, node: Name, scope: Mapping[str, Type]) -> Type:
        found = scope.get(node.name)
        if found is None:
            return self._say(node.position, f"undeclared reference to '{node.name}' (in container '')")
        return found

    def _select(self, node: Select, scope: Mapping[str, Type]) -> Type:
        found = self._field(node.operand, node.field, node.position, scope)
        if node.optional and found.name != "optional_type":
            return optional_of(found)
        return found

    def _field(self, operand: Node, field: str, position: int, scope: Mapping[str, Type]) -> Type:
        whole = self._resolved(self._type(operand, scope))
        inner = whole.arguments[0] if whole.name == "optional_type" else whole
        found = self._field_of(inner, field, position)
        return optional_of(found) if inner is not whole else found

    def _field_of(self, given: Type, field: str, position: int) -> Type:
        if given.name == "map":
            return given.arguments[1]
        fields = self._objects.get(given.name)
        if fields is not None:
            found = fields.get(field)
            return found if found is not None else self._say(position, f"undefined field '{field}'")
        if is_dynamic(given) or given.name[0].isupper():
            return ERROR if given == ERROR else DYN
        if "." in given.name:
            return self._say(position, f"unexpected failed resolution of '{given}'")
        return self._say(position, f"type '{given}' does not support field selection")

    def _call(self, node: Call, scope: Mapping[str, Type]) -> Type:
        qualified = qualified_name(node)
        if qualified in self._functions:
            self._check_literal(node)
            arguments = [self._type(one, scope) for one in node.arguments]
            return self._resolve(qualified, node, arguments, method=False)
        targets = [] if node.target is None else [node.target]
        arguments = [self._type(one, scope) for one in (*targets, *node.arguments)]
        if node.function not in self._functions:
            return self._say(node.position, f"undeclared reference to '{node.function}' (in container '')")
        found = self._resolve(node.function, node, arguments, method=bool(targets))
        self._check_literal(node)
        return found

    def _resolve(self, name: str, node: Call, arguments: list[Type], *, method: bool) -> Type:
        result: Type | None = None
        settled = self._bindings
        for overload in self._functions[name]:
            if overload.method != method or len(overload.parameters) != len(arguments):
                continue
            bindings = dict(self._bindings)
            self._uses += 1
            if not self._takes(overload, arguments, bindings):
                continue
            given = substitute(fresh(overload.result, self._uses), bindings)
            if result is None:
                result, settled = given, bindings
            elif given != result:
                result = DYN
        if result is None:
            shown = [str(substitute(one, self._bindings, final=True)) for one in arguments]
            listed = f"{shown[0]}.({', '.join(shown[1:])})" if method else f"({', '.join(shown)})"
            said = f"found no matching overload for '{name}' applied to '{listed}'"
            return self._say(node.position, said)
        self._bindings = settled
        return result

    def _takes(self, overload: Overload, arguments: list[Type], bindings: Bindings) -> bool:
        pairs = zip(overload.parameters, arguments, strict=True)
        return all(assignable(fresh(expected, self._uses), given, bindings) for expected, given in pairs)

    def _check_literal(self, node: Call) -> None:
        """Patterns and times that stand in the expression are read before it is run."""
        kind = _READ_EARLY.get(node.function if node.target or node.function != "matches" else "")
        given = node.arguments[0] if node.arguments else None
        if kind is None or not isinstance(given, Literal) or not isinstance(given.value, str):
            return
        try:
            kind(given.value)
        except EvaluationError:
            self._late.append(Issue(given.position, f"invalid {node.function} argument"))

    def _logic(self, node: Logic, scope: Mapping[str, Type]) -> Type:
        for one in node.terms:
            self._must_be_bool(one, scope)
        return BOOL

    def _must_be_bool(self, node: Node, scope: Mapping[str, Type]) -> None:
        given = self._type(node, scope)
        if not assignable(BOOL, given, self._bindings):
            shown = substitute(given, self._bindings, final=True)
            # Of a selection cel-go names the dot, of a call the bracket: the node's own position.
            self._say(node.position, f"expected type 'bool' but found '{shown}'")

    def _joined(self, nodes: list[tuple[Node, bool]], scope: Mapping[str, Type]) -> Type:
        """The type that all elements have in common; that they have only one is looked at in the end."""
        found: Type | None = None
        elements: list[tuple[Position, Type]] = []
        for node, optional in nodes:
            given = self._resolved(self._type(node, scope))
            if optional and given.name == "optional_type":
                given = given.arguments[0]
            elements.append((node.position, given))
            if found is None:
                found = given
            elif assignable(found, given, self._bindings):
                found = join(self._resolved(found), self._resolved(given))
            else:
                found = DYN
        self._aggregates.append(elements)
        if found is None:
            self._uses += 1
            found = Type(f"E{self._uses}")
        return found

    def _list(self, node: ListOf, scope: Mapping[str, Type]) -> Type:
        marked = [(one, at in node.optional) for at, one in enumerate(node.elements)]
        return list_of(self._joined(marked, scope))

    def _map(self, node: MapOf, scope: Mapping[str, Type]) -> Type:
        key = self._joined([(one, False) for one, _ in node.entries], scope)
        marked = [(value, at in node.optional) for at, (_, value) in enumerate(node.entries)]
        return map_of(key, self._joined(marked, scope))

    def _fold(self, node: Fold, scope: Mapping[str, Type]) -> Type:
        target = self._resolved(self._type(node.target, scope))
        if target.name in {"list", "map"}:
            first, second = (INT, target.arguments[0]) if target.name == "list" else target.arguments
            single = target.arguments[0]
        elif target.name in {"dyn", ERROR.name} or target.name[0].isupper():
            first = second = single = target if target == ERROR else DYN
        else:
            single = first = second = self._say(
                node.target.position,
                f"expression of type '{target}' cannot be range of a comprehension (must be list, map, or dynamic)",
            )
        types = (single,) if len(node.names) == 1 else (first, second)
        inner = {**scope, **dict(zip(node.names, types, strict=True))}
        if node.macro in {"all", "exists"} and node.condition is not None:
            self._must_be_bool(node.condition, inner)
            return BOOL
        given = BOOL if node.condition is None else self._type(node.condition, inner)
        made = single if node.result is None else self._type(node.result, inner)
        match node.macro:
            case "existsOne":
                built, whole = INT, BOOL
            case "transformMap":
                built = whole = map_of(first, made)
            case "transformMapEntry":
                built = whole = made
            case _:
                built = whole = list_of(made)
        if not assignable(BOOL, given, self._bindings):
            shown = ", ".join(str(self._resolved(one)) for one in (given, built, built))
            self._say(node.position, f"found no matching overload for '_?_:_' applied to '({shown})'")
        return self._resolved(whole)

    def _map_optional(self, node: MapOptional, scope: Mapping[str, Type]) -> Type:
        target = self._resolved(self._type(node.target, scope))
        value = target.arguments[0] if target.name == "optional_type" else DYN
        found = self._type(node.body, {**scope, node.name: value})
        return found if node.flat else optional_of(found)


def qualified_name(node: Call) -> str:
    """Return ``a.b.f`` for a call on plain names, which may be a function of that name; else empty text."""
    parts = [node.function]
    target = node.target
    while isinstance(target, Select) and not target.optional:
        parts.append(target.field)
        target = target.operand
    if target is None and len(parts) == 1:
        return node.function
    if not isinstance(target, Name):
        return ""
    return ".".join((target.name, *reversed(parts)))
