"""Match conditions of webhooks: what an expression may read, compiled once, and its rules.

Source: apiserver v1.36, admission/plugin/cel (variables, AdmissionRequest) and
pkg/apis/admissionregistration/validation. Left out is the variable ``authorizer``, so that an
expression with it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kubetide.cel import FUNCTIONS, CelError, EvaluationError, Program, compile_expression
from kubetide.cel.types import BOOL, DYN, STRING, Type, list_of, map_of
from kubetide.objects.field_errors import FieldError, duplicate, invalid, required, too_many
from kubetide.units.names import label_key_errors

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_MOST = 64

_KIND = Type("kubernetes.GroupVersionKind")
_RESOURCE = Type("kubernetes.GroupVersionResource")
_USER = Type("kubernetes.UserInfo")
_REQUEST = Type("kubernetes.AdmissionRequest")
_OBJECTS: dict[str, dict[str, Type]] = {
    _KIND.name: {"group": STRING, "version": STRING, "kind": STRING},
    _RESOURCE.name: {"group": STRING, "version": STRING, "resource": STRING},
    _USER.name: {
        "username": STRING,
        "uid": STRING,
        "groups": list_of(STRING),
        "extra": map_of(STRING, list_of(STRING)),
    },
    _REQUEST.name: {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
}
_VARIABLES = {"object": DYN, "oldObject": DYN, "request": _REQUEST}


class ConditionError(Exception):
    """A condition that has no verdict on a request; the message is upstream's."""


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> Program | str:
    """The program, or upstream's error."""
    try:
        program = compile_expression(expression, variables=_VARIABLES, objects=_OBJECTS, functions=FUNCTIONS)
    except CelError as error:
        return str(error)
    if program.type == BOOL:
        return program
    return f"must evaluate to bool but got {program.type}"


def condition_holds(expression: str, variables: Mapping[str, Any]) -> bool:
    """Return whether a condition holds for a request.

    Args:
        expression: One that ``validate_match_conditions`` has let pass.
        variables: ``object``, ``oldObject`` (either may be None) and ``request``.

    Raises: ConditionError.
    """
    program = _compiled(expression)
    if isinstance(program, str):
        raise ConditionError(f"compilation error: {program}")
    try:
        return bool(program.evaluate(dict(variables)))
    except EvaluationError as error:
        raise ConditionError(f"expression '{expression}' resulted in error: {error}") from error


def validate_match_conditions(at: str, conditions: list[Json]) -> list[FieldError]:
    """Return every rule that the match conditions of a webhook break."""
    errors: list[FieldError] = []
    if len(conditions) > _MOST:
        errors.append(too_many(at, len(conditions), _MOST))
    names: set[str] = set()
    for index, condition in enumerate(conditions):
        name = condition.get("name") or ""
        errors += _condition(f"{at}[{index}]", name, (condition.get("expression") or "").strip())
        if name and name in names:
            errors.append(duplicate(f"{at}[{index}].name", name))
        names.add(name)
    return errors


def _condition(at: str, name: str, expression: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not expression:
        errors.append(required(f"{at}.expression"))
    elif isinstance(problem := _compiled(expression), str):
        errors.append(invalid(f"{at}.expression", expression, problem))
    if not name:
        return [*errors, required(f"{at}.name")]
    return errors + [invalid(f"{at}.name", name, text) for text in label_key_errors(name)]
