"""Placing pods on existing nodes: order, hints, the scan, the similar-pods shortcut."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.scheduling import plain
from tests.scheduling.plain import make_node, make_pod

from kubetide.objects.meta import OwnerReference
from kubetide.objects.pod import Toleration
from kubetide.scheduling import Snapshot, classify, hint_key, place


def cluster(count=3, **allocatable):
    snapshot = Snapshot()
    for index in range(count):
        snapshot.set_node(make_node(f"n{index}", **allocatable))
    return snapshot


def owned_by(uid):
    return (OwnerReference(kind="ReplicaSet", name="rs", uid=uid, controller=True),)


def names(result):
    return [(pod.metadata.name, node) for pod, node in result.placed]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(plain.nodes, max_size=5),
    st.lists(
        st.tuples(
            plain.pods(("x",)), st.sampled_from((None, 0, 5)), st.sampled_from((None, *plain.NAMES[:3]))
        ),
        max_size=8,
    ),
    st.integers(0, 6),
    st.sets(st.sampled_from(plain.NAMES), max_size=2),
)
def test_placing_equals_evaluating_each_pod_in_turn(nodes, incoming, start, exclude):
    """Each pod goes where evaluating node by node in scan order puts it, given those placed before."""
    snapshot, by_name = Snapshot(), {}
    for node in nodes:
        snapshot.set_node(node)
        by_name[node.metadata.name] = node
    pods, hints = [], {}
    for index, (pod, priority, hint) in enumerate(incoming):
        renamed = plain.renamed(pod, f"x{index}")
        pods.append(replace(renamed, spec=replace(renamed.spec, priority=priority)))
        if hint:
            hints[hint_key(pods[-1])] = hint
    on_node = {name: [] for name in by_name}
    expected, order = [], sorted(pods, key=lambda pod: -(pod.spec.priority or 0))
    position = start
    for priority in sorted({pod.spec.priority or 0 for pod in pods}, reverse=True):
        rest = []
        for pod in order:
            if (pod.spec.priority or 0) != priority:
                continue
            hint = hints.get(hint_key(pod))
            if hint in by_name and hint not in exclude and not plain.judge(pod, by_name[hint], on_node[hint]):
                on_node[hint].append(pod)
                expected.append((pod.metadata.name, hint))
            else:
                rest.append(pod)
        for pod in rest:
            rows = list(by_name)
            for step in range(len(rows)):
                row = (position + step) % len(rows)
                node = by_name[rows[row]]
                if node.spec.unschedulable or rows[row] in exclude:
                    continue
                if not plain.judge(pod, node, on_node[rows[row]]):
                    on_node[rows[row]].append(pod)
                    expected.append((pod.metadata.name, rows[row]))
                    position = row + 1
                    break
    result = place(snapshot, pods, hints=hints, exclude=exclude, start=start)
    assert names(result) == expected
    assert result.start == position
    assert len(result.placed) + len(result.unplaced) == len(pods)
    for name in by_name:
        assert list(snapshot.pods_on(name)) == on_node[name]


def test_the_first_scan_begins_at_the_second_node():
    """Without an earlier position the scan starts at index 1 and wraps."""
    result = place(cluster(), [make_pod(f"p{index}") for index in range(4)])
    assert names(result) == [("p0", "n1"), ("p1", "n2"), ("p2", "n0"), ("p3", "n1")]
    assert result.start == 2


def test_hinted_pods_go_before_others_of_their_priority():
    """A hint is used before any pod without one, and is set anew; higher priority goes first of all."""
    pods = [
        make_pod("plain", {"cpu": "4"}),
        make_pod("hinted", {"cpu": "4"}),
        make_pod("high", {"cpu": "4"}, priority=9),
    ]
    result = place(cluster(2), pods, hints={"uid-hinted": "n0"})
    assert names(result) == [("high", "n1"), ("hinted", "n0")]
    assert [pod.metadata.name for pod in result.unplaced] == ["plain"]
    assert result.hints == {"uid-high": "n1", "uid-hinted": "n0"}


def test_a_cordoned_node_is_used_by_hint_only():
    """A pod that tolerates the cordon goes to a cordoned node when hinted, and never by scanning."""
    pod = make_pod("p", tolerations=(Toleration(key="node.kubernetes.io/unschedulable", operator="Exists"),))
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0", unschedulable=True))
    assert place(snapshot, [pod]).unplaced == (pod,)
    assert names(place(snapshot, [pod], hints={"uid-p": "n0"})) == [("p", "n0")]


def test_stopping_ends_one_priority_only():
    """After a failure the rest of that priority is left, lower priorities are still tried."""
    pods = [
        make_pod("a", {"cpu": "9"}, priority=5),
        make_pod("b", {"cpu": "1"}, priority=5),
        make_pod("c", {"cpu": "1"}, priority=1),
    ]
    result = place(cluster(), pods, stop_at_failure=True)
    assert [pod.metadata.name for pod in result.unplaced] == ["a"]
    assert [pod.metadata.name for pod in result.unprocessed] == ["b"]
    assert names(result) == [("c", "n1")]


def test_ten_failing_specs_are_remembered_per_controller():
    """A controller with more than ten distinct failing specs is counted as overflowing."""
    pods = [
        make_pod(f"p{index}", {"cpu": f"{9 + index}"}, owner_references=owned_by("rs")) for index in range(12)
    ]
    result = place(cluster(), pods)
    assert len(result.unplaced) == 12
    assert result.overflowing == 1
    assert place(cluster(), pods[:10]).overflowing == 0


def test_a_moving_pod_is_not_bound_to_the_node_it_is_on():
    """A running pod that was taken out of the snapshot may go to another node."""
    result = place(cluster(), [make_pod("p", node_name="gone")])
    assert names(result) == [("p", "n1")]


def test_classes_are_interned():
    """Equal specs, namespaces and labels give the same class, whatever the pods are called."""
    one = classify(make_pod("a", {"cpu": "1"}, labels={"x": "1", "y": "2"}))
    assert classify(make_pod("b", {"cpu": "1"}, labels={"y": "2", "x": "1"})) is one
    assert classify(make_pod("a", {"cpu": "1"}, labels={"x": "1"})) != one
    assert classify(make_pod("a", {"cpu": "1"}, namespace="other", labels={"x": "1", "y": "2"})) != one
