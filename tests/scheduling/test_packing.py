"""Estimates by arithmetic against placing pods one at a time on nodes added one at a time."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling import plain
from tests.scheduling.plain import make_container, make_node, make_pod

from kubetide.objects.pod import ContainerPort
from kubetide.scheduling import (
    Limits,
    PodGroup,
    Snapshot,
    classify,
    cluster_threshold,
    estimate,
    similar_groups_threshold,
)
from kubetide.scheduling.estimator.order import Orders
from kubetide.scheduling.estimator.reference import reference_estimate
from kubetide.scheduling.estimator.round_robin import go_round


def group(pod, count):
    pods = tuple(plain.renamed(pod, f"{pod.metadata.name}-{index}") for index in range(count))
    return PodGroup(pods, classify(pods[0]))


groups_of_pods = st.lists(
    st.builds(group, plain.pods(("a", "b", "c")), st.integers(1, 12)), min_size=1, max_size=4
).map(
    lambda groups: [
        PodGroup(
            tuple(plain.renamed(pod, f"g{number}-{pod.metadata.name}") for pod in one.pods), one.pod_class
        )
        for number, one in enumerate(groups)
    ]
)
roomy = st.builds(
    lambda cpu, memory, count, tainted: make_node("t", cpu=f"{cpu}m", memory=memory, pods=count, **tainted),
    st.integers(0, 9000),
    st.integers(0, 4000),
    st.integers(0, 6),
    st.sampled_from(
        ({}, {}, {"labels": {"zone": "a", "gen": "2"}}, {"unschedulable": True}, {"example.com/gpu": 3})
    ),
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(plain.nodes, max_size=3),
    roomy,
    st.lists(plain.pods(("agent0", "agent1")), max_size=1),
    groups_of_pods,
    st.sampled_from((0, 1, 3, -1)),
    st.integers(0, 12),
)
def test_arithmetic_is_the_same_as_one_pod_at_a_time(nodes, template, daemon_pods, groups, threshold, start):
    """Counts per group and node, the limit and the scan position are those of placing each pod by itself."""
    snapshot = Snapshot()
    for node in nodes:
        snapshot.set_node(node)
    limits = Limits((threshold,))
    version, free = snapshot.version, {key: column.tobytes() for key, column in snapshot.free.items()}
    found = estimate(snapshot, template, daemon_pods, groups, limits, start=start)
    assert (snapshot.version, {key: column.tobytes() for key, column in snapshot.free.items()}) == (
        version,
        free,
    )
    count, counts, added, limited, after = reference_estimate(
        snapshot, template, daemon_pods, groups, limits, start
    )
    assert found.nodes == count
    assert found.added == tuple(added)
    assert found.limited == limited
    assert [len(pods) for pods in found.scheduled] == [sum(row.values()) for row in counts]
    for name in added:
        assert found.pods_on(name) == {index: row[name] for index, row in enumerate(counts) if name in row}
    rows = len(snapshot) + len(added)
    assert not rows or found.start % rows == after % rows


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.integers(1, 40), st.integers(0, 8))
def test_going_round_is_dealing_one_by_one(capacity, pods, start):
    """Dealing whole cycles gives each node as many pods as dealing one pod after another."""
    left, taken, last = list(capacity), [0] * len(capacity), -1
    position = start
    for _ in range(pods):
        order = [(position + step) % len(capacity) for step in range(len(capacity))]
        target = next((node for node in order if left[node]), None)
        if target is None:
            break
        left[target] -= 1
        taken[target] += 1
        last, position = target, target + 1
    fill = go_round(np.array(capacity, np.int64), pods, start % len(capacity))
    assert fill.taken.tolist() == taken
    assert fill.last == last


def test_identical_pods_fill_whole_nodes():
    """50,000 pods, 13 to a node, need 3,847 nodes, and the last is not full."""
    found = estimate(
        Snapshot(),
        make_node("t", cpu="4000m", pods=110),
        (),
        [group(make_pod("p", {"cpu": "300m"}), 50_000)],
        Limits(),
    )
    assert found.nodes == 3847
    assert len(found.scheduled[0]) == 50_000
    assert found.pods_on("t-e-3846") == {0: 50_000 - 3846 * 13}


def test_host_port_takes_a_node_each():
    """Pods with the same host port go one to a node; another port goes beside them, from the second node on."""
    on_80 = make_pod("a", containers=(make_container(ports=(ContainerPort(host_port=80),)),))
    on_81 = make_pod("b", containers=(make_container(ports=(ContainerPort(host_port=81),)),))
    found = estimate(Snapshot(), make_node("t"), (), [group(on_80, 3), group(on_81, 2)], Limits())
    assert found.nodes == 3
    assert [found.pods_on(name) for name in found.added] == [{0: 1}, {0: 1, 1: 1}, {0: 1, 1: 1}]


def test_pods_that_name_a_new_node_fit_on_that_one_only():
    """Copies of a template differ by hostname where a pod selects one."""
    second = make_pod("p", {"cpu": "1"}, node_selector={"kubernetes.io/hostname": "t-e-1"})
    found = estimate(
        Snapshot(), make_node("t"), (), [group(make_pod("big", {"cpu": "4"}), 1), group(second, 3)], Limits()
    )
    assert [found.pods_on(name) for name in found.added] == [{0: 1}, {1: 3}]
    template_itself = make_pod("p", {"cpu": "1"}, node_selector={"kubernetes.io/hostname": "t"})
    assert estimate(Snapshot(), make_node("t"), (), [group(template_itself, 3)], Limits()).nodes == 0


def test_a_limit_still_lets_later_groups_use_what_was_added():
    """After a refused node, later groups go on filling the nodes that are there."""
    big, small = make_pod("big", {"cpu": "3"}), make_pod("small", {"cpu": "500m"})
    found = estimate(Snapshot(), make_node("t"), (), [group(big, 5), group(small, 9)], Limits((2,)))
    assert found.nodes == 2
    assert found.limited
    assert [len(pods) for pods in found.scheduled] == [2, 4]


def test_a_pod_too_large_leaves_an_empty_node_that_is_not_counted():
    """The node added for a pod that does not fit on it stays for others, and is no node needed."""
    huge, small = make_pod("huge", {"cpu": "9"}), make_pod("small", {"cpu": "1"})
    found = estimate(Snapshot(), make_node("t"), (), [group(huge, 2)], Limits())
    assert (found.nodes, found.added) == (0, ("t-e-0",))
    found = estimate(Snapshot(), make_node("t"), (), [group(huge, 2), group(small, 4)], Limits((1,)))
    assert (found.nodes, [len(pods) for pods in found.scheduled]) == (1, [0, 4])


def test_larger_groups_are_packed_first():
    """Groups are ordered by their share of cpu plus memory; equal ones stay in order."""
    groups = [
        group(make_pod("a", {"cpu": "1"}), 1),
        group(make_pod("b", {"cpu": "500m", "memory": "900"}), 1),
        group(make_pod("c", {"memory": "250"}), 1),
    ]
    assert Orders(groups, 36).of(make_node("t"), range(3)) == [1, 0, 2]
    assert Orders(groups, 36).of(make_node("t", memory=None), range(3)) == [0, 1, 2]


def test_thresholds():
    """The smallest positive threshold holds, 0 sets none, a negative one forbids all."""
    assert Limits(()).max_nodes is None
    assert Limits((0, 0)).max_nodes is None
    assert Limits((1000, 0, 7)).max_nodes == 7
    assert Limits((1000, -1)).max_nodes == 0
    assert similar_groups_threshold([(5, 2), (3, 4)]) == 3
    assert similar_groups_threshold([(2, 2)]) == -1
    assert cluster_threshold(0, 50) == 0
    assert cluster_threshold(60, 50) == 10
    assert cluster_threshold(50, 50) == -1
