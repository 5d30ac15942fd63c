"""The syntax tree of CEL, and where in the text an error is.

Macros are nodes of their own (``Fold``, ``Bind``, ``Has``) and chains of && and || are one node, so
that walks stay shallow. Positions are offsets into the text, where cel-go puts its errors: an
operator's own place, the bracket of a call or an index, the dot of a selection.
"""

from __future__ import annotations

from typing import Any, NamedTuple

Position = int

FAILED = "compilation failed: "
"""What stands before the issues of an expression."""


class CelError(Exception):
    """An expression that cannot be compiled; the message is cel-go's."""


class Issue(NamedTuple):
    """One thing that is wrong with an expression."""

    position: Position
    message: str


class Literal(NamedTuple):
    position: Position
    value: Any


class Name(NamedTuple):
    position: Position
    name: str


class Select(NamedTuple):
    """``operand.field``; ``optional`` for ``operand.?field``."""

    position: Position
    operand: Node
    field: str
    optional: bool = False


class Has(NamedTuple):
    """``has(operand.field)``."""

    position: Position
    operand: Node
    field: str


class Call(NamedTuple):
    """A function or operator; ``target`` is what a method is called on."""

    position: Position
    function: str
    target: Node | None
    arguments: tuple[Node, ...]


class Logic(NamedTuple):
    """Terms joined by && (``every``) or ||."""

    position: Position
    every: bool
    terms: tuple[Node, ...]


class ListOf(NamedTuple):
    """A list; ``optional`` has the indexes of elements that are left out when they are empty."""

    position: Position
    elements: tuple[Node, ...]
    optional: frozenset[int] = frozenset()


class MapOf(NamedTuple):
    position: Position
    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()


class Fold(NamedTuple):
    """A macro over a list or a map.

    Attributes:
        macro: ``all``, ``exists``, ``existsOne``, ``map`` (a list of results), ``filter``,
            ``transformMap`` or ``transformMapEntry``.
        names: One variable, or two: index and element, key and value.
        condition: What an element must meet, or None.
        result: What is made of an element; None where the element itself is.
    """

    position: Position
    macro: str
    target: Node
    names: tuple[str, ...]
    condition: Node | None
    result: Node | None


class Bind(NamedTuple):
    """``cel.bind(name, value, body)``."""

    position: Position
    name: str
    value: Node
    body: Node


class MapOptional(NamedTuple):
    """``target.optMap(name, body)``, or optFlatMap, whose body gives an optional itself."""

    position: Position
    target: Node
    name: str
    body: Node
    flat: bool


Node = Literal | Name | Select | Has | Call | Logic | ListOf | MapOf | Fold | Bind | MapOptional


def children(node: Node) -> tuple[Node, ...]:
    """Return the nodes right below."""
    match node:
        case Select() | Has():
            return (node.operand,)
        case Call():
            return node.arguments if node.target is None else (node.target, *node.arguments)
        case Logic():
            return node.terms
        case ListOf():
            return node.elements
        case MapOf():
            return tuple(one for entry in node.entries for one in entry)
        case Fold():
            return tuple(one for one in (node.target, node.condition, node.result) if one is not None)
        case Bind():
            return (node.value, node.body)
        case MapOptional():
            return (node.target, node.body)
        case _:
            return ()


def height(node: Node) -> int:
    """Return how deep the tree is; found without recursion."""
    found = 0
    level = [node]
    while level:
        found += 1
        level = [child for one in level for child in children(one)]
    return found


def describe(text: str, issues: list[Issue]) -> str:
    """Return the issues as cel-go prints them: place, message, the line and a mark under it."""
    said: list[str] = []
    for position, message in issues:
        before = text[:position]
        line = before.count("\n") + 1
        # Of an empty expression upstream's parser names the column before the first.
        column = position - (before.rfind("\n") + 1) if text else -1
        snippet = text.split("\n")[line - 1].replace("\t", " ")
        said.append(f"ERROR: <input>:{line}:{column + 1}: {message}\n | {snippet}\n | {'.' * column}^")
    return "\n".join(said)
