"""A state that receives changes equals the state that receives everything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubetide.nodes.records.export import export_state
from kubetide.nodes.state import Delta, Gone, State
from kubetide.objects.meta import ObjectMeta, OwnerReference
from kubetide.objects.node import Node, NodeStatus
from kubetide.objects.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements

NODES = ("a", "b")
NODE = {"cpu": "4", "memory": "8Gi", "pods": "10"}


def node(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable=NODE))


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    name = draw(st.sampled_from(["p", "q", "r", "s"]))
    owner = draw(st.sampled_from(["web", "db", ""]))
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=name,
            labels={"app": owner},
            deletion_timestamp=draw(st.sampled_from([None, "2026-03-02T05:00:00Z"])),
            owner_references=(OwnerReference(kind="ReplicaSet", name=owner, uid=owner, controller=True),)
            if owner
            else None,
        ),
        spec=PodSpec(
            node_name=draw(st.sampled_from([*NODES, "", ""])),
            containers=(
                Container(
                    name="main",
                    resources=ResourceRequirements(requests={"cpu": draw(st.sampled_from(["100m", "1"]))}),
                ),
            ),
            priority=draw(st.sampled_from([None, 0, -100])),
        ),
        status=PodStatus(
            phase=draw(st.sampled_from(["Pending", "Running", "Running", "Failed"])),
            nominated_node_name=draw(st.sampled_from(["", "", *NODES])),
        ),
    )


changes = st.one_of(
    st.lists(pods(), min_size=1, max_size=4, unique_by=lambda pod: pod.metadata.name).map(
        lambda changed: Delta(pods=tuple(changed))
    ),
    st.sampled_from(["p", "q", "r", "s"]).map(lambda name: Delta(gone=Gone(pods=(("default", name),)))),
    st.sampled_from(NODES).map(lambda name: Delta(nodes=(node(name),))),
    st.sampled_from(NODES).map(lambda name: Delta(gone=Gone(nodes=(name,)))),
)


def seen(state: State) -> object:
    """The pods and nodes that readers see, but for their order of arrival."""
    snapshot, held = state.snapshot, state.held_pods
    owned = [
        (uid, namespace, held.controlled_by(uid), held.count_controlled_by(uid))
        for uid, namespace, _ in held.controllers()
    ]
    rows = {
        name: {key: left for key, left in snapshot.stock(name).items() if left}
        for name in sorted(snapshot.node_names)
    }
    on = {name: sorted(pod.metadata.name for pod in snapshot.pods_on(name)) for name in NODES}
    return dict(state.pending), state.pods, owned, rows, on


@given(st.lists(changes, max_size=12), st.booleans())
def test_changes_add_up_to_the_state_made_of_the_whole(deltas, asks_early):
    """Bound, nominated, no longer nominated, expendable, finished and deleted pods leave nothing of before."""
    state = State()
    if asks_early:
        assert seen(state)
    for delta in deltas:
        state.apply(delta)
        if asks_early:
            seen(state)
    again = State()
    again.apply(export_state(state), full=True)
    assert seen(again) == seen(state)
