"""A spec that is read as a sibling of another one is the same as read by itself."""

from __future__ import annotations

import copy
from functools import cache

import msgspec
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.protobuf.encoding import Drawn, message

from kubetide.cluster.protobuf.fields import model_fields
from kubetide.cluster.protobuf.readers import Readers
from kubetide.objects.api_types import type_of_kind
from kubetide.objects.kinds import PODS
from kubetide.objects.meta import OwnerReference
from kubetide.objects.pod import Pod, PodSpec

SPEC = "io.k8s.api.core.v1.PodSpec"
READERS = Readers({type_of_kind(PODS): Pod})
MESSAGE = READERS.types["io_k8s_api_core_v1_PodSpec"]
READ = READERS.reader(PodSpec, SPEC)
(FIELD,) = (one for one in model_fields(Pod, type_of_kind(PODS)) if one.name == "spec")
OWNERS = (OwnerReference(uid="uid-of-web"),)
TOKENS = (
    "kube-api-access-abcde",
    "kube-api-access-fghij",
    "kube-api-access-k2l4m",
    "kube-api-access-short",
    "token",
)
UNREADABLE = (DecodeError, ValueError, OverflowError)
NODES = ("", "a", "node-1", "node-2", "node-10", "größe", "n" * 127, "n" * 130)


def by_itself(piece):
    return READ(MESSAGE.FromString(piece))


def packed(spec):
    return message(spec, SPEC)


class Counted:
    """Reads specs; counts those that were read by themselves."""

    def __init__(self):
        self.count = 0
        self.specs = READERS._specs(FIELD)
        self.specs._read = self._read

    def _read(self, piece):
        self.count += 1
        return by_itself(piece)

    def __call__(self, piece, owners=OWNERS):
        return self.specs.read(piece, owners)


def spec_of(node="node-1", token=TOKENS[0], **more):
    """A spec as an API server has it."""
    mounts = [
        {"name": "config", "mountPath": "/etc/app"},
        {"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True},
    ]
    return {
        "volumes": [
            {"name": "config", "configMap": {"name": "app"}},
            {"name": token, "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        ],
        "containers": [
            {"name": name, "image": "i:1", "resources": {"requests": {"cpu": "1"}}, "volumeMounts": mounts}
            for name in ("app", "proxy")
        ],
        "restartPolicy": "Always",
        "nodeName": node,
        "tolerations": [{"key": "a", "operator": "Exists"}],
        **more,
    }


def affinity_to(node):
    """The affinity that the DaemonSet controller gives."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def small_change(spec, node, token, change):
    """Change what a sibling may have otherwise, or say a name where none is looked for."""
    first = spec["containers"][0]
    match change:
        case "affinity":
            spec["affinity"] = affinity_to(node)
        case "other affinity":
            spec["affinity"] = affinity_to("elsewhere")
        case "environment":
            first["env"] = [{"name": "NODE", "value": node}, {"name": "TOKEN", "value": token}]
        case "environment that looks like fields":
            first["env"] = [{"name": "A", "value": f"R\x06{node}\n\x15{token}"}]
        case "image":
            first["image"] = "i:2"
        case "named so":
            first["name"] = token
        case "selector":
            spec["nodeSelector"] = {token: node}
        case "no mount":
            del first["volumeMounts"]
        case "two mounts":
            first["volumeMounts"].append({"name": token, "mountPath": "/again"})
        case "other mount":
            first["volumeMounts"] = [{"name": TOKENS[1], "mountPath": "/x"}]
        case "no volume":
            del spec["volumes"]
        case "no container":
            del spec["containers"]
        case "init container":
            spec["initContainers"] = [copy.deepcopy(first)]
        case "hostname":
            spec["hostname"] = node
        case "after the node":
            spec["schedulerName"] = node
    return spec


CHANGES = (
    "",
    "affinity",
    "other affinity",
    "environment",
    "environment that looks like fields",
    "image",
    "named so",
    "selector",
    "no mount",
    "two mounts",
    "other mount",
    "no volume",
    "no container",
    "init container",
    "hostname",
    "after the node",
)


@cache
def drawn_spec(node, token, change):
    return packed(small_change(spec_of(node, token), node, token, change))


drawn_specs = st.builds(
    drawn_spec,
    st.sampled_from(NODES),
    st.sampled_from(TOKENS),
    st.sampled_from(CHANGES),
)


@settings(max_examples=120)
@given(st.lists(drawn_specs, min_size=2, max_size=6))
def test_siblings_come_out_as_by_themselves(pieces):
    """Whichever spec of an owner comes first, and however little the others differ, each says what it says."""
    read = Counted()
    for piece in pieces:
        assert read(piece) == by_itself(piece)


@settings(max_examples=50)
@given(st.integers(0, 2**48), st.sampled_from(NODES))
def test_specs_of_any_fields(seed, node):
    """Specs of any fields, one beside the other that differs in its node, come out as by themselves."""
    drawn = Drawn(seed).object(SPEC)
    read = Counted()
    for name in ("node-1", node, "node-2"):
        piece = packed({**drawn, "nodeName": name})
        assert read(piece) == by_itself(piece)


@settings(max_examples=120)
@given(drawn_specs, st.data())
def test_bytes_that_were_changed(piece, data):
    """Bytes that are no spec any more are refused, or read as without the cache."""
    read = Counted()
    read(packed(spec_of()))
    changed = bytearray(piece)
    for _ in range(data.draw(st.integers(1, 3))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try:
        expected = by_itself(bytes(changed))
    except UNREADABLE:
        with pytest.raises(UNREADABLE):
            read(bytes(changed))
        return
    assert read(bytes(changed)) == expected


@pytest.mark.parametrize(
    "change", ["", "environment", "init container", "no mount", "image", "other affinity"]
)
def test_a_sibling_is_not_read_again(change):
    """Node and token may differ, also in the length of the node's name: what is the same is one object."""
    read = Counted()
    known, other = (
        read(packed(small_change(spec_of(node, token), "unheard-of", token, change)))
        for node, token in (("node-1", TOKENS[0]), ("node-20", TOKENS[1]))
    )
    assert read.count == 1
    assert (known.node_name, other.node_name) == ("node-1", "node-20")
    assert [one.name for one in other.volumes] == ["config", TOKENS[1]]
    assert [one.name for one in other.containers[1].volume_mounts] == ["config", TOKENS[1]]
    assert [one.name for one in known.volumes] == ["config", TOKENS[0]]
    assert other.tolerations is known.tolerations
    assert other.containers[0].resources is known.containers[0].resources


def test_pods_of_a_daemon_set():
    """Each has an affinity to its own node; pods of several sets on one node have one."""
    read = Counted()
    nodes = ("node-1", "node-2", "a-node-with-" + "a" * 110)
    for owner in ("uid-of-one", "uid-of-other"):
        for node, token in zip(nodes, TOKENS, strict=False):
            spec = read(
                packed(spec_of(node, token, affinity=affinity_to(node))), (OwnerReference(uid=owner),)
            )
            assert spec == by_itself(packed(spec_of(node, token, affinity=affinity_to(node))))
    assert read.count == 2
    again = [packed(spec_of("node-2", token, affinity=affinity_to("node-2"))) for token in TOKENS[:2]]
    one, two = (read(piece, (OwnerReference(uid="uid-of-one"),)) for piece in again)
    assert one.affinity is two.affinity


def test_owners_do_not_share_an_entry():
    """A pod without owner is read by itself, and so is the first of each owner."""
    read = Counted()
    piece = packed(spec_of())
    for number in range(3):
        read(piece, (OwnerReference(uid=f"uid-{number}"),))
    for owners in (None, ()):
        read(piece, owners)
    assert read.count == 5


def test_a_first_one_that_was_odd_is_forgotten():
    """After some that are not like the known one, another takes its place."""
    read = Counted()
    read(packed(small_change(spec_of(), "node-1", TOKENS[0], "image")))
    for number in range(20):
        read(packed(spec_of(f"node-{number}")))
    assert read.count == 6


def test_an_owner_in_use_stays_cached():
    """However many other owners come and go, pods of an owner in use are read from its cached spec."""
    read = Counted()
    piece = packed(spec_of())
    for number in range(5_000):
        if not number % 500:
            read(packed(spec_of(f"node-{number}")))
        read(piece, (OwnerReference(uid=f"uid-{number}"),))
    assert read.count == 5_001


def test_what_is_held_is_bounded():
    """Nothing is left of owners that go."""
    read = Counted()
    piece = packed(spec_of())
    for number in range(2_500):
        read(piece, (OwnerReference(uid=f"uid-{number}"),))
    assert len(read.specs._known) + len(read.specs._older) <= 2_000
    assert len(read.specs._strangers) <= 2_000
    long = small_change(spec_of(), "node-1", TOKENS[0], "environment")
    long["containers"][0]["env"][0]["value"] = "v" * 20_000
    read(packed(long), (OwnerReference(uid="uid-of-long"),))
    assert "uid-of-long" not in read.specs._known
    assert msgspec.json.encode(read(piece)) == msgspec.json.encode(by_itself(piece))
