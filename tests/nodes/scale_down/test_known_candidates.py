"""Only nodes with changed pods are looked at again, and nothing is decided otherwise for it."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.nodes.frozen import World, group, node, pod

from kubetide.nodes.scale_down.facts import Cache
from kubetide.scheduling.snapshot.node_pods import PodChanges
from kubetide.units.time import minutes, seconds

NODES = ("n0", "n1", "n2", "n3")
CHANGE = st.one_of(
    st.tuples(
        st.just("put"), st.integers(0, 7), st.sampled_from(NODES), st.sampled_from(["100m", "900m", "2"])
    ),
    st.tuples(st.just("gone"), st.integers(0, 7)),
    st.tuples(st.just("pending"), st.integers(8, 9), st.sampled_from(["500m", "3"])),
    st.tuples(st.just("cordon"), st.sampled_from(NODES), st.booleans()),
    st.tuples(st.just("minimum"), st.integers(0, 4)),
    st.tuples(st.just("ending"), st.integers(0, 7), st.sampled_from(NODES)),
)
TICKS = st.lists(st.tuples(st.lists(CHANGE, max_size=3), st.integers(1, 400)), min_size=1, max_size=8)
BUSY = {
    "scale_down_unneeded_time": minutes(2),
    "scale_down_delay_after_add": seconds(0),
    "unremovable_node_recheck_timeout": minutes(3),
    "max_scale_down_parallelism": 1,
}


def world():
    return World(
        nodes=[node(name) for name in NODES],
        pods=[pod("p0", cpu="500m", node="n0"), pod("p1", cpu="3", node="n1")],
        groups=[group("g", maximum=9, nodes=NODES)],
        settings=BUSY,
    )


def move(made, changes, at):
    """Apply the changes and run a tick at that many seconds; return what came of it, as bytes."""
    pods, nodes, deleted = {}, {}, {}
    for what, *of in changes:
        match what:
            case "put":
                pods[f"p{of[0]}"] = pod(f"p{of[0]}", cpu=of[2], node=of[1])
            case "gone":
                deleted["default", f"p{of[0]}"] = None
            case "pending":
                pods[f"p{of[0]}"] = pod(f"p{of[0]}", cpu=of[1])
            case "cordon":
                nodes[of[0]] = node(of[0], spec={"unschedulable": True} if of[1] else {})
            case "minimum":
                made.change("g", min_size=of[0])
            case "ending":
                stops = {
                    "metadata": {
                        "deletionTimestamp": "2026-03-02T08:01:00Z",
                        "deletionGracePeriodSeconds": 30,
                    }
                }
                pods[f"p{of[0]}"] = pod(f"p{of[0]}", cpu="2", node=of[1], **stops)
    left = {name: one for name, one in pods.items() if ("default", name) not in deleted}
    made.tick(
        at=seconds(at), pods=tuple(left.values()), nodes=tuple(nodes.values()), deleted_pods=tuple(deleted)
    )
    return msgspec.json.encode(
        [made.commands, made.events, made.reasons, made.state.memory], order="deterministic"
    )


@settings(max_examples=120, deadline=None)
@given(ticks=TICKS)
def test_what_is_known_of_candidates_changes_nothing(ticks):
    """With all findings used again, and with every node looked at in each tick, the same is decided, said and remembered."""
    known, anew = world(), world()
    anew.state.memo = False
    anew.state.scale_down_cache = Cache(enabled=False)
    at = 0
    for changes, later in ticks:
        at += later
        assert move(known, changes, at) == move(anew, changes, at)


def test_changes_are_reported_from_the_last_on():
    """A node that changes twice is reported once, and those that changed before a stamp are not."""
    changes = PodChanges()
    for name in ("a", "b", "c"):
        changes.note(name)
    stamp = changes.stamp
    changes.note("a")
    changes.note("d")
    changes.note("a")
    assert changes.since(stamp) == ["a", "d"]
    assert changes.since(0) == ["a", "d", "c", "b"]
    assert changes.since(changes.stamp) == []
