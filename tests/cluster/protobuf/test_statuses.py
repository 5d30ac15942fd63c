"""A status that is read like one before it is the same as read by itself."""

from __future__ import annotations

import copy

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cluster.protobuf.encoding import Drawn, message

from kubetide.cluster.protobuf.fields import model_fields
from kubetide.cluster.protobuf.readers import Readers
from kubetide.objects.api_types import type_of_kind
from kubetide.objects.kinds import PODS
from kubetide.objects.pod import Pod, PodStatus

STATUS = "io.k8s.api.core.v1.PodStatus"
UNREADABLE = (DecodeError, ValueError, OverflowError)
KINDS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
TIMES = (
    "2026-03-02T10:00:07Z",
    "2026-03-02T10:00:08Z",
    "2026-11-30T23:59:59Z",
    "1971-01-01T00:00:00Z",  # shorter than others in bytes
    "3500-01-01T00:00:00Z",  # longer
    None,
)


class Counted:
    """Reads statuses; counts those that were read by themselves."""

    def __init__(self):
        readers = Readers({type_of_kind(PODS): Pod})
        parse, read = (
            readers.types["io_k8s_api_core_v1_PodStatus"].FromString,
            readers.reader(PodStatus, STATUS),
        )
        self.count = 0
        self.by_itself = lambda piece: read(parse(piece))
        (field,) = (one for one in model_fields(Pod, type_of_kind(PODS)) if one.name == "status")
        self.statuses = readers._statuses(field)
        self.statuses._read = self._read

    def _read(self, piece):
        self.count += 1
        return self.by_itself(piece)

    def __call__(self, piece):
        return self.statuses.read(piece)


READ = Counted()


def status_of(times=TIMES[:1] * 5, **more):
    """A status as a kubelet writes it."""
    conditions = [
        {"type": kind, "status": "True", **({} if time is None else {"lastTransitionTime": time})}
        for kind, time in zip(KINDS, times, strict=False)
    ]
    return {
        "phase": "Running",
        "conditions": conditions,
        "podIP": "10.0.0.7",
        "startTime": times[0] or TIMES[0],
        "containerStatuses": [{"name": "app", "ready": True, "restartCount": 2, "containerID": "c://1"}],
        **more,
    }


def changed(status, change):
    conditions = status["conditions"]
    match change:
        case "phase":
            status["phase"] = "Failed"
        case "no phase":
            del status["phase"]
        case "not ready":
            conditions[-1] |= {"status": "False", "reason": "No", "message": "x" * 200}
        case "one more":
            conditions.append({"type": "DisruptionTarget", "status": "True", "lastTransitionTime": TIMES[0]})
        case "one more without time":
            conditions.append({"type": "DisruptionTarget", "status": "True"})
        case "one less":
            conditions.pop()
        case "probed":
            conditions[0]["lastProbeTime"] = TIMES[1]
        case "no conditions":
            del status["conditions"]
        case "type that looks like a time":
            conditions[0]["type"] = 'R\x12\x04True\x1a\x00"\x08\x08aaaaa\x10\x00'
        case "long type":
            conditions[0]["type"] = "t" * 150
        case "other order":
            conditions.reverse()
        case "nothing else":
            for name in ("podIP", "startTime", "containerStatuses"):
                del status[name]
        case "resized":
            status["containerStatuses"][0]["resources"] = {"requests": {"cpu": "1"}}
    return status


CHANGES = (
    "",
    "",
    "phase",
    "no phase",
    "not ready",
    "one more",
    "one more without time",
    "one less",
    "probed",
    "no conditions",
    "type that looks like a time",
    "long type",
    "other order",
    "nothing else",
    "resized",
)

drawn_statuses = st.builds(
    lambda times, change: message(changed(copy.deepcopy(status_of(times)), change), STATUS),
    st.lists(st.sampled_from(TIMES), min_size=1, max_size=5).map(tuple),
    st.sampled_from(CHANGES),
)


@settings(max_examples=200)
@given(st.lists(drawn_statuses, min_size=1, max_size=6).map(lambda pieces: pieces * 3))
def test_statuses_come_out_as_by_themselves(pieces):
    """Whichever status comes first, and however little the others differ, each says what it says."""
    for piece in pieces:
        assert READ(piece) == READ.by_itself(piece)


@settings(max_examples=100)
@given(st.integers(0, 2**48))
def test_statuses_of_any_fields(seed):
    """Statuses of any fields come out as by themselves, also when they come again."""
    piece = message(Drawn(seed).object(STATUS), STATUS)
    for _ in range(3):
        assert READ(piece) == READ.by_itself(piece)


@settings(max_examples=200)
@given(drawn_statuses, st.data())
def test_bytes_that_were_changed(piece, data):
    """Bytes that are no status any more are refused exactly where they are refused without the cache."""
    bytes_of = bytearray(piece)
    for _ in range(data.draw(st.integers(1, 3))):
        bytes_of[data.draw(st.integers(0, len(bytes_of) - 1))] = data.draw(st.integers(0, 255))
    for one in [message(status_of(), STATUS)] * 2:
        READ(one)
    try:
        READ(bytes(bytes_of))
    except UNREADABLE:
        with pytest.raises(UNREADABLE):
            READ.by_itself(bytes(bytes_of))


def test_the_third_of_a_kind_is_not_read_again():
    """Times and all that comes after the conditions may differ; what is the same is one object."""
    read = Counted()
    first = [read(message(status_of(), STATUS)) for _ in range(2)][1]
    other = status_of((TIMES[1],) * 5, podIP="10.200.100.70", containerStatuses=[])
    third = read(message(other, STATUS))
    assert read.count == 2
    assert [one.last_transition_time for one in first.conditions] == [TIMES[0]] * 5
    assert [one.last_transition_time for one in third.conditions] == [TIMES[1]] * 5
    assert third.conditions[0].type is first.conditions[0].type
    assert third.start_time is third.conditions[0].last_transition_time


def test_what_is_held_is_bounded():
    """Phases and conditions that no longer come are evicted; frequent ones stay."""
    read = Counted()
    usual = message(status_of(), STATUS)
    for number in range(100):
        for _ in range(2):
            read(message(status_of(phase=f"Phase-{number}"), STATUS))
        read(usual)
    assert len(read.statuses._shapes) == 8
    assert len(read.statuses._strangers) <= 64
    assert read.count == 202
