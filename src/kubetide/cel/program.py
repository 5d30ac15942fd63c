"""Expressions made ready to run: every node becomes a Python function of the variables.

An error in one operand of && or || does not count when the other decides, as CEL demands.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubetide.cel.checker import Checker, Objects, qualified_name
from kubetide.cel.declarations import Functions
from kubetide.cel.parser import parse
from kubetide.cel.running import (
    Run,
    Scope,
    binary,
    binding,
    conditional,
    constant,
    dispatch,
    elements,
    indexing,
    logic,
    met,
    name_of,
    optional_indexing,
    optional_mapping,
    presence,
    put,
    quantifier,
    selection,
    transformation,
)
from kubetide.cel.syntax import (
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
from kubetide.cel.types import Type
from kubetide.cel.values import EvaluationError

MAX_COST = 1_000_000
"""Steps of macros in one run; Kubernetes' limit on a selector, which counts other steps too."""

_BUDGET = " budget"


class Program:
    """A compiled expression.

    Attributes:
        type: What it evaluates to.
    """

    def __init__(self, run: Run, result: Type) -> None:
        self._run = run
        self.type = result

    def evaluate(self, variables: Scope) -> Any:
        """Return the value. Raises EvaluationError when there is none for these variables."""
        return self._run({**variables, _BUDGET: [MAX_COST]})


def compile_expression(
    text: str, *, variables: Mapping[str, Type], objects: Objects, functions: Functions
) -> Program:
    """Read and check an expression.

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
                return name_of(node.name)
            case Select():
                return selection(self.compile(node.operand), node.field, optional=node.optional)
            case Has():
                return presence(self.compile(node.operand), node.field)
            case Call():
                return self._call(node)
            case Logic():
                return logic([self.compile(one) for one in node.terms], every=node.every)
            case ListOf():
                return self._list(node)
            case MapOf():
                return self._map(node)
            case Fold():
                return self._fold(node)
            case Bind():
                return binding(node.name, self.compile(node.value), self.compile(node.body))
            case MapOptional():
                target, body = self.compile(node.target), self.compile(node.body)
                return optional_mapping(target, node.name, body, flat=node.flat)

    def _call(self, node: Call) -> Run:
        if node.function == "_?_:_":
            return conditional(*(self.compile(one) for one in node.arguments))
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
            return binary(overloads[0].apply, *runs)
        if name == "_[_]":
            return indexing(*runs)
        if name == "_[?_]":
            return optional_indexing(*runs)
        return constant(dispatch(overloads, runs), name, node)

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
                put(found, key, value)
            return found

        return run

    def _fold(self, node: Fold) -> Run:
        target = self.compile(node.target)
        condition = None if node.condition is None else self.compile(node.condition)
        result = None if node.result is None else self.compile(node.result)
        macro, names = node.macro, node.names

        def scopes(scope: Scope) -> Any:
            for values in elements(target(scope), pairs=len(names) == 2):
                budget = scope[_BUDGET]
                budget[0] -= 1
                if budget[0] < 0:
                    raise EvaluationError("operation cancelled: actual cost limit exceeded")
                yield values, {**scope, **dict(zip(names, values, strict=True))}

        if macro in {"all", "exists"}:
            assert condition is not None  # the parser gives these macros one
            return quantifier(scopes, condition, every=macro == "all")
        if macro == "existsOne":
            return lambda scope: sum(met(condition, inner) for _, inner in scopes(scope)) == 1
        if macro in {"map", "filter"}:
            return lambda scope: [
                values[-1] if result is None else result(inner)
                for values, inner in scopes(scope)
                if met(condition, inner)
            ]
        assert result is not None  # the parser gives these macros one
        return transformation(scopes, condition, result, entries=macro == "transformMapEntry")
