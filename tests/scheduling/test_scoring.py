"""Scores of nodes, the order in which they are visited, and the choice among the best."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling import classify_unbound
from kubetide.scheduling.scoring import (
    DEFAULT,
    PROFILES,
    NodeChooser,
    OwnerSelectors,
    ScoredSnapshot,
    ScoreError,
    default_selector,
    incoming,
    profile_of,
)
from kubetide.scheduling.scoring.choice import _enough, _pre_order
from kubetide.scheduling.scoring.image_states import ImageStates
from kubetide.scheduling.scoring.node_tree import NodeTree

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def node(name: str, *, zone: str = "", cpu: str = "4", images: Any = (), **spec: Any) -> Node:
    labels = {HOSTNAME: name, **({ZONE: zone} if zone else {})}
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    status = {"allocatable": allocatable, "images": images}
    return msgspec.convert(
        {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": status}, Node
    )


def pod(name: str = "p", labels: Any = None, owner: str = "", **spec: Any) -> Pod:
    meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": name, "labels": labels or {}}
    if owner:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
        meta["ownerReferences"] = [{**reference, "controller": True}]
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    return msgspec.convert({"metadata": meta, "spec": {"containers": [container], **spec}}, Pod)


def cluster(*nodes: Node) -> ScoredSnapshot:
    snapshot = ScoredSnapshot()
    for one in nodes:
        snapshot.set_node(one)
    return snapshot


def chosen(snapshot: ScoredSnapshot, one: Pod, profile: str = DEFAULT, spread: Any = None) -> str | None:
    given = incoming(one, classify_unbound(one), spread, images=bool(snapshot.images), minor=36)
    return NodeChooser(profile_of(profile), seed=1).choose(given, snapshot)


SOFT = [{"key": "going", "effect": "PreferNoSchedule"}]


def test_soft_taints_are_avoided_where_another_node_takes_the_pod():
    """A node with a PreferNoSchedule taint is the last choice, and for who tolerates it like any other."""
    snapshot = cluster(node("soft", taints=SOFT, cpu="8"), node("full"))
    assert chosen(snapshot, pod()) == "full"
    assert chosen(snapshot, pod(tolerations=[{"operator": "Exists"}])) == "soft"
    snapshot.remove_node("full")
    assert chosen(snapshot, pod()) == "soft"


def test_pods_of_an_owner_are_spread_by_default():
    """Without constraints of its own, a pod goes where fewer pods of its owner are, by zone as by node."""
    labels = {"app": "web"}
    snapshot = cluster(node("a", zone="a"), node("b", zone="b"))
    snapshot.add_pod(pod("first", labels), "a")
    known = OwnerSelectors(services={"default": [labels]})
    selector = default_selector(pod("second", labels), known)
    # Without the selector the emptier node would be taken as well, so this one is made the fuller one.
    for at in range(2):
        snapshot.add_pod(pod(f"other-{at}"), "b")
    assert chosen(snapshot, pod("second", labels)) == "a"
    assert chosen(snapshot, pod("second", labels), spread=selector) == "b"


def test_the_profile_decides_whether_pods_are_packed():
    """mostAllocated takes the fuller node, the default profile the emptier one."""
    snapshot = cluster(node("a"), node("b"))
    for at in range(5):
        snapshot.add_pod(pod(f"other-{at}"), "b")
    assert chosen(snapshot, pod()) == "a"
    assert chosen(snapshot, pod(), "mostAllocated") == "b"


def test_a_profile_that_there_is_not_is_reported():
    """The error names the profiles there are."""
    with pytest.raises(ValueError, match=r"'packed' is no profile of the scheduler, there are: default"):
        profile_of("packed")


def test_what_cannot_be_scored_fails_the_pod_where_nodes_are_compared():
    """A preference that cannot be read is an error with several feasible nodes, and nothing with one."""
    wrong = {"key": "x", "operator": "Gt", "values": ["many"]}
    preferred = [{"weight": 1, "preference": {"matchExpressions": [wrong]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    snapshot = cluster(node("a"))
    assert chosen(snapshot, pod(affinity=affinity)) == "a"
    snapshot.set_node(node("b"))
    with pytest.raises(
        ScoreError, match=r'running PreScore plugin "NodeAffinity": \[0\].*must be an integer'
    ):
        chosen(snapshot, pod(affinity=affinity))


def heap_root(scores: list[int]) -> int:
    """Return the position whose score is at the root of a heap made bottom up, step by step."""
    heap = list(range(len(scores)))
    for begin in range(len(heap) // 2 - 1, -1, -1):
        at = begin
        while (left := 2 * at + 1) < len(heap):
            child = left
            if left + 1 < len(heap) and scores[heap[left + 1]] > scores[heap[left]]:
                child = left + 1
            if scores[heap[child]] <= scores[heap[at]]:
                break
            heap[at], heap[child] = heap[child], heap[at]
            at = child
    return heap[0]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=70))
def test_ties_are_broken_as_a_heap_does(scores):
    """The first of the highest scores in pre-order is at the root of the heap."""
    found = NodeChooser(PROFILES[DEFAULT])._best(np.array(scores, np.int64))
    assert found == heap_root(scores)
    assert len(set(_pre_order(len(scores)).tolist())) == len(scores)


def test_zones_take_turns():
    """Nodes are visited one of each zone in turn; a zone whose last node goes comes back at the end."""
    tree = NodeTree()
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("a3", "a"), ("c1", "c")):
        tree.put(node(name, zone=zone))
    assert tree.names() == ["a1", "b1", "c1", "a2", "a3"]
    tree.put(node("a1", zone="c"))
    assert tree.names() == ["a2", "b1", "c1", "a3", "a1"]
    tree.remove("b1")
    tree.put(node("b2", zone="b"))
    assert tree.names() == ["a2", "c1", "b2", "a3", "a1"]


@pytest.mark.parametrize(
    ("nodes", "enough"), [(5, 6), (99, 100), (100, 100), (300, 144), (1000, 420), (5000, 500)]
)
def test_so_many_feasible_nodes_are_enough(nodes, enough):
    """All nodes of a small cluster are scored, of a large one a share that falls with its size."""
    assert _enough(nodes) == enough


def test_the_search_goes_on_where_the_last_one_ended():
    """In a cluster of 300 nodes one search ends after 144, and the next begins behind these."""
    snapshot = cluster(*(node(f"n{at:03}") for at in range(300)))
    chooser = NodeChooser(PROFILES[DEFAULT])
    given = incoming(pod(), classify_unbound(pod()), None, images=False, minor=36)
    assert [chooser.choose(given, snapshot) for _ in range(3)] == ["n000", "n144", "n288"]


def test_nodes_that_do_not_take_the_pod_are_passed_before_the_search_ends():
    """A search ends at the first node that takes the pod beyond those wanted; the next one begins there."""
    names = [f"n{at:03}" for at in range(300)]
    snapshot = cluster(*(node(name, cpu="0" if 144 <= at < 150 else "4") for at, name in enumerate(names)))
    chooser = NodeChooser(PROFILES[DEFAULT])
    asking, bare = pod(), pod("bare", containers=[{"name": "c"}])
    found = [
        chooser.choose(incoming(one, classify_unbound(one), None, images=False, minor=36), snapshot)
        for one in (asking, bare)
    ]
    assert found == ["n000", "n150"]


def test_a_search_over_all_nodes_begins_where_it_ended():
    """Where no more nodes than those wanted take the pod, all are looked at: the next search begins as this one."""
    names = [f"n{at:03}" for at in range(300)]
    snapshot = cluster(*(node(name, cpu="4" if at < 144 else "0") for at, name in enumerate(names)))
    chooser = NodeChooser(PROFILES[DEFAULT])
    asking, bare = pod(), pod("bare", containers=[{"name": "c"}])
    found = [
        chooser.choose(incoming(one, classify_unbound(one), None, images=False, minor=36), snapshot)
        for one in (asking, bare)
    ]
    assert found == ["n000", "n000"]


def test_a_pod_that_names_its_node_moves_the_beginning_of_the_next_search():
    """The nodes that a pod names count as looked at, those that do not exist and all others not."""
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
        for name in ("c", "gone")
    ]
    required = {"nodeSelectorTerms": terms}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    snapshot = cluster(node("a"), node("b"), node("c"))
    chooser = NodeChooser(PROFILES[DEFAULT])
    found = [
        chooser.choose(incoming(one, classify_unbound(one), None, images=False, minor=36), snapshot)
        for one in (pod(), pod("daemon", affinity=affinity), pod(), pod())
    ]
    assert found == ["a", "c", "b", "b"]


def test_what_pods_do_not_name_counts_until_they_go():
    """A pod without requests counts 100m and 200Mi for scoring, and nothing once it is deleted."""
    snapshot = cluster(node("a"), node("b"))
    bare = pod("bare", containers=[{"name": "c"}])
    snapshot.add_pod(bare, "a")
    assert chosen(snapshot, pod()) == "b"
    assert snapshot.requested["cpu"].tolist() == [0, 0]
    snapshot.remove_pod(("default", "bare"))
    assert snapshot.stock_of(np.array([0, 1])).unasked.tolist() == [[0, 0], [0, 0]]
    assert chosen(snapshot, pod()) == "a"


def test_preferred_affinity_of_pods_counts_while_they_are_there():
    """A pod's preferred affinity draws later pods that it means, until it goes; nodes may go and come meanwhile."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    snapshot = cluster(node("gone"), node("a"), node("b"))
    snapshot.add_pod(pod("host", affinity=affinity), "b")
    web = pod("web", {"app": "web"})
    assert chosen(snapshot, web) == "b"
    snapshot.remove_node("gone")
    assert chosen(snapshot, web) == "b"
    snapshot.remove_pod(("default", "host"))
    assert chosen(snapshot, web) == "a"


def test_the_size_of_an_image_is_the_first_nodes():
    """A name has the size that was reported first, until no node has it."""
    states = ImageStates()
    states.put(node("a", images=[{"names": ["app:1"], "sizeBytes": 100}]))
    states.put(node("b", images=[{"names": ["app:1"], "sizeBytes": 900}]))
    found = states.weights("app:1", ["a", "b", "c"], 4)
    assert found is not None
    assert found.tolist() == [50, 50, 0]
    states.remove("a")
    states.put(node("b"))
    assert states.weights("app:1", ["b"], 4) is None
