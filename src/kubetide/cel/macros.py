"""CEL's macros: calls that are not calls, but bind names and look at their arguments one element at a time.

Source: cel-go's standard macros, its optional values, bindings and macros of two variables.
"""

from __future__ import annotations

from kubetide.cel.syntax import Bind, Call, Fold, Has, Issue, MapOptional, Name, Node, Position, Select

_FOLDS = {
    ("all", 2): "all",
    ("exists", 2): "exists",
    ("exists_one", 2): "existsOne",
    ("existsOne", 2): "existsOne",
    ("map", 2): "map",
    ("map", 3): "map",
    ("filter", 2): "filter",
    ("all", 3): "all",
    ("exists", 3): "exists",
    ("existsOne", 3): "existsOne",
    ("exists_one", 3): "existsOne",
    ("transformList", 3): "map",
    ("transformList", 4): "map",
    ("transformMap", 3): "transformMap",
    ("transformMap", 4): "transformMap",
    ("transformMapEntry", 3): "transformMapEntry",
    ("transformMapEntry", 4): "transformMapEntry",
}
_MADE = ("map", "transformMap", "transformMapEntry")


def expand_function(name: str, position: Position, arguments: tuple[Node, ...]) -> Node | Issue:
    """Return the node of ``name(arguments)``, or what is wrong with it."""
    if name != "has" or len(arguments) != 1:
        return Call(position, name, None, arguments)
    field = arguments[0]
    if not isinstance(field, Select) or field.optional:
        return Issue(field.position, "invalid argument to has() macro")
    return Has(position, field.operand, field.field)


def expand_method(target: Node, name: str, position: Position, arguments: tuple[Node, ...]) -> Node | Issue:
    """Return the node of ``target.name(arguments)``, or what is wrong with it."""
    if isinstance(target, Name) and target.name == "cel" and name == "bind" and len(arguments) == 3:
        bound = arguments[0]
        if not isinstance(bound, Name):
            return Issue(bound.position, "cel.bind() variable names must be simple identifiers")
        return Bind(position, bound.name, arguments[1], arguments[2])
    if name in {"optMap", "optFlatMap"} and len(arguments) == 2:
        bound = arguments[0]
        if not isinstance(bound, Name):
            return Issue(bound.position, f"{name}() variable name must be a simple identifier")
        return MapOptional(position, target, bound.name, arguments[1], name == "optFlatMap")
    macro = _FOLDS.get((name, len(arguments)))
    if macro is None:
        return Call(position, name, target, arguments)
    return _fold(target, name, macro, position, arguments)


def _fold(
    target: Node, name: str, macro: str, position: Position, arguments: tuple[Node, ...]
) -> Node | Issue:
    paired = name.startswith("transform") or (len(arguments) == 3 and name != "map")
    names: list[str] = []
    for one in arguments[: 1 + paired]:
        if not isinstance(one, Name):
            return Issue(one.position, "argument must be a simple name")
        names.append(one.name)
    if len(names) == 2 and names[0] == names[1]:
        return Issue(arguments[1].position, f"duplicate variable name: {names[0]}")
    rest = arguments[len(names) :]
    if macro in _MADE:
        condition = rest[0] if len(rest) == 2 else None
        return Fold(position, macro, target, tuple(names), condition, rest[-1])
    return Fold(position, macro, target, tuple(names), rest[0], None)
