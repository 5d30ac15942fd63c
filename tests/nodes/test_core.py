"""Whole states: their bytes in one part and in several, their memory read back, and what is freed when one replaces another."""

from __future__ import annotations

import gc
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nodes.frozen import World, group, node, pod

from kubetide.explain import pieces
from kubetide.nodes.core import as_read_back, decode_delta, encode_delta, encode_in_pieces
from kubetide.nodes.memory import Memory
from kubetide.nodes.records.delta import Delta, Gone
from kubetide.nodes.records.export import export_state
from kubetide.nodes.settings import Settings
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.workload import ReplicaSet
from kubetide.scheduling import classify


def named(model, count):
    return tuple(model(metadata=ObjectMeta(namespace="a", name=f"x{number}")) for number in range(count))


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "_PIECE", 3)


DELTAS = st.builds(
    lambda step, nodes, pods, sets, deleted, full: Delta(
        step=step,
        nodes=named(Node, nodes),
        pods=named(Pod, pods),
        replica_sets=named(ReplicaSet, sets),
        gone=Gone(pods=(("a", "b"),)) if deleted else Gone(),
        settings=Settings() if full else None,
        memory=Memory(rotation=4) if full else None,
    ),
    st.sampled_from(["update", "actuate"]),
    st.integers(0, 7),
    st.integers(0, 7),
    st.integers(0, 2),
    st.booleans(),
    st.booleans(),
)


@given(DELTAS)
def test_pieces_add_up_to_the_whole(delta):
    """Whatever is there or not: the same bytes, and no piece holds many objects."""
    found = list(encode_in_pieces(delta))
    assert b"".join(found) == encode_delta(delta)
    assert decode_delta(b"".join(found)) == delta
    assert max(piece.count(b'"name"') for piece in found[:-1]) <= 3


def test_memory_is_that_of_the_moment_of_asking():
    """The loop's memory goes on changing while the pieces are not written yet."""
    memory = Memory(rotation=4)
    delta = Delta(pods=named(Pod, 1), memory=memory)
    expected, found = encode_delta(delta), encode_in_pieces(delta)
    memory.rotation = 5
    assert b"".join(found) == expected


def test_memory_reads_back_as_it_was():
    memory = Memory(rotation=4, former_instances={"p": "g"})
    read = as_read_back(memory)
    assert read == memory
    assert read is not memory


ALIKE = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
SPREAD = {"topologySpreadConstraints": [{**ALIKE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}


def test_what_a_state_held_before_it_starts_anew_is_freed_at_once():
    """Records of the whole state start it anew every half hour; no cycle keeps the earlier snapshots in memory."""
    world = World(
        pods=[pod("a", node="n1", labels={"app": "web"}), pod("b", cpu="64")],
        nodes=[node("n1")],
        groups=[group("g", nodes=["n1"]), group("h")],
    )
    world.tick()
    assert world.state.template_matrix is not None, "a pod that waits has been evaluated"
    spread = classify(pod("c", labels={"app": "web"}, spec=SPREAD))
    assert world.state.snapshot.feasible(spread).all()
    snapshot, templates = world.state.snapshot, world.state.template_matrix.all
    held = [weakref.ref(one) for one in (snapshot, snapshot._store.rows, templates)]
    del snapshot, templates
    everything = export_state(world.state)
    gc.collect()
    gc.disable()
    try:
        world.state.apply(everything, full=True)
        assert [one() for one in held] == [None] * 3
    finally:
        gc.enable()
