"""Webhook configurations: what is filled in, and which are refused with which words."""

from __future__ import annotations

import pytest

from kubetide.embedded.apiserver.defaults.defaults import defaults
from kubetide.embedded.apiserver.rules.validation import validate
from kubetide.objects.kinds import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS


def webhook(**changes):
    return {
        "name": "pods.hooks.example.com",
        "clientConfig": {"url": "https://127.0.0.1:8443/mutate"},
        "rules": [rule()],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **changes,
    }


def rule(**changes):
    return {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
        **changes,
    }


def configuration(*webhooks):
    return {"metadata": {"name": "hooks"}, "webhooks": list(webhooks or (webhook(),))}


def test_defaults():
    """A webhook is strict, waits 10 seconds and is asked of all objects; one that mutates is called once."""
    (filled,) = defaults(MUTATING_WEBHOOKS, configuration())["webhooks"]
    assert filled["failurePolicy"] == "Fail"
    assert filled["matchPolicy"] == "Equivalent"
    assert filled["timeoutSeconds"] == 10
    assert (filled["namespaceSelector"], filled["objectSelector"]) == ({}, {})
    assert filled["rules"][0]["scope"] == "*"
    assert filled["reinvocationPolicy"] == "Never"
    assert "reinvocationPolicy" not in defaults(VALIDATING_WEBHOOKS, configuration())["webhooks"][0]
    service = {"clientConfig": {"service": {"namespace": "a", "name": "b"}}}
    (filled,) = defaults(MUTATING_WEBHOOKS, configuration(webhook(**service)))["webhooks"]
    assert filled["clientConfig"]["service"]["port"] == 443


def test_a_good_one_passes():
    """The configuration in upstream's documentation breaks no rule."""
    assert validate(VALIDATING_WEBHOOKS, defaults(VALIDATING_WEBHOOKS, configuration())) == []


CASES = [
    ({"name": ""}, "webhooks[0].name: Required value"),
    (
        {"name": "hooks.example"},
        (
            'webhooks[0].name: Invalid value: "hooks.example": should be a domain with at least three segments '
            "separated by dots"
        ),
    ),
    (
        {"sideEffects": None},
        "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
    ),
    (
        {"sideEffects": "Some"},
        'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
    ),
    (
        {"admissionReviewVersions": []},
        "webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1",
    ),
    (
        {"admissionReviewVersions": ["v2"]},
        'webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
    ),
    (
        {"admissionReviewVersions": ["v1", "v1"]},
        'webhooks[0].admissionReviewVersions[1]: Invalid value: "v1": duplicate version',
    ),
    (
        {"timeoutSeconds": 31},
        "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
    ),
    (
        {"failurePolicy": "No"},
        'webhooks[0].failurePolicy: Unsupported value: "No": supported values: "Fail", "Ignore"',
    ),
    (
        {"clientConfig": {}},
        "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
    ),
    (
        {"clientConfig": {"url": "http://127.0.0.1/x"}},
        (
            "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired "
            "format: https://host[/path]"
        ),
    ),
    (
        {"clientConfig": {"url": "https://127.0.0.1/x?a=b"}},
        'webhooks[0].clientConfig.url: Invalid value: "a=b": query parameters are not permitted in the URL',
    ),
    (
        {"clientConfig": {"service": {"name": "hooks"}}},
        "webhooks[0].clientConfig.service.namespace: Required value",
    ),
    ({"rules": [rule(operations=[])]}, "webhooks[0].rules[0].operations: Required value"),
    (
        {"rules": [rule(operations=["*", "CREATE"])]},
        (
            'webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify '
            "other operations"
        ),
    ),
    (
        {"rules": [rule(resources=["pods/*", "pods/status"])]},
        (
            "webhooks[0].rules[0].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, must not "
            "specify pods/status"
        ),
    ),
    (
        {"rules": [rule(resources=["*", "pods"])]},
        (
            'webhooks[0].rules[0].resources: Invalid value: ["*","pods"]: if \'*\' is present, must not specify other '
            "resources without subresources"
        ),
    ),
    (
        {"rules": [rule(scope="Some")]},
        'webhooks[0].rules[0].scope: Unsupported value: "Some": supported values: "*", "Cluster", "Namespaced"',
    ),
    (
        {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}},
        'webhooks[0].objectSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator',
    ),
    (
        {"matchConditions": [{"name": "x", "expression": "true"}, {"name": "x", "expression": "false"}]},
        'webhooks[0].matchConditions[1].name: Duplicate value: "x"',
    ),
    (
        {"matchConditions": [{"name": "", "expression": "true"}]},
        "webhooks[0].matchConditions[0].name: Required value",
    ),
    (
        {"matchConditions": [{"name": "x", "expression": " "}]},
        "webhooks[0].matchConditions[0].expression: Required value",
    ),
    (
        {"matchConditions": [{"name": "x", "expression": "object.kind"}]},
        (
            'webhooks[0].matchConditions[0].expression: Invalid value: "object.kind": must evaluate to bool but got '
            "dyn"
        ),
    ),
    (
        {"matchConditions": [{"name": f"x{n}", "expression": "true"} for n in range(65)]},
        "webhooks[0].matchConditions: Too many: 65: must have at most 64 items",
    ),
]


@pytest.mark.parametrize(("changes", "text"), CASES)
def test_refusals(changes, text):
    """Each rule is refused in upstream's words."""
    obj = defaults(MUTATING_WEBHOOKS, configuration(webhook(**changes)))
    assert [str(fault) for fault in validate(MUTATING_WEBHOOKS, obj)] == [text]


def test_names_are_unique():
    """Two webhooks of one configuration have two names."""
    obj = defaults(VALIDATING_WEBHOOKS, configuration(webhook(), webhook()))
    assert [str(fault) for fault in validate(VALIDATING_WEBHOOKS, obj)] == [
        'webhooks[1].name: Duplicate value: "pods.hooks.example.com"'
    ]
