"""Which of the unneeded nodes go now: whole groups, pods that must end by themselves, turns of groups, how many are looked for."""

from __future__ import annotations

import pytest

from kubetide.nodes.explain.answers import explain_node
from kubetide.units.time import ZERO, seconds

SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SOON = {"scale_down_unneeded_time": seconds(1)}


def removed(made):
    return [one.node for one in made.status.scaled_down]


def with_spare_node(made):
    """Add a node that stays and takes what moves."""
    return made.add_group("keep", minimum=1).add_node("keep-0", "keep")


def add_waiting(made, name, node):
    return made.add_pod(name, node, metadata={"annotations": {SAFE: "on-completion"}})


def test_a_whole_group_goes_without_the_machines_that_never_joined(world):
    """All that have joined are enough; nobody need wait for the others."""
    made = world(**SOON).add_group("a", zero_or_max_node_scaling=True).add_node("a-0").add_node("a-1")
    made.awaited["a"] = 1
    made.loop()
    made.loop()
    assert removed(made) == ["a-0", "a-1"]


def test_a_node_that_waits_for_its_pods_has_its_share_of_the_minimum(world):
    """Of two nodes above the minimum of one, the first by name would be the one to go; it waits, and so the other stays."""
    made = with_spare_node(world(**SOON)).add_group("a", minimum=1).add_node("a-0").add_node("a-1")
    add_waiting(made, "w", "a-0").add_pod("v", "a-0").add_pod("x", "a-1")
    made.loop()
    made.loop()
    assert removed(made) == []
    assert made.verdicts() == {"a-0": "BlockedByOnCompletionPod", "a-1": "NodeGroupMinSizeReached"}


def test_pods_that_end_by_themselves_need_no_other_place(world):
    """The node is unneeded although they fit nowhere else, and what it had room for goes to the others."""
    made = world(**SOON).add_group("a").add_node("a-0").add_node("a-1").add_node("a-2")
    made.add_pod("big", "a-0", cpu="3000m").add_pod("p", "a-2", cpu="900m")
    made.add_pod("w", "a-1", cpu="1500m", metadata={"annotations": {SAFE: "on-completion"}})
    made.loop()
    made.loop()
    assert removed(made) == ["a-2"]
    assert made.verdicts() == {"a-0": "NotUnderutilized", "a-1": "BlockedByOnCompletionPod"}
    del made.pods["default", "w"]
    made.settle(seconds(30))
    made.loop()
    assert removed(made) == ["a-1"]


def test_nodes_that_only_wait_are_tried_before_others(world):
    """A node to drain does not get the place of a pod on a node that needs to move none."""
    made = world(**SOON).add_group("a").add_node("a-0").add_node("a-1")
    add_waiting(made.add_pod("x", "a-0"), "w", "a-1")
    made.loop()
    assert made.status.unneeded == ("a-1",)
    assert made.verdicts()["a-0"] == "NoPlaceToMovePods"


def test_a_whole_group_waits_for_pods_that_end_by_themselves(world):
    """None of it goes; nodes without such a pod block no others."""
    made = with_spare_node(world(**SOON)).add_group("a", zero_or_max_node_scaling=True)
    add_waiting(made.add_node("a-0").add_node("a-1"), "w", "a-0")
    made.add_group("b").add_node("b-0", "b")
    made.loop()
    made.loop()
    assert removed(made) == ["b-0"]
    assert made.verdicts() == {"a-0": "BlockedByOnCompletionPod"}


def test_the_first_group_gives_its_nodes_before_the_next_one(world):
    """Of nodes whose names alternate between groups those of the group that comes up first go first."""
    made = world(**SOON, max_scale_down_parallelism=2).add_group("a").add_group("b")
    for number, group in enumerate("abab"):
        made.add_node(f"n{number}", group)
    made.loop()
    made.loop()
    assert removed(made) == ["n0", "n2"]


def test_with_no_time_to_wait_twice_the_parallelism_is_looked_for(world):
    """Upstream counts one loop before a node may go, whatever the interval."""
    made = world(scale_down_unneeded_time=ZERO, max_scale_down_parallelism=2).add_group("a")
    for number in range(6):
        made.add_node(f"a-{number}")
    made.loop()
    assert made.status.unneeded == ("a-0", "a-1", "a-2", "a-3")


def whole_groups(world, sizes, *occupied, **settings):
    """Return a world with groups that go as a whole; each node of the occupied ones has a pod that can move."""
    made = world(**SOON, **settings).add_group("zz", minimum=1).add_node("zz-0", "zz")
    made.add_pod("f", "zz-0", cpu="2400m")
    for group, size in sizes.items():
        made.add_group(group, zero_or_max_node_scaling=True)
        for number in range(size):
            made.add_node(f"{group}-{number}", group)
            if group in occupied:
                made.add_pod(f"p-{group}-{number}", f"{group}-{number}", cpu="10m")
    made.loop()
    made.loop()
    return made


def test_a_second_whole_group_may_not_exceed_the_parallelism(world):
    """Only the first one may, even where the first did not need to."""
    made = whole_groups(world, {"a": 2, "b": 3}, max_scale_down_parallelism=4)
    assert removed(made) == ["a-0", "a-1"]


def test_a_whole_group_to_drain_may_fit_where_an_empty_one_does_not(world):
    """When an empty group exceeds the limit no further empty groups go, but drained ones still may."""
    limits = {"max_scale_down_parallelism": 4, "max_drain_parallelism": 4}
    made = whole_groups(world, {"a": 2, "b": 3, "c": 2}, "c", **limits)
    assert removed(made) == ["a-0", "a-1", "c-0", "c-1"]


@pytest.mark.parametrize(("first", "then"), [(2, []), (3, ["b-0", "b-1", "b-2"])])
@pytest.mark.parametrize("occupied", [(), ("a", "b")])
def test_a_whole_group_waits_only_for_one_that_just_used_up_the_parallelism(first, then, occupied, world):
    """While a group is deleted that exceeded the limit, the next one may exceed it as well, as upstream counts."""
    limits = {"max_scale_down_parallelism": 2, "max_drain_parallelism": 2}
    made = whole_groups(world, {"a": first, "b": 3}, *occupied, **limits)
    assert removed(made) == [f"a-{number}" for number in range(first)]
    made.loop(seconds(1))
    assert removed(made) == then


@pytest.mark.parametrize(
    ("limits", "cpu", "said"),
    [
        ({"max_drain_parallelism": 1}, "100m", "as many nodes are being drained as --max-drain-parallelism=1 allows"),
        ({"max_scale_down_parallelism": 1}, None, "as many nodes are being deleted as --max-scale-down-parallelism=1 allows"),
        ({"max_node_deletions_per_hour": 1}, None, "--max-node-deletions-per-hour=1 is reached"),
    ],
)  # fmt: skip
def test_explain_names_the_limit_that_leaves_a_node_for_later(world, limits, cpu, said):
    """Of two nodes that could go the limit lets one; the answer about the other says so, also while the first goes."""
    made = with_spare_node(world(**SOON, **limits)).add_group("a").add_node("a-0").add_node("a-1")
    if cpu:
        made.add_pod("x", "a-0", cpu=cpu).add_pod("y", "a-1", cpu=cpu)
    made.loop()
    made.loop()
    assert removed(made) == ["a-0"]
    for _ in range(2):
        sentence = explain_node(made.state, "a-1", made.now).sentence
        assert sentence == f"It is unneeded since 2026-01-01T00:00:10Z; it does not go now: {said}."
        made.loop()
