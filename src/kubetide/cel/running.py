"""What the nodes of an expression do when it is run: each function gives a function of the variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubetide.cel.declarations import Overload
from kubetide.cel.standard import element
from kubetide.cel.syntax import Call, CelError, Literal
from kubetide.cel.types import Type
from kubetide.cel.values import NOTHING, EvaluationError, OpenMap, Optional, fits, kind_of, lookup, show

Scope = Mapping[str, Any]
Run = Callable[[Scope], Any]

_CONVERSIONS = ("int", "uint", "double", "bool", "string", "bytes")


class _Lazy:
    """The value of a bound name, found when it is first asked for: one that nobody asks for is no error."""

    __slots__ = ("_found", "_run", "_scope")

    def __init__(self, run: Run, scope: Scope) -> None:
        self._run = run
        self._scope = scope
        self._found: list[Any] = []

    def get(self) -> Any:
        if not self._found:
            self._found.append(self._run(self._scope))
        return self._found[0]


def name_of(name: str) -> Run:
    def run(scope: Scope) -> Any:
        try:
            found = scope[name]
        except KeyError:
            return Type(name)  # names of types are values too
        return found.get() if type(found) is _Lazy else found

    return run


def access(container: Any, key: Any) -> Any:
    """Return an entry of a map, an element of a list; other values have none.

    Raises: EvaluationError when there is none.
    """
    if isinstance(container, dict):
        return lookup(container, key)
    if isinstance(container, list):
        return element(container, key)
    raise EvaluationError(f"no such key: {show(key)}")


def selection(operand: Run, field: str, *, optional: bool) -> Run:
    def run(scope: Scope) -> Any:
        found = operand(scope)
        if isinstance(found, Optional) or optional:
            return _optional_field(found, field)
        return access(found, field)

    return run


def indexing(container: Run, key: Run) -> Run:
    def run(scope: Scope) -> Any:
        found = container(scope)
        if isinstance(found, Optional):
            return _optional_field(found, key(scope))
        return access(found, key(scope))

    return run


def optional_indexing(container: Run, key: Run) -> Run:
    return lambda scope: _optional_field(container(scope), key(scope))


def constant(run: Run, name: str, node: Call) -> Run:
    """Convert a literal once, as cel-go does when it makes a program. Raises CelError when that fails."""
    if name not in _CONVERSIONS or not isinstance(node.arguments[0], Literal):
        return run
    try:
        value = run({})
    except EvaluationError as error:
        raise CelError(f"program instantiation failed: {error}") from None
    return lambda _: value


def _optional_field(operand: Any, field: Any) -> Optional:
    inner = operand
    if isinstance(operand, Optional):
        if not operand.has:
            return NOTHING
        inner = operand.value
    try:
        return Optional(access(inner, field), has=True)
    except EvaluationError:
        return NOTHING


def presence(operand: Run, field: str) -> Run:
    def run(scope: Scope) -> bool:
        found = operand(scope)
        if isinstance(found, Optional):
            if not found.has:
                return False
            found = found.value
        return isinstance(found, OpenMap) or (isinstance(found, dict) and field in found)

    return run


def logic(runs: list[Run], *, every: bool) -> Run:
    def run(scope: Scope) -> bool:
        return _together(((one, scope) for one in runs), every=every)

    return run


def conditional(condition: Run, yes: Run, no: Run) -> Run:
    def run(scope: Scope) -> Any:
        value = condition(scope)
        if type(value) is not bool:
            raise EvaluationError("no such overload")
        return yes(scope) if value else no(scope)

    return run


def binary(apply: Callable[[Any, Any], Any], left: Run, right: Run) -> Run:
    return lambda scope: apply(left(scope), right(scope))


def dispatch(overloads: list[Overload], runs: list[Run]) -> Run:
    """Call the first form whose parameters the values fit."""

    def run(scope: Scope) -> Any:
        values = [one(scope) for one in runs]
        for overload in overloads:
            if all(map(fits, values, overload.parameters)):
                return overload.apply(*values)
        raise EvaluationError("no such overload")

    return run


def binding(name: str, value: Run, body: Run) -> Run:
    return lambda scope: body({**scope, name: _Lazy(value, scope)})


def optional_mapping(target: Run, name: str, body: Run, *, flat: bool) -> Run:
    def run(scope: Scope) -> Optional:
        found = target(scope)
        if not found.has:
            return NOTHING
        result = body({**scope, name: found.value})
        if flat:
            return result if isinstance(result, Optional) else NOTHING
        return Optional(result, has=True)

    return run


def elements(target: Any, *, pairs: bool) -> list[tuple[Any, ...]]:
    if isinstance(target, list):
        return list(enumerate(target)) if pairs else [(one,) for one in target]
    if isinstance(target, dict):
        return list(target.items()) if pairs else [(key,) for key in target]
    raise EvaluationError(f"got '{kind_of(target)}', expected iterable type")


def met(condition: Run | None, scope: Scope) -> bool:
    if condition is None:
        return True
    value = condition(scope)
    if type(value) is not bool:
        raise EvaluationError("no such overload")
    return value


def quantifier(scopes: Callable[[Scope], Any], condition: Run, *, every: bool) -> Run:
    def run(scope: Scope) -> bool:
        return _together(((condition, inner) for _, inner in scopes(scope)), every=every)

    return run


def _together(cases: Iterable[tuple[Run, Scope]], *, every: bool) -> bool:
    """Return whether all (or any) hold; one that settles it outweighs errors of the others."""
    failed: EvaluationError | None = None
    for one, scope in cases:
        try:
            value = met(one, scope)
        except EvaluationError as error:
            failed = failed or error
            continue
        if value is not every:
            return value
    if failed is not None:
        raise failed
    return every


def transformation(
    scopes: Callable[[Scope], Any], condition: Run | None, result: Run, *, entries: bool
) -> Run:
    def run(scope: Scope) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for values, inner in scopes(scope):
            if not met(condition, inner):
                continue
            value = result(inner)
            for key, one in value.items() if entries else [(values[0], value)]:
                put(found, key, one)
        return found

    return run


def put(found: dict[Any, Any], key: Any, value: Any) -> None:
    if kind_of(key) not in {"string", "int", "uint", "bool"}:
        raise EvaluationError("unsupported key type")
    if key in found:
        raise EvaluationError(f"insert failed: key {show(key)} already exists")
    found[key] = value
