"""Pods and nodes in protobuf are read into the same structs as in JSON."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.protobuf.encoding import Drawn, block, body, frame, list_body, message, number_of

from kubetide.cluster.decoding import decode_event, decode_list
from kubetide.cluster.protobuf import ProtobufCodec
from kubetide.cluster.protobuf.fields import model_fields, nested
from kubetide.cluster.protobuf.shared import Shared
from kubetide.cluster.refusals import error_of_body
from kubetide.objects.api_types import STATUS, type_of_kind
from kubetide.objects.kinds import CONFIG_MAPS, NODES, PODS
from kubetide.objects.meta import Condition
from kubetide.ports.errors import Expired, InternalError, NotFound

CODEC = ProtobufCodec()

END = {"k8s.io/initial-events-end": "true"}


def named(found, name):
    return {**found, "metadata": {**found.get("metadata", {}), "name": name}}


def raw_of(kind, found):
    return message(found, type_of_kind(kind))


def whole_of(kind, found):
    return body(kind.api_version, kind.kind, raw_of(kind, found))


def unframed(whole):
    """Return the one frame of a stream without its length."""
    (one,), rest = CODEC.cut(b"", whole)
    assert rest == b""
    return one


# ── The same structs ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [PODS, NODES], ids=lambda kind: kind.kind)
@settings(max_examples=100)
@given(st.integers(0, 2**48))
def test_lists_come_out_as_in_json(kind, seed):
    """Objects of any fields, as a list in protobuf and in JSON, are equal structs."""
    drawn = Drawn(seed)
    objects = [named(drawn.object(type_of_kind(kind)), f"one-{index}") for index in range(3)]
    metadata = {"resourceVersion": "7", "continue": "next"}
    plain = json.dumps({"kind": f"{kind.kind}List", "metadata": metadata, "items": objects}).encode()
    packed = list_body("v1", kind.kind, [raw_of(kind, one) for one in objects], more="next")
    found = CODEC.decode_list(kind, packed)
    assert (found, []) == decode_list(kind, plain)
    # What was read before is given again: it must be the same.
    assert CODEC.decode_list(kind, packed) == found


@pytest.mark.parametrize("kind", [PODS, NODES], ids=lambda kind: kind.kind)
@settings(max_examples=75)
@given(st.integers(0, 2**48), st.sampled_from(["ADDED", "MODIFIED", "DELETED"]))
def test_events_come_out_as_in_json(kind, seed, said):
    """Events of any objects, in protobuf and in JSON, are equal."""
    found = named(Drawn(seed).object(type_of_kind(kind)), "one")
    typed = {"apiVersion": kind.api_version, "kind": kind.kind, **found}
    line = json.dumps({"type": said, "object": typed}).encode()
    packed = unframed(frame(said, whole_of(kind, found)))
    assert CODEC.decode_event(packed, kind) == decode_event(line, kind)


def test_every_field_of_the_structs_is_read():
    """A field of a struct that no type of the API has would be missing in protobuf alone."""
    read = {}
    for kind in (PODS, NODES):
        for model, type_name in nested(kind.model, type_of_kind(kind)):
            read.setdefault(model, set()).update(field.name for field in model_fields(model, type_name))
    assert len(read) > 30
    elsewhere = {
        PODS.model: {"api_version", "kind"},  # the message around them names the type
        NODES.model: {"api_version", "kind"},
        Condition: {"last_update_time"},  # of Deployments
    }
    for model, fields in read.items():
        assert set(model.__struct_fields__) - fields == elsewhere.get(model, set()), model


def test_equal_pieces_are_one_object():
    """Parts that two pods have in common are held once."""
    spec = {
        "containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}],
        "tolerations": [{"key": "a", "operator": "Exists"}],
    }
    pods = [named({"spec": spec, "metadata": {"labels": {"app": "web"}}}, name) for name in ("a", "b")]
    one, two = CODEC.decode_list(PODS, list_body("v1", "Pod", [raw_of(PODS, pod) for pod in pods])).items
    assert one.spec.tolerations[0] is two.spec.tolerations[0]
    assert one.spec.containers[0].resources is two.spec.containers[0].resources
    assert next(iter(one.metadata.labels)) is next(iter(two.metadata.labels))


def test_the_cache_of_pieces_is_bounded():
    """Neither many pieces nor long ones stay in the cache."""
    shared = Shared(bytes.decode)
    for number in range(20_000):
        assert shared[b"%d" % number] == str(number)
    assert len(shared) <= 8_192
    assert shared[b"x" * 5_000] == "x" * 5_000
    assert b"x" * 5_000 not in shared


# ── Streams ─────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.integers(0, 90), max_size=9), st.data())
def test_frames_are_cut_wherever_the_stream_is(lengths, data):
    """However a stream is cut into pieces, its frames come out whole and in order."""
    frames = [bytes([number]) * length for number, length in enumerate(lengths)]
    stream = b"".join(len(one).to_bytes(4, "big") + one for one in frames)
    found, rest = [], b""
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        more, rest = CODEC.cut(rest, stream[:size])
        found += more
        stream = stream[size:]
    assert found == frames
    assert rest == b""


def test_a_frame_that_is_too_long_is_none():
    """A length of gigabytes is a stream that is no frames."""
    with pytest.raises(InternalError, match="longer than 64 MiB"):
        CODEC.cut(b"", b'{"type":"ADDED"}')


def test_the_closing_bookmark():
    """The bookmark after the objects that a watch begins with is reported from others."""
    last = {"metadata": {"resourceVersion": "12", "annotations": END}}
    event, ends = CODEC.decode_event(unframed(frame("BOOKMARK", whole_of(PODS, last))), PODS)
    assert (event.type, event.object, event.resource_version, ends) == ("BOOKMARK", None, "12", True)
    other = whole_of(PODS, {"metadata": {"resourceVersion": "13"}})
    assert CODEC.decode_event(unframed(frame("BOOKMARK", other)), PODS)[1] is False


def test_errors():
    """An error in a stream and one that is an answer say what their Status says."""
    expired = {
        "status": "Failure",
        "message": "too old resource version: 1 (2)",
        "reason": "Expired",
        "code": 410,
    }
    whole = body("v1", "Status", message(expired, STATUS))
    with pytest.raises(Expired, match="too old resource version: 1"):
        CODEC.decode_event(unframed(frame("ERROR", whole)), PODS)
    details = {"name": "nono", "kind": "pods", "retryAfterSeconds": 3}
    missing = {"message": 'pods "nono" not found', "reason": "NotFound", "code": 404, "details": details}
    error = error_of_body(404, body("v1", "Status", message(missing, STATUS)))
    assert isinstance(error, NotFound)
    assert str(error) == 'pods "nono" not found'
    assert error.retry_after_s == 3
    assert error.details == {"name": "nono", "kind": "pods"}


# ── What cannot be read ─────────────────────────────────────────────────────────────────────────

POD = named({"spec": {"containers": [{"name": "app", "image": "web"}]}}, "one")
NOTES = block(1, block(1, b"one") + block(3, b"\xff\xfe"))
"""A pod whose namespace is no text."""


@pytest.mark.parametrize(
    ("whole", "said"),
    [
        (b"", "magic number is missing"),
        (b'{"kind":"PodList"}', "magic number is missing"),
        (b"k8s\x00\xff\xff\xff", "cannot be read"),
        (list_body("v1", "Pod", [raw_of(PODS, POD)])[:-20], "cannot be read"),
        (
            list_body("v1", "Node", [raw_of(NODES, named({}, "one"))]),
            "it holds 'NodeList' of 'v1', not PodList",
        ),
        (list_body("v2", "Pod", []), "not PodList of v1"),
        (list_body("v1", "Pod", [raw_of(PODS, {})]), "an object has no name"),
        (list_body("v1", "Pod", [NOTES]), "utf-8"),
        (
            list_body("v1", "Pod", [block(1, block(1, b"one") + block(8, number_of(1, 253_402_300_800)))]),
            "year",
        ),
        (
            list_body("v1", "Pod", [block(1, block(1, b"one") + block(8, number_of(1, 1 << 62)))]),
            "cannot be read",
        ),
        (list_body("v1", "Pod", [block(1, block(1, b"one") + block(11, b"\xff"))]), "cannot be read"),
    ],
)
def test_lists_that_cannot_be_read(whole, said):
    """An answer that is no list of that kind is reported as such, so that it is requested again."""
    with pytest.raises(InternalError, match=said):
        CODEC.decode_list(PODS, whole)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (b"\xff\xff", "cannot be read"),
        (block(1, b"ADDED"), "magic number is missing"),
        (unframed(frame("ADDED", whole_of(NODES, named({}, "one")))), "it holds 'Node'"),
        (unframed(frame("ADDED", whole_of(PODS, {}))), "has no name"),
        (unframed(frame("MOVED", whole_of(PODS, POD))), 'unknown type "MOVED"'),
        (unframed(frame("ADDED", body("v1", "Pod", NOTES))), "utf-8"),
        (unframed(frame("ERROR", b"k8s\x00\xff")), "cannot be read"),
    ],
)
def test_events_that_cannot_be_read(event, said):
    """An event that is none, or of something else, ends the watch."""
    with pytest.raises(InternalError, match=said):
        CODEC.decode_event(event, PODS)


@settings(max_examples=150)
@given(st.integers(0, 2**48), st.data())
def test_bytes_that_were_changed_raise_nothing_else(seed, data):
    """Any bytes are either read or refused as unreadable."""
    whole = bytearray(
        list_body("v1", "Pod", [raw_of(PODS, named(Drawn(seed).object(type_of_kind(PODS)), "one"))])
    )
    for _ in range(data.draw(st.integers(1, 6))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = CODEC.decode_list(PODS, bytes(whole))
    except InternalError:
        return
    assert msgspec.json.encode(found)


def test_what_is_requested_in_protobuf():
    """Pods and nodes are, as structs; other kinds and plain JSON are not."""
    assert CODEC.knows(PODS)
    assert CODEC.knows(NODES)
    assert not CODEC.knows(PODS.untyped)
    assert not CODEC.knows(CONFIG_MAPS)


def test_numbers_of_the_wrong_kind_are_passed_over():
    """A field whose wire type is another one is as unknown as a new field."""
    strange = block(1, block(1, b"one") + number_of(3, 7) + block(7, b"x")) + number_of(99, 1)
    (pod,) = CODEC.decode_list(PODS, list_body("v1", "Pod", [strange])).items
    assert (pod.metadata.name, pod.metadata.namespace, pod.metadata.generation) == ("one", "", 0)
