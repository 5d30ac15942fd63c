"""Custom kinds over HTTP: what of them the face must know by itself."""

from __future__ import annotations

import pytest

from kubetide.embedded.apiserver.http.discovery import Discovery, entries_of
from kubetide.embedded.apiserver.store import Request, Rest, Store
from kubetide.embedded.apiserver.tables import columns_of, row_of
from kubetide.embedded.apiserver.types import openapi
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from kubetide.units.time import parse_rfc3339

NOW = parse_rfc3339("2026-03-02T12:00:00Z")
COLUMNS = [
    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "description": "How it runs"},
    {"name": "First", "type": "string", "jsonPath": ".spec.steps[0].name", "priority": 1},
    {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
    {"name": "Noted", "type": "string", "jsonPath": ".metadata.annotations.example\\.com/note"},
    {"name": "Ok", "type": "string", "jsonPath": ".spec.ok"},
    {"name": "Odd", "type": "integer", "jsonPath": ".spec[*]"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


class Clock:
    def now(self):
        return NOW


def rest_with(columns):
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "additionalPrinterColumns": columns,
    }
    names = {
        "plural": "rollouts",
        "singular": "roll",
        "kind": "Rollout",
        "shortNames": ["ro"],
        "categories": ["all", "delivery"],
    }
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    rest = Rest(Store(), Clock(), seed=1)
    rest.handle(Request("create", CRDS, body={"metadata": {"name": "rollouts.example.com"}, "spec": spec}))
    return rest


def kind_in(rest):
    return next(kind for kind in rest.kinds if kind.group == "example.com")


def test_a_table_has_the_columns_that_the_definition_prints():
    """Printer columns read members, indexes, filters and escaped names; what is absent is null."""
    kind = kind_in(rest_with(COLUMNS))
    assert [column["name"] for column in columns_of(kind)] == ["Name", *(one["name"] for one in COLUMNS)]
    assert columns_of(kind)[2]["priority"] == 1
    assert [column["description"] for column in columns_of(kind)[1:3]] == [
        "How it runs",
        "Custom resource definition column (in JSONPath format): .spec.steps[0].name",
    ]
    obj = {
        "metadata": {
            "name": "a",
            "creationTimestamp": "2026-03-02T11:59:00Z",
            "annotations": {"example.com/note": "n"},
        },
        "spec": {"mode": "fast", "steps": [{"name": "one"}], "ok": True},
        "status": {"conditions": [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]},
    }
    assert row_of(kind, obj, NOW) == ["a", "fast", "one", "True", "n", "true", None, "60s"]
    bare = {"metadata": {"name": "b"}}
    assert row_of(kind, bare, NOW) == ["b", None, None, None, None, None, None, "<unknown>"]


def test_without_printer_columns_there_are_name_and_age():
    """A definition that prints nothing has the two columns that every table has."""
    kind = kind_in(rest_with([]))
    assert [column["name"] for column in columns_of(kind)] == ["Name", "Age"]


@pytest.mark.parametrize(
    "path", ["/apis/example.com/v1", "/apis/apiextensions.k8s.io/v1", "/apis/autoscaling/v1"]
)
def test_discovery_and_openapi_know_what_is_defined(path):
    """Groups that came at run time, and the older version of autoscaling, have a resource list and a document."""
    rest = rest_with(COLUMNS)
    found = Discovery(entries_of(rest.kinds, ()), "127.0.0.1").document(path)
    assert found["groupVersion"] == path.removeprefix("/apis/")
    assert openapi.document(path.strip("/"), rest.kinds)["paths"]


def test_discovery_has_the_names_of_a_definition():
    """Singular, short names and categories are the definition's, in both forms of discovery."""
    discovery = Discovery(entries_of(rest_with(COLUMNS).kinds, ()), "127.0.0.1")
    [plain] = discovery.document("/apis/example.com/v1")["resources"]
    assert (plain["singularName"], plain["shortNames"]) == ("roll", ["ro"])
    assert plain["categories"] == ["all", "delivery"]
    groups = discovery.aggregated("/apis")["items"]
    [group] = [one for one in groups if one["metadata"]["name"] == "example.com"]
    [one] = group["versions"][0]["resources"]
    assert (one["singularResource"], one["categories"]) == ("roll", ["all", "delivery"])
    core = discovery.document("/api/v1")["resources"]
    [pods] = [one for one in core if one["name"] == "pods"]
    assert (pods["singularName"], pods["categories"]) == ("pod", ["all"])
