"""Soft taints: which nodes get and lose them, and what those of an earlier process say."""

from __future__ import annotations

import pytest

from kubetide.nodes.scale_down.decide import decide as decide_scale_down
from kubetide.nodes.scale_down.decide import forget_unneeded
from kubetide.nodes.scale_down.soft_taints import cleanup_event, startup_cleanup
from kubetide.units.time import minutes, seconds


def test_soft_taints_are_bounded_and_taken_off_first(world):
    """One change a tick with --max-bulk-soft-taint-count 1: needed nodes lose theirs before unneeded ones get one."""
    made = world(max_bulk_soft_taint_count=1).add_group("a")
    for index in range(3):
        made.add_node(f"a-{index}")
    made.loop()
    assert made.tainted() == ["a-0"]
    made.add_pod("x", "a-0", cpu="3").loop()
    assert made.tainted() == []
    made.loop()
    assert made.tainted() == ["a-1"]


def test_soft_taints_of_nodes_in_no_group_stay(world):
    """Another autoscaler may have set them."""
    taint = [{"key": "DeletionCandidateOfClusterAutoscaler", "value": "1", "effect": "PreferNoSchedule"}]
    made = world().add_group("a").add_node("x", group="none", spec={"taints": taint})
    made.loop()
    assert made.tainted() == ["x"]


def test_nodes_that_are_out_of_the_snapshot_keep_their_soft_taints(world):
    """A node that has registered but not started is not looked at, so its soft taint stays as it is."""
    made = world().add_group("a").add_node("a-0").add_node("a-1")
    made.loop()
    made.sync("scale_down")
    made.state.snapshot.remove_node("a-0")
    commands = decide_scale_down(made.state, made.now + seconds(10))
    assert (made.status.unneeded, commands.actions) == (("a-1",), ())


def test_young_soft_taints_bring_back_their_time_at_start(world):
    """With --node-deletion-candidate-ttl the time in a soft taint holds in the next process, unless it is too old."""

    def taint(value):
        return {
            "spec": {
                "taints": [
                    {
                        "key": "DeletionCandidateOfClusterAutoscaler",
                        "value": value,
                        "effect": "PreferNoSchedule",
                    }
                ]
            }
        }

    made = world(node_deletion_candidate_ttl=minutes(5)).add_group("a")
    made.add_node("a-0", **taint("1767225470")).add_node("a-1", **taint("1767225000")).loop()
    assert [one.node for one in made.status.scaled_down] == ["a-0"]
    assert made.verdicts() == {"a-1": "NotUnneededLongEnough"}


def test_soft_taints_of_an_earlier_process_do_not_order_candidates(world):
    """Of two nodes of which one can go, the first by name does, though the other one was unneeded before."""
    taint = {
        "key": "DeletionCandidateOfClusterAutoscaler",
        "value": "1767225470",
        "effect": "PreferNoSchedule",
    }
    made = world(node_deletion_candidate_ttl=minutes(5)).add_group("a")
    made.add_node("a-0").add_node("a-1", spec={"taints": [taint]})
    made.add_pod("x", "a-0", cpu="1500m").add_pod("y", "a-1", cpu="1500m").loop()
    assert made.status.unneeded == ("a-0",)


def test_a_soft_taint_of_a_clock_that_was_ahead_holds_its_node_no_longer(world):
    """Its time is an hour after the start of this process: the node counts as unneeded since that."""
    taint = {
        "key": "DeletionCandidateOfClusterAutoscaler",
        "value": "1767229200",
        "effect": "PreferNoSchedule",
    }
    made = (
        world(node_deletion_candidate_ttl=minutes(5)).add_group("a").add_node("a-0", spec={"taints": [taint]})
    )
    made.loop()
    made.loop(advance=seconds(121))
    assert [one.node for one in made.status.scaled_down] == ["a-0"]


def test_soft_taints_bring_back_no_time_once_the_cluster_was_unhealthy(world):
    """Then since when nodes are unneeded is forgotten, also what an earlier process knew of it."""
    taint = {
        "key": "DeletionCandidateOfClusterAutoscaler",
        "value": "1767225470",
        "effect": "PreferNoSchedule",
    }
    made = (
        world(node_deletion_candidate_ttl=minutes(5)).add_group("a").add_node("a-0", spec={"taints": [taint]})
    )
    made.sync("scale_down")
    forget_unneeded(made.state)
    made.loop()
    assert made.verdicts() == {"a-0": "NotUnneededLongEnough"}


def test_taints_of_an_earlier_process_are_cleaned(world):
    """At the start deletion taints of nodes in groups are taken off, with the cordon."""
    taint = {
        "spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}]}
    }
    made = (
        world(max_bulk_soft_taint_count=0)
        .add_group("a")
        .add_node("a-0", **taint)
        .add_node("z", group="", **taint)
    )
    made.sync("scale_down")
    (action,) = startup_cleanup(made.state, made.now)
    assert (action.node, action.key, action.uncordon) == ("a-0", "ToBeDeletedByClusterAutoscaler", True)
    event = cleanup_event(action, made.answer([action]).results[0])
    assert event.message == "removed ToBeDeletedByClusterAutoscaler taint from node a-0"


@pytest.mark.parametrize(
    ("value", "ttl", "goes"), [("1767225600", 0, True), ("?", 60, True), ("1767225600", 60, False)]
)
def test_stale_soft_taints_are_cleaned_where_they_are_switched_off(value, ttl, goes, world):
    """Taints older than their time to live are removed, or all without one, and those of unknown age."""
    taint = {"key": "DeletionCandidateOfClusterAutoscaler", "value": value, "effect": "PreferNoSchedule"}
    made = world(max_bulk_soft_taint_count=0, node_deletion_candidate_ttl=seconds(ttl))
    made.add_group("a").add_node("a-0", spec={"taints": [taint]})
    made.sync("scale_down")
    assert bool(startup_cleanup(made.state, made.now)) == goes
