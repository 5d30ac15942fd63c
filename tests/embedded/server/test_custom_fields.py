"""The fields of custom kinds: what clients see of them, and what becomes of those that no schema knows.

The expected texts and documents are those of kube-apiserver v1.36.2 for the same definition and bodies.
"""

from __future__ import annotations

import json

import pytest
import yaml
from tests.embedded.server.test_requests import ask

from kubetide.embedded.apiserver.http.strict import findings
from kubetide.embedded.apiserver.store import Request, Rest, Store
from kubetide.embedded.apiserver.types import openapi
from kubetide.embedded.apiserver.types.openapi_v2 import document_v2, protobuf_v2
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from kubetide.units.time import parse_rfc3339

NAME = "com.example.stable.v1.CronTab"
TABS = "/apis/stable.example.com/v1/namespaces/default/crontabs"
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

SPEC = """
type: object
description: What is wanted.
required: [image]
properties:
  any: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {k: {type: string}}}
  cronSpec: {type: string, description: When to run.}
  embedded: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
  free: {x-kubernetes-preserve-unknown-fields: true}
  image: {type: string, default: x}
  list:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items: {type: object, required: [name], properties: {name: {type: string}}}
  map: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}
  maybe: {type: string, nullable: true}
  one:
    type: object
    properties: {a: {type: string}, b: {type: string}}
    oneOf: [{required: [a]}, {required: [b]}]
  pick: {type: string, enum: [a, b]}
  port: {x-kubernetes-int-or-string: true}
  replicas: {type: integer, format: int32, minimum: 0}
"""
STATUS = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "crontabs.stable.example.com"},
    "spec": {
        "group": "stable.example.com",
        "scope": "Namespaced",
        "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "A tab.",
                        "properties": {"spec": yaml.safe_load(SPEC), "status": STATUS},
                    }
                },
            }
        ],
    },
}
DEFINED = ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)


class Clock:
    def now(self):
        return parse_rfc3339("2026-03-02T12:00:00Z")


@pytest.fixture(scope="module")
def kinds():
    rest = Rest(Store(), Clock(), seed=1)
    rest.handle(Request("create", CRDS, body=DEFINITION))
    return rest.kinds


def tab(name, **spec):
    meta = {"name": name}
    return {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": meta, "spec": spec}


# ── what clients see ────────────────────────────────────────────────────────────────────────────


def test_the_document_of_version_3(kinds):
    """It is the definition's schema, and what every object and every embedded object has."""
    document = openapi.document("apis/stable.example.com/v1", kinds)["components"]["schemas"]
    text = {"type": "string"}
    metadata = {"allOf": [{"$ref": f"#/components/schemas/{META}"}]}
    common = {"apiVersion": text, "kind": text, "metadata": metadata}
    spec = yaml.safe_load(SPEC)
    spec["properties"]["port"]["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    spec["properties"]["embedded"] |= {"required": ["kind", "apiVersion"], "properties": common}
    assert document[NAME] == {
        "type": "object",
        "description": "A tab.",
        "properties": {**common, "spec": spec, "status": STATUS},
        "x-kubernetes-group-version-kind": [
            {"group": "stable.example.com", "version": "v1", "kind": "CronTab"}
        ],
    }
    assert "labels" in document[META]["properties"]


def test_the_document_of_version_2(kinds):
    """Fields that version 2 cannot express are left open."""
    found = document_v2(kinds)
    spec = yaml.safe_load(SPEC)
    preserved = {"x-kubernetes-preserve-unknown-fields": True}
    spec["properties"] |= {
        "any": preserved,
        "embedded": {"x-kubernetes-embedded-resource": True, **preserved},
        "free": preserved,
        "image": {"type": "string"},
        "maybe": {},
        "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
        "port": {"x-kubernetes-int-or-string": True},
    }
    made = found["definitions"][NAME]
    assert made["properties"]["spec"] == spec
    assert made["properties"]["metadata"] == {"$ref": f"#/definitions/{META}"}
    packed = protobuf_v2(found)
    assert all(text in packed for text in (b"When to run.", b"A tab.", NAME.encode()))


# ── fields that the schema does not know ────────────────────────────────────────────────────────

ODD = {
    "apiVersion": "stable.example.com/v1",
    "kind": "CronTab",
    "metadata": {"generateName": "a", "foo": 1, "labels": {"a": "b"}},
    "extra": 1,
    "spec": {
        "image": "i",
        "bogus": 1,
        "a.b": {"c": 1},
        "map": {"x": {"a": "s", "z": 1}, "y.z": {"q": 1}},
        "list": [{"name": "n", "q": 1}, {"name": "m", "r": 2}],
        "any": {"free": 1},
        "one": {"a": "1"},
        "embedded": {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "x", "bad": 1},
            "spec": {"zzz": 1},
        },
    },
    "status": {"w": 1},
}
UNKNOWN = [
    "metadata.foo",
    "extra",
    "spec.a.b",
    "spec.bogus",
    "spec.list[0].q",
    "spec.list[1].r",
    "spec.map.x.z",
    "spec.map.y.z.q",
    "status.w",
    "spec.embedded.metadata.bad",
]
REFUSED = 'CronTab in version "v1" cannot be handled as a CronTab: strict decoding error: '


def test_unknown_fields_in_their_order(kinds):
    """Unknown fields of metadata come first, then the rest in order, then the metadata of embedded objects."""
    kind = next(kind for kind in kinds if kind.kind == "CronTab")
    assert findings(kind, ODD).unknown == UNKNOWN
    assert findings(kind, []).unknown == []


def test_strict_creation_is_refused():
    """Strict refuses in upstream's words, Warn warns and cuts off, Ignore only cuts off."""
    strict = ask(DEFINED, ("POST", f"{TABS}?fieldValidation=Strict", ODD))
    said = ", ".join(f'unknown field "{path}"' for path in UNKNOWN)
    assert (strict.code, strict.json["message"]) == (400, REFUSED + said)
    warned = ask(DEFINED, ("POST", TABS, ODD))
    assert warned.code == 201
    assert warned.headers.getall("Warning") == [f'299 - "unknown field \\"{path}\\""' for path in UNKNOWN]
    assert set(warned.json) == {"apiVersion", "kind", "metadata", "spec"}
    assert "foo" not in warned.json["metadata"]
    assert warned.json["spec"]["map"] == {"x": {"a": "s"}, "y.z": {}}
    assert "Warning" not in ask(DEFINED, ("POST", f"{TABS}?fieldValidation=Ignore", ODD)).headers


def test_duplicates_come_first():
    """Duplicate fields are reported before unknown ones."""
    body = json.dumps(tab("a", image="i", bogus=1)).replace('"image": "i"', '"image":"i","image":"j"')
    strict = ask(DEFINED, ("POST", f"{TABS}?fieldValidation=Strict", body))
    assert strict.json["message"] == f'{REFUSED}duplicate field "spec.image", unknown field "spec.bogus"'


@pytest.mark.parametrize(
    ("media_type", "patch"),
    [
        ("merge-patch+json", {"spec": {"bogus": 1, "map": {"x": {"z": 1}}}}),
        (
            "json-patch+json",
            [
                {"op": "add", "path": "/spec/bogus", "value": 1},
                {"op": "add", "path": "/spec/map", "value": {"x": {"z": 1}}},
            ],
        ),
    ],
)
def test_a_patch_is_validated_by_its_result(media_type, patch):
    """A strict patch is refused with the object that it would make; else it warns."""
    made = ("POST", TABS, tab("a", image="i"))
    headers = {"Content-Type": f"application/{media_type}"}
    strict = ask(DEFINED, made, ("PATCH", f"{TABS}/a?fieldValidation=Strict", patch, headers))
    assert (strict.code, strict.json["reason"]) == (422, "Invalid")
    start, end = ' "" is invalid: patch: Invalid value: ', ": strict decoding error: "
    message = strict.json["message"]
    assert message.startswith(start)
    shown, _, problem = message.removeprefix(start).partition(end)
    assert json.loads(json.loads(shown))["spec"] == {"bogus": 1, "image": "i", "map": {"x": {"z": 1}}}
    assert problem == 'unknown field "spec.bogus", unknown field "spec.map.x.z"'
    [cause] = strict.json["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("patch", "FieldValueInvalid")
    warned = ask(DEFINED, made, ("PATCH", f"{TABS}/a", patch, headers))
    assert warned.code == 200
    assert [text.split()[-1] for text in warned.headers.getall("Warning")] == [
        '\\"spec.bogus\\""',
        '\\"spec.map.x.z\\""',
    ]
    assert warned.json["spec"] == {"image": "i", "map": {"x": {}}}


def test_a_patch_of_what_is_not_there():
    """The answer is that it is not there, whatever the patch says."""
    headers = {"Content-Type": "application/merge-patch+json"}
    answer = ask(DEFINED, ("PATCH", f"{TABS}/none?fieldValidation=Strict", {"spec": {"bogus": 1}}, headers))
    assert (answer.code, answer.json["reason"]) == (404, "NotFound")


@pytest.mark.parametrize("level", ["Strict", "Warn", "Ignore"])
def test_an_apply_refuses_what_is_not_declared(level):
    """Server-side apply refuses the first such field at any level, as it cannot say whose it is."""
    headers = {"Content-Type": "application/apply-patch+yaml"}
    body = json.dumps(tab("a", image="i", bogus=1, another={"x": 1}))
    answer = ask(DEFINED, ("PATCH", f"{TABS}/a?fieldManager=m&fieldValidation={level}", body, headers))
    problem = ".spec.another: field not declared in schema"
    text = f"failed to create typed patch object (/a; stable.example.com/v1, Kind=CronTab): {problem}"
    assert (answer.code, answer.json["message"]) == (500, text)
    good = json.dumps(tab("a", image="i", free={"x": 1}))
    assert ask(DEFINED, ("PATCH", f"{TABS}/a?fieldManager=m", good, headers)).code == 201
