"""The API's types: protobuf bodies and OpenAPI documents."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.manifests.structure import type_of
from kubetide.embedded.apiserver.types import openapi
from kubetide.embedded.apiserver.types.openapi_v2 import document_v2, protobuf_v2
from kubetide.embedded.apiserver.types.protobuf import decode_protobuf
from kubetide.objects.api_types import api_types, type_of_kind
from kubetide.objects.kinds import CONFIG_MAPS, DEPLOYMENTS, POD_METRICS, STORED_KINDS
from kubetide.ports.errors import BadRequest


def varint(number):
    out = bytearray()
    while True:
        byte, number = number & 0x7F, number >> 7
        out.append(byte | (0x80 if number else 0))
        if not number:
            return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def body(api_version, kind, message):
    meta = field(1, api_version) + field(2, kind)
    return b"k8s\x00" + field(1, meta) + field(2, message)


def test_a_deployment():
    """A message reads as the JSON of the same object: absent zeros are left out, explicit zeros remain."""
    container = field(1, "web") + field(2, "web:1") + field(5, "")
    limits = field(1, field(1, "cpu") + field(2, field(1, "100m")))
    container += field(8, limits)
    pod = field(2, container)
    template = field(1, field(11, field(1, "app") + field(2, "web"))) + field(2, pod)
    rolling = field(1, field(1, 1) + field(2, 0) + field(3, "25%"))
    spec = field(1, 0) + field(3, template) + field(4, field(1, "") + field(2, rolling)) + field(5, 0)
    created = field(8, field(1, 1_772_409_600))
    message = field(1, field(1, "web") + field(7, 0) + created) + field(2, spec) + field(3, b"")
    assert decode_protobuf(body("apps/v1", "Deployment", message)) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "creationTimestamp": "2026-03-02T00:00:00Z"},
        "spec": {
            "replicas": 0,
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {"name": "web", "image": "web:1", "resources": {"limits": {"cpu": "100m"}}}
                    ]
                },
            },
            "strategy": {"rollingUpdate": {"maxUnavailable": "25%"}},
        },
        "status": {},
    }


def test_members_of_an_inlined_type():
    """In JSON a volume's source is beside its name, though it is a message of its own."""
    volume = field(1, "v") + field(2, field(2, field(1, "Memory")))
    said = decode_protobuf(body("v1", "Pod", field(2, field(1, volume))))
    assert said["spec"]["volumes"] == [{"name": "v", "emptyDir": {"medium": "Memory"}}]


@given(st.binary(max_size=60), st.sampled_from([("v1", "Pod"), ("apps/v1", "Deployment"), ("v1", "Nothing")]))
@settings(max_examples=100)
def test_broken_bodies_are_refused(raw, kind):
    """Bytes that are no message are a BadRequest, never another error."""
    for data in (raw, b"k8s\x00" + raw, body(*kind, raw)):
        try:
            decode_protobuf(data)
        except BadRequest:
            continue


def test_a_time_without_a_year_is_refused():
    """A time after the year 9999 cannot be written in JSON, so it is a BadRequest."""
    for seconds in (253_402_300_800, 1 << 62):
        with pytest.raises(BadRequest, match="a time is out of range"):
            decode_protobuf(body("v1", "Pod", field(1, field(8, field(1, seconds)))))


def test_no_body_is_nested_without_end():
    """Nesting has a limit, as every level is a call."""
    message = b""
    for _ in range(500):
        message = field(2, message)
    with pytest.raises(BadRequest):
        decode_protobuf(b"k8s\x00" + message)


@pytest.mark.parametrize("kind", STORED_KINDS, ids=lambda kind: kind.resource)
def test_every_field_in_use_is_a_field_of_the_api(kind):
    """The top of every stored kind is in the table of types, with the fields that are read."""
    names = {field.name for field in api_types()[type_of_kind(kind)]}
    ours = {field.encode_name for field in type_of(kind).fields} - {"apiVersion", "kind"}
    assert ours <= names


def test_every_reference_is_answered():
    """A document holds every schema that it refers to, and names the kind and its writes' parameters."""
    kinds = (*STORED_KINDS, POD_METRICS)
    paths = openapi.index(kinds)["paths"]
    assert paths["apis/apps/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/apps/v1?hash=")
    for path in paths:
        document = openapi.document(path, kinds)
        schemas = document["components"]["schemas"]
        assert set(references(document)) <= {f"#/components/schemas/{name}" for name in schemas}
    apps = openapi.document("apis/apps/v1", kinds)
    schema = apps["components"]["schemas"][type_of_kind(DEPLOYMENTS)]
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "apps", "version": "v1", "kind": "Deployment"}
    ]
    patch = apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}


def references(value):
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_nothing_served_has_no_document():
    """A group that is not served has no document."""
    assert openapi.document("apis/none/v1", (CONFIG_MAPS,)) is None


def test_the_second_version_says_the_same():
    """OpenAPI v2 has the definitions of v3, its references answered, and a protobuf form that holds all names."""
    second = document_v2((*STORED_KINDS, POD_METRICS))
    definitions = second["definitions"]
    assert set(references(second)) <= {f"#/definitions/{name}" for name in definitions}
    spec = definitions["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]
    assert spec["replicas"] == {"type": "integer", "format": "int64"}
    packed = protobuf_v2(second)
    assert all(name.encode() in packed for name in definitions)


def test_old_clients_learn_what_can_be_tried_out():
    """In OpenAPI v2 the patch of each kind names its kind and has the parameter dryRun, which kubectl 1.20 reads."""
    second = document_v2((CONFIG_MAPS,))
    path = "/api/v1/namespaces/{namespace}/configmaps/{name}"
    patch = second["paths"][path]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert "dryRun" in [one["name"] for one in patch["parameters"]]
    packed = protobuf_v2(second)
    assert all(text in packed for text in (path.encode(), b"dryRun"))
