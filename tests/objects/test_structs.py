from __future__ import annotations

import re

import msgspec
import pytest

from kubetide.embedded.apiserver.manifests.upstream_fields import UPSTREAM_FIELDS
from kubetide.objects.base import ApiStruct
from kubetide.objects.kinds import KINDS, POD_METRICS, STORED_KINDS


def structs():
    """Return the types of the Kubernetes API and of the Cloud port; clouds spell their own APIs as they do."""
    found, left = {}, [ApiStruct]
    while left:
        for struct in left.pop().__subclasses__():
            if struct.__module__.startswith(("kubetide.objects.", "kubetide.ports.")):
                found[struct.__qualname__] = struct
            left.append(struct)
    return [found[name] for name in sorted(found)]


@pytest.mark.parametrize("struct", structs(), ids=lambda struct: struct.__name__)
def test_json_names_spell_acronyms_as_kubernetes_does(struct):
    """No JSON name ends a word in Id, Ip, Cidr or Uri: upstream writes those in capitals."""
    for field in msgspec.structs.fields(struct):
        assert re.fullmatch(r"[a-z][a-zA-Z0-9]*", field.encode_name)
        assert not re.search(r"(?:Id|Ip|Ips|Cidr|Uri|Url|Api)(?=[A-Z]|$)", field.encode_name)


@pytest.mark.parametrize("struct", structs(), ids=lambda struct: struct.__name__)
def test_every_list_and_map_may_be_absent(struct):
    """An empty object reads as every type, as servers leave out or null what is empty."""
    empty = msgspec.convert({}, struct)
    for field in msgspec.structs.fields(struct):
        if isinstance(getattr(empty, field.name), tuple | dict):
            pytest.fail(f"{field.name} is a list or map that cannot be absent")


def test_the_table_of_upstream_fields_repeats_none_of_ours():
    """A field that is read is known from its struct alone."""
    for struct, names in UPSTREAM_FIELDS.items():
        ours = {field.encode_name for field in msgspec.structs.fields(struct)}
        assert not ours & names


def test_kinds_are_found_by_what_a_manifest_says():
    """Each kind is found by apiVersion and kind, and its untyped form reads plain JSON."""
    assert len({(kind.group, kind.plural) for kind in STORED_KINDS}) == len(STORED_KINDS)
    for (api_version, name), kind in KINDS.items():
        assert (kind.api_version, kind.kind) == (api_version, name)
        assert kind.untyped.model is dict
        assert kind.untyped.resource == kind.resource
    assert POD_METRICS.resource == "pods.metrics.k8s.io"
