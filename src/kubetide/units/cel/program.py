"""Expressions made ready to run: every node becomes a Python function of the variables.

An error in one operand of && or || does not count when the other decides, as CEL demands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubetide.units.cel.checker import Checker, Objects, qualified_name
from kubetide.units.cel.declarations import Functions, Overload
from kubetide.units.cel.parser import parse
from kubetide.units.cel.standard import element
from kubetide.units.cel.syntax import (
    FAILED,
    Bind,
    Call,
    CelError,
    Fold,
    Has,
    ListOf,
    Literal,
    Logic,
    MapOf,
    MapOptional,
    Name,
    Node,
    Select,
    describe,
)
from kubetide.units.cel.types import Type
from kubetide.units.cel.values import NOTHING, EvaluationError, OpenMap, Optional, fits, kind_of, lookup, show

Scope = Mapping[str, Any]
Run = Callable[[Scope], Any]

MAX_COST = 1_000_000
"""Steps of macros in one run; Kubernetes' limit on a selector, which counts other steps too."""

_BUDGET = " budget"
_CONVERSIONS = ("int", "uint", "double", "bool", "string", "bytes")


class Program:
    """A compiled expression.

    Attributes:
        type: What it evaluates to.
    """

    def __init__(self, run: Run, result: Type) -> None:
        self._run = run
        self.type = result

    def evaluate(self, variables: Scope) -> Any:
        """Gives the value. Raises EvaluationError when there is none for these variables."""
        return self._run({**variables, _BUDGET: [MAX_COST]})


def compile_expression(
    text: str, *, variables: Mapping[str, Type], objects: Objects, functions: Functions
) -> Program:
    """Reads and checks an expression.

    Args:
        text: The expression.
        variables: Types of the variables that it may use.
        objects: Fields of the object types among them.
        functions: What it may call.

    Raises: CelError with all that is wrong, in cel-go's form.
    """
    node = parse(text)
    checker = Checker(variables, objects, functions)
    result = checker.check(node)
    if checker.issues:
        raise CelError(FAILED + describe(text, sorted(checker.issues, key=lambda issue: issue.position)))
    return Program(_Compiler(functions).compile(node), result)


class _Compiler:
    def __init__(self, functions: Functions) -> None:
        self._functions = functions

    def compile(self, node: Node) -> Run:
        match node:
            case Literal():
                value = node.value
                return lambda _: value
            case Name():
                return _name(node.name)
            case Select():
                return _select(self.compile(node.operand), node.field, optional=node.optional)
            case Has():
                return _has(self.compile(node.operand), node.field)
            case Call():
                return self._call(node)
            case Logic():
                return _logic([self.compile(one) for one in node.terms], every=node.every)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Fold():
                return self._fold(node)
            case Bind():
                return _bind(node.name, self.compile(node.value), self.compile(node.body))
            case MapOptional():
                target, body = self.compile(node.target), self.compile(node.body)
                return _map_optional(target, node.name, body, flat=node.flat)

    def _call(self, node: Call) -> Run:
        if node.function == "_?_:_":
            return _conditional(*(self.compile(one) for one in node.arguments))
        qualified = qualified_name(node)
        if qualified in self._functions:
            operands, name, method = node.arguments, qualified, False
        else:
            targets = () if node.target is None else (node.target,)
            operands, name, method = (*targets, *node.arguments), node.function, bool(targets)
        overloads = [
            one
            for one in self._functions[name]
            if one.method == method and len(one.parameters) == len(operands)
        ]
        runs = [self.compile(one) for one in operands]
        if name in {"_==_", "_!=_"}:
            return _binary(overloads[0].apply, *runs)
        if name == "_[_]":
            return _index(*runs)
        if name == "_[?_]":
            return _optional_index(*runs)
        return _constant(_dispatch(overloads, runs), name, node)

    def _list(self, node: ListOf) -> Run:
        runs = [(self.compile(one), at in node.optional) for at, one in enumerate(node.elements)]

        def run(scope: Scope) -> list[Any]:
            found = []
            for one, optional in runs:
                value = one(scope)
                if optional:
                    if not value.has:
                        continue
                    value = value.value
                found.append(value)
            return found

        return run

    def _map(self, node: MapOf) -> Run:
        runs = [
            (self.compile(key), self.compile(value), at in node.optional)
            for at, (key, value) in enumerate(node.entries)
        ]

        def run(scope: Scope) -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for key_run, value_run, optional in runs:
                key, value = key_run(scope), value_run(scope)
                if optional:
                    if not value.has:
                        continue
                    value = value.value
                _put(found, key, value)
            return found

        return run

    def _fold(self, node: Fold) -> Run:
        target = self.compile(node.target)
        condition = None if node.condition is None else self.compile(node.condition)
        result = None if node.result is None else self.compile(node.result)
        macro, names = node.macro, node.names

        def scopes(scope: Scope) -> Any:
            for values in _elements(target(scope), pairs=len(names) == 2):
                budget = scope[_BUDGET]
                budget[0] -= 1
                if budget[0] < 0:
                    raise EvaluationError("operation cancelled: actual cost limit exceeded")
                yield values, {**scope, **dict(zip(names, values, strict=True))}

        if macro in {"all", "exists"}:
            assert condition is not None  # the parser gives these macros one
            return _quantifier(scopes, condition, every=macro == "all")
        if macro == "existsOne":
            return lambda scope: sum(_met(condition, inner) for _, inner in scopes(scope)) == 1
        if macro in {"map", "filter"}:
            return lambda scope: [
                values[-1] if result is None else result(inner)
                for values, inner in scopes(scope)
                if _met(condition, inner)
            ]
        assert result is not None  # the parser gives these macros one
        return _transform(scopes, condition, result, entries=macro == "transformMapEntry")


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


def _name(name: str) -> Run:
    def run(scope: Scope) -> Any:
        try:
            found = scope[name]
        except KeyError:
            return Type(name)  # names of types are values too
        return found.get() if type(found) is _Lazy else found

    return run


def access(container: Any, key: Any) -> Any:
    """Gives an entry of a map, an element of a list; other values have none.

    Raises: EvaluationError when there is none.
    """
    if isinstance(container, dict):
        return lookup(container, key)
    if isinstance(container, list):
        return element(container, key)
    raise EvaluationError(f"no such key: {show(key)}")


def _select(operand: Run, field: str, *, optional: bool) -> Run:
    def run(scope: Scope) -> Any:
        found = operand(scope)
        if isinstance(found, Optional) or optional:
            return _optional_field(found, field)
        return access(found, field)

    return run


def _index(container: Run, key: Run) -> Run:
    def run(scope: Scope) -> Any:
        found = container(scope)
        if isinstance(found, Optional):
            return _optional_field(found, key(scope))
        return access(found, key(scope))

    return run


def _optional_index(container: Run, key: Run) -> Run:
    return lambda scope: _optional_field(container(scope), key(scope))


def _constant(run: Run, name: str, node: Call) -> Run:
    """Converts a literal once, as cel-go does when it makes a program. Raises CelError when that fails."""
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


def _has(operand: Run, field: str) -> Run:
    def run(scope: Scope) -> bool:
        found = operand(scope)
        if isinstance(found, Optional):
            if not found.has:
                return False
            found = found.value
        return isinstance(found, OpenMap) or (isinstance(found, dict) and field in found)

    return run


def _logic(runs: list[Run], *, every: bool) -> Run:
    def run(scope: Scope) -> bool:
        failed: EvaluationError | None = None
        for one in runs:
            try:
                value = one(scope)
                if type(value) is not bool:
                    raise EvaluationError("no such overload")  # noqa: TRY301  # caught like any other
            except EvaluationError as error:
                failed = failed or error
                continue
            if value is not every:
                return value
        if failed is not None:
            raise failed
        return every

    return run


def _conditional(condition: Run, yes: Run, no: Run) -> Run:
    def run(scope: Scope) -> Any:
        value = condition(scope)
        if type(value) is not bool:
            raise EvaluationError("no such overload")
        return yes(scope) if value else no(scope)

    return run


def _binary(apply: Callable[[Any, Any], Any], left: Run, right: Run) -> Run:
    return lambda scope: apply(left(scope), right(scope))


def _dispatch(overloads: list[Overload], runs: list[Run]) -> Run:
    """Calls the first form whose parameters the values fit."""

    def run(scope: Scope) -> Any:
        values = [one(scope) for one in runs]
        for overload in overloads:
            if all(map(fits, values, overload.parameters)):
                return overload.apply(*values)
        raise EvaluationError("no such overload")

    return run


def _bind(name: str, value: Run, body: Run) -> Run:
    return lambda scope: body({**scope, name: _Lazy(value, scope)})


def _map_optional(target: Run, name: str, body: Run, *, flat: bool) -> Run:
    def run(scope: Scope) -> Optional:
        found = target(scope)
        if not found.has:
            return NOTHING
        result = body({**scope, name: found.value})
        if flat:
            return result if isinstance(result, Optional) else NOTHING
        return Optional(result, has=True)

    return run


def _elements(target: Any, *, pairs: bool) -> list[tuple[Any, ...]]:
    if isinstance(target, list):
        return list(enumerate(target)) if pairs else [(one,) for one in target]
    if isinstance(target, dict):
        return list(target.items()) if pairs else [(key,) for key in target]
    raise EvaluationError(f"got '{kind_of(target)}', expected iterable type")


def _met(condition: Run | None, scope: Scope) -> bool:
    if condition is None:
        return True
    value = condition(scope)
    if type(value) is not bool:
        raise EvaluationError("no such overload")
    return value


def _quantifier(scopes: Callable[[Scope], Any], condition: Run, *, every: bool) -> Run:
    def run(scope: Scope) -> bool:
        failed: EvaluationError | None = None
        for _, inner in scopes(scope):
            try:
                value = _met(condition, inner)
            except EvaluationError as error:
                failed = failed or error
                continue
            if value is not every:
                return value
        if failed is not None:
            raise failed
        return every

    return run


def _transform(scopes: Callable[[Scope], Any], condition: Run | None, result: Run, *, entries: bool) -> Run:
    def run(scope: Scope) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for values, inner in scopes(scope):
            if not _met(condition, inner):
                continue
            value = result(inner)
            for key, one in value.items() if entries else [(values[0], value)]:
                _put(found, key, one)
        return found

    return run


def _put(found: dict[Any, Any], key: Any, value: Any) -> None:
    if kind_of(key) not in {"string", "int", "uint", "bool"}:
        raise EvaluationError("unsupported key type")
    if key in found:
        raise EvaluationError(f"insert failed: key {show(key)} already exists")
    found[key] = value
