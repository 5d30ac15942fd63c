"""Whether the match conditions of a webhook let a request through to it.

Source: apiserver v1.36, admission/plugin/webhook/matchconditions: a condition that does not hold keeps
the webhook out whatever the others say; where one has no verdict, the failure policy decides.
"""

from __future__ import annotations

from kubetide.embedded.apiserver.admission.attributes import Attributes, View
from kubetide.embedded.apiserver.admission.hooks import Hook
from kubetide.embedded.apiserver.admission.review import review_of
from kubetide.ports.errors import Forbidden


def meets_conditions(hook: Hook, attributes: Attributes, view: View) -> bool:
    """Return whether a webhook that rules and selectors have chosen is asked.

    Raises: Forbidden where a condition has no verdict, none fails, and the webhook fails closed.
    """
    if not hook.conditions:
        return True
    request = review_of(attributes, view, "", "v1")["request"]
    variables = {
        "object": request.pop("object"),
        "oldObject": request.pop("oldObject"),
        "request": request,
    }
    from kubetide.embedded.apiserver.rules.match_conditions import ConditionError, condition_holds  # noqa: PLC0415  CEL is loaded when an expression is met

    faults: list[str] = []
    for expression in hook.conditions:
        try:
            if not condition_holds(expression, variables):
                return False
        except ConditionError as error:
            faults.append(str(error))
    if faults and hook.fails_closed:
        raise _forbidden(attributes, list(dict.fromkeys(faults)))
    return not faults


def _forbidden(attributes: Attributes, faults: list[str]) -> Forbidden:
    target, name = attributes.target, attributes.name
    resource = f"{target.plural}.{target.group}" if target.group else target.plural
    said = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
    named = f' "{name}"' if name else ""
    details = {
        key: value
        for key, value in (("name", name), ("group", target.group), ("kind", target.plural))
        if value
    }
    return Forbidden(f"{resource}{named} is forbidden: {said}", details=details)
