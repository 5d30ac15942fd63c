"""Match conditions decide whether a webhook is asked."""

from __future__ import annotations

import pytest
from tests.embedded.admission.asking import V1, attributes, hooks, target, webhook

from kubetide.embedded.apiserver.admission.attributes import UserInfo
from kubetide.embedded.apiserver.admission.conditions import meets_conditions
from kubetide.ports.errors import Forbidden


def first(*expressions, **more):
    conditions = [{"name": f"c{at}", "expression": text} for at, text in enumerate(expressions)]
    return hooks(webhook("a.b.c", matchConditions=conditions, **more))[0]


NO_LABEL = "object.metadata.labels.app == 'web'"

VERDICTS = [
    # expressions, asked
    ([], True),
    (["true"], True),
    ([" true\n"], True),
    (["true", "object.metadata.name == 'p'"], True),
    (["true", "object.metadata.name == 'q'"], False),
    (["oldObject == null"], True),
    (["request.operation == 'CREATE' && request.resource.resource == 'pods'"], True),
    (["request.kind.kind == 'Pod' && request.namespace == 'shop'"], True),
    (["!has(request.subResource)"], True),
    (["request.userInfo.username == 'me' && 'ops' in request.userInfo.groups"], True),
    (["request.dryRun"], False),
    # A false condition excludes the webhook, whatever conditions fail to evaluate.
    ([NO_LABEL, "false"], False),
    (["false", NO_LABEL], False),
]


@pytest.mark.parametrize(("expressions", "asked"), VERDICTS)
def test_verdicts(expressions, asked):
    """A webhook is asked when every condition holds."""
    request = attributes(user=UserInfo("me", ("ops",)))
    assert meets_conditions(first(*expressions), request, V1) is asked


def test_a_deletion_has_no_object():
    """A deletion has the old object alone."""
    request = attributes(target=target("DELETE"), object=None, old={"metadata": {"name": "p"}})
    assert meets_conditions(first("object == null && oldObject.metadata.name == 'p'"), request, V1)


def test_a_fault_refuses_where_the_webhook_fails_closed():
    """The words are upstream's; each fault is reported once."""
    with pytest.raises(Forbidden) as refused:
        meets_conditions(first(NO_LABEL, "true"), attributes(), V1)
    fault = f"expression '{NO_LABEL}' resulted in error: no such key: app"
    assert refused.value.message == f'pods "p" is forbidden: {fault}'
    assert refused.value.details == {"name": "p", "kind": "pods"}
    with pytest.raises(Forbidden, match=r"forbidden: \[expression .*, expression .*\]$"):
        meets_conditions(first(NO_LABEL, NO_LABEL, "object.spec.x == 1"), attributes(), V1)


def test_a_fault_excludes_a_webhook_that_fails_open():
    """It is not asked, and the request goes on."""
    assert not meets_conditions(first(NO_LABEL, failurePolicy="Ignore"), attributes(), V1)
