"""Objects in Kubernetes' protobuf form read back unchanged."""

from __future__ import annotations

import pytest
from tests.docs.samples import SAMPLES

from kubetide.objects.api_types import api_types, type_of_kind
from kubetide.objects.kinds import KINDS
from kubetide.objects.protobuf import decode_message
from kubetide.objects.protobuf_encoding import encode_message

BUILT_IN = [
    (sample, kind)
    for sample in SAMPLES
    if (kind := KINDS.get((sample["apiVersion"], sample["kind"]))) and type_of_kind(kind) in api_types()
]
# The samples share conditions, some of whose fields a kind does not have; a quantity has one printed form.
NOT_OF_EVERY_KIND = {"lastHeartbeatTime", "lastUpdateTime", "collisionCount", "tolerance"}


def lost(reported, back, where=""):
    """Return where a value that was encoded did not come back."""
    if isinstance(reported, dict):
        found = [
            lost(value, back.get(name), f"{where}.{name}")
            for name, value in reported.items()
            if name not in NOT_OF_EVERY_KIND and (value or name in back)
        ]
    elif isinstance(reported, list):
        pairs = zip(reported, back or [], strict=True)
        found = [lost(one, other, f"{where}[{at}]") for at, (one, other) in enumerate(pairs)]
    else:
        return [] if reported == back else [f"{where}: {reported} became {back}"]
    return [place for places in found for place in places]


@pytest.mark.parametrize(("sample", "kind"), BUILT_IN, ids=[sample["kind"] for sample, _ in BUILT_IN])
def test_every_kind_comes_back(sample, kind):
    """All that an object of a built-in kind says is there after encoding and decoding."""
    name = type_of_kind(kind)
    back = decode_message(encode_message(sample, name), name)
    assert lost({key: sample[key] for key in sample.keys() - {"apiVersion", "kind"}}, back) == []


def test_zeros_are_written_unless_they_say_something():
    """A field that is always there is written when it is zero; one that may be absent is not."""
    taint = {"key": "k", "effect": "NoSchedule"}
    assert encode_message(taint, "io.k8s.api.core.v1.Taint") == b"\x0a\x01k\x12\x00\x1a\x0aNoSchedule"
