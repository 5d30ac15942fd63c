"""Which nodes are unneeded, and which of them go."""

from __future__ import annotations

import pytest

from kubetide.nodes.decision import AddTaint
from kubetide.nodes.scale_down.decide import decide as decide_scale_down
from kubetide.units.time import minutes, seconds


def busy(world, *names):
    """Add nodes that are too full to go."""
    for name in names:
        world.add_node(name).add_pod(f"f-{name}", name, cpu="2400m", memory="2Gi")
    return world


def typical(world, **settings):
    """Return a group with one node that is little used and two that are busy."""
    made = world(**settings).add_group("a").add_node("a-0").add_pod("x", "a-0", cpu="300m")
    return busy(made, "a-1", "a-2")


def test_an_unneeded_node_goes_only_after_more_than_the_unneeded_time(world):
    """At exactly the unneeded time a node stays; a moment later it is tainted, cordoned and announced."""
    made = typical(world)
    made.loop()
    assert (made.status.result, made.status.unneeded) == ("ScaleDownNoNodeDeleted", ("a-0",))
    assert made.verdicts() == {
        "a-0": "NotUnneededLongEnough",
        "a-1": "NotUnderutilized",
        "a-2": "NotUnderutilized",
    }
    assert made.tainted() == ["a-0"]
    made.loop(minutes(2))
    assert made.status.result == "ScaleDownNoNodeDeleted"
    commands = made.loop(seconds(1))
    assert commands.actions == (
        AddTaint("a-0", "ToBeDeletedByClusterAutoscaler", str(made.now // 10**9), "NoSchedule", cordon=True),
    )
    assert made.status.result == "ScaleDownNodeDeleteStarted"
    assert made.messages() == [
        "Scale-down: removing node a-0, utilization: {0.075 0.00390625 0 0 cpu 0.075}, pods to reschedule: x",
        "marked the node as toBeDeleted/unschedulable",
    ]


def test_a_node_that_is_needed_again_starts_anew(world):
    """The time since which a node is unneeded is without a break."""
    made = typical(world)
    made.loop()
    made.add_pod("y", "a-0", cpu="3").loop(minutes(1))
    assert (made.status.unneeded, made.tainted()) == ((), [])
    del made.pods["default", "y"]
    made.loop(minutes(1))
    made.loop(minutes(2))
    assert made.verdicts()["a-0"] == "NotUnneededLongEnough"


def test_unready_nodes_have_their_own_time(world):
    """A node that is not ready goes after the unready time, empty ones first, and only if the flag allows it."""
    made = busy(world(scale_down_unready_time=minutes(1)).add_group("a"), "a-1").add_node("a-7", ready=False)
    made.loop()
    assert made.verdicts()["a-7"] == "NotUnreadyLongEnough"
    made.loop(seconds(61))
    assert [one.node for one in made.status.scaled_down] == ["a-7"]
    off = busy(world(scale_down_unready_enabled=False).add_group("a"), "a-1").add_node("a-7", ready=False)
    off.loop()
    assert off.verdicts()["a-7"] == "ScaleDownUnreadyDisabled"


@pytest.mark.parametrize(
    ("threshold", "reason"), [("0.074", "NotUnderutilized"), ("0.075", "NotUnneededLongEnough")]
)
def test_utilization_at_the_threshold_counts_as_underutilized(threshold, reason, world):
    """Only more than the threshold protects a node; a group's own threshold overrides the flag."""
    made = world().add_group("a", scale_down_utilization_threshold=float(threshold)).add_node("a-0")
    busy(made.add_pod("x", "a-0", cpu="300m"), "a-1").loop()
    assert made.verdicts()["a-0"] == reason


def test_groups_at_their_minimum_are_not_even_looked_at(world):
    """Nodes of a group at its minimum are neither unneeded nor unremovable."""
    made = world().add_group("a", minimum=1).add_node("a-0")
    made.loop()
    assert (made.status.result, made.status.unneeded, made.status.unremovable) == (
        "ScaleDownNoCandidates",
        (),
        (),
    )


def test_a_group_never_falls_below_its_minimum(world):
    """Of three empty nodes of a group with minimum 1, the last by name stays."""
    made = world(scale_down_unneeded_time=seconds(1)).add_group("a", minimum=1)
    for name in ("a-2", "a-0", "a-1"):
        made.add_node(name)
    made.loop()
    made.loop()
    assert [one.node for one in made.status.scaled_down] == ["a-0", "a-1"]
    assert made.verdicts() == {"a-2": "NodeGroupMinSizeReached"}


def test_the_clusters_minimum_of_cores_holds(world):
    """--cores-total 6: of four empty nodes of 4 cores two may go."""
    made = world(scale_down_unneeded_time=seconds(1), cores_total="6:100").add_group("a")
    for index in range(4):
        made.add_node(f"a-{index}")
    made.loop()
    made.loop()
    assert [one.node for one in made.status.scaled_down] == ["a-0", "a-1"]
    assert made.verdicts() == {"a-2": "MinimalResourceLimitExceeded", "a-3": "MinimalResourceLimitExceeded"}


def test_parallelism_counts_empty_nodes_first_and_deletions_in_flight(world):
    """At most so many at once, of these so many with pods; what is under way counts."""
    made = world(scale_down_unneeded_time=seconds(1), max_scale_down_parallelism=4, max_drain_parallelism=2)
    made.add_group("a")
    for index in range(3):
        made.add_node(f"a-{index}").add_pod(f"d{index}", f"a-{index}", cpu="100m")
        made.add_node(f"b-{index}")
        busy(made, f"c-{index}")
    made.loop()
    made.loop()
    assert [(one.node, one.kind) for one in made.status.scaled_down] == [
        ("b-0", "empty"), ("b-1", "empty"), ("b-2", "empty"), ("a-0", "drain"),
    ]  # fmt: skip
    made.loop(seconds(1))
    assert made.status.result == "ScaleDownNoNodeDeleted"


def test_whole_groups_go_whole_or_not_at_all(world):
    """A group of zero-or-max scaling retains all its nodes as long as one of them is needed."""
    made = world(scale_down_unneeded_time=seconds(1)).add_group("a", zero_or_max_node_scaling=True)
    busy(made.add_node("a-0").add_node("a-1"), "a-2")
    made.loop()
    made.loop()
    assert made.verdicts() == {
        "a-0": "AtomicScaleDownFailed",
        "a-1": "AtomicScaleDownFailed",
        "a-2": "NotUnderutilized",
    }
    del made.pods["default", "f-a-2"]
    made.loop()
    made.loop()
    assert [one.node for one in made.status.scaled_down] == ["a-0", "a-1", "a-2"]


def test_pods_move_onto_one_another_only_once(world):
    """Of two half-empty nodes whose pods fit on each other only one is unneeded."""
    made = world().add_group("a")
    for name in ("a-0", "a-1"):
        made.add_node(name).add_pod(f"p-{name}", name, cpu="1900m")
    made.loop()
    assert made.status.unneeded == ("a-0",)
    assert made.verdicts()["a-1"] == "NoPlaceToMovePods"
    assert "fits on none of the 0 other nodes" in made.status.unremovable[1].detail


def test_pods_that_moved_here_move_on_with_the_node(world):
    """A pod that an earlier candidate's removal put on a node needs another place when that node goes too."""
    made = world().add_group("a")
    for name, size in (("a-0", "100m"), ("a-1", "1900m"), ("a-2", "2050m")):
        made.add_node(name).add_pod(f"p-{name}", name, cpu=size)
    made.loop()
    assert made.status.unneeded == ("a-0",)
    assert made.verdicts()["a-1"] == "NoPlaceToMovePods"


def test_a_node_whose_pods_fit_nowhere_says_what_is_missing(world):
    """The verdict names the pod and the scheduler's reasons, counted over the nodes that were asked."""
    made = world().add_group("a").add_node("a-0").add_pod("x", "a-0", cpu="1800m")
    for name in ("a-1", "a-2"):
        made.add_node(name).add_pod(f"f-{name}", name, cpu="2400m")
    made.loop()
    first = made.status.unremovable[0]
    assert (first.node, first.reason) == ("a-0", "NoPlaceToMovePods")
    assert first.detail == "pod default/x fits on none of the 2 other nodes: 2 Insufficient cpu"


def test_a_node_that_comes_back_is_simulated_at_once(world):
    """One that was away for a loop, or had not started, is not left alone for what was found before."""
    made = typical(world).add_pdb("tight", "web", 0)
    made.loop()
    node = made.nodes.pop("a-0")
    made.loop()
    made.nodes["a-0"] = node
    made.loop()
    assert made.verdicts()["a-0"] == "NotEnoughPdb"


def test_an_unremovable_node_is_left_alone_for_a_while(world):
    """A node that could not be removed is simulated again after the recheck timeout, and remembers why."""
    made = typical(world, unremovable_node_recheck_timeout=minutes(3)).add_pdb("tight", "web", 0)
    made.loop()
    assert (made.verdicts()["a-0"], made.status.unremovable[0].blocking_pod) == ("NotEnoughPdb", "default/x")
    made.add_pdb("tight", "web", 1).loop(minutes(3) - seconds(1))
    assert made.verdicts()["a-0"] == "RecentlyUnremovable"
    assert "default/x (NotEnoughPdb)" in made.status.unremovable[0].detail
    made.loop(seconds(1))
    assert made.status.unneeded == ("a-0",)


def test_candidates_share_a_budget(world):
    """The first node uses up what the budget allows, so the second stays; one that is over-asked goes last."""
    made = (
        world(scale_down_unneeded_time=seconds(1), max_drain_parallelism=5)
        .add_group("a")
        .add_pdb("web", "web", 1)
    )
    for name in ("a-0", "a-1"):
        made.add_node(name).add_pod(f"p-{name}", name, of="web")
    busy(made, "a-2", "a-3")
    made.loop()
    assert (made.status.unneeded, made.verdicts()["a-1"]) == (("a-0",), "NotEnoughPdb")


def test_nodes_that_strain_a_budget_go_last(world):
    """A node with two pods of a budget that allows one is risky, and others are drained before it."""
    made = world(scale_down_unneeded_time=seconds(1)).add_group("a").add_pdb("db", "db", 1)
    made.add_node("a-0").add_pod("d0", "a-0", cpu="1", of="db").add_pod("d1", "a-0", cpu="1", of="db")
    made.add_node("a-1", cpu="1").add_pod("x", "a-1")
    busy(made, "a-2", "a-3")
    made.loop()
    made.loop()
    assert [one.node for one in made.status.scaled_down] == ["a-1"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}}, "ScaleDownDisabledAnnotation"),
        ({"metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "false"}}}, "NotUnneededLongEnough"),
        ({"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1767225600", "effect": "NoSchedule"}]}}, "CurrentlyBeingDeleted"),
        ({"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1767225300", "effect": "NoSchedule"}]}}, "NotUnneededLongEnough"),
        ({"spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "soon", "effect": "NoSchedule"}]}}, "NotUnneededLongEnough"),
        ({"status": {"allocatable": {"cpu": None}}}, "UnexpectedError"),
    ],
)  # fmt: skip
def test_what_the_node_itself_says(fields, reason, world):
    """Annotations, a fresh deletion taint and missing numbers protect a node; a deletion taint ages after 5 minutes."""
    made = world().add_group("a").add_node("a-0", **fields).add_node("a-1")
    made.loop(seconds(1))
    assert made.verdicts()["a-0"] == reason


def test_delays_of_the_cluster(world):
    """After a deletion nothing goes until exactly the delay has passed; unneeded nodes are found and marked meanwhile."""
    made = world(
        scale_down_unneeded_time=seconds(1),
        scale_down_delay_after_delete=minutes(2),
        max_scale_down_parallelism=1,
    )
    made.add_group("a").add_node("a-0").add_node("a-1").loop()
    made.loop()
    made.settle(seconds(30))
    made.loop(seconds(89))
    assert (made.status.result, made.tainted()) == ("ScaleDownInCooldown", ["a-1"])
    assert made.status.why.startswith("the last deletion was at ")
    assert made.status.why.endswith(" (2m0s)")
    made.loop(seconds(1))
    assert [one.node for one in made.status.scaled_down] == ["a-1"]


def test_local_delays_leave_other_groups_alone(world):
    """With type-local a failing cloud excludes the group for the delay, and the others go on."""
    made = (
        world(scale_down_unneeded_time=seconds(1), scale_down_delay_type_local=True)
        .add_group("a")
        .add_group("b")
    )
    made.add_node("a-0").add_node("b-0", group="b").loop()
    made.cloud_error = "cloud down"
    made.loop()
    made.settle(seconds(30))
    made.cloud_error = ""
    assert made.loop().result == "ScaleDownNoCandidates"
    made.loop(minutes(3))
    assert made.status.unneeded == ("a-0", "b-0")


def test_a_drain_that_fails_begins_no_local_delay(world):
    """The cloud refused nothing, so the node may be tried again in the next loop."""
    made = world(scale_down_unneeded_time=seconds(1), scale_down_delay_type_local=True).add_group("a")
    made.add_node("a-0").add_pod("x", "a-0").add_node("a-1").add_pod("v", "a-1", cpu="2400m").loop()
    made.refused_evictions = {("default", "x"): 99}
    made.loop()
    made.settle(minutes(3))
    made.loop()
    assert {name: one.result for name, one in made.status.delete_results.items()} == {
        "a-0": "NodeDeleteErrorFailedToEvictPods"
    }
    assert [one.node for one in made.status.scaled_down] == ["a-0"]


def test_a_node_on_its_way_out_is_still_a_candidate(world):
    """Where it is the only one, nothing is deleted; it is not that there was nothing to look at."""
    made = world(scale_down_unneeded_time=seconds(1)).add_group("a").add_node("a-0")
    made.loop()
    made.loop()
    assert made.loop().result == "ScaleDownNoNodeDeleted"
    made.settle(seconds(10))
    assert made.loop().result == "ScaleDownNoCandidates"


def test_cloud_tpus_of_pods_that_move_need_no_node(world):
    """They are reached over the network, so no node offers them."""
    made = world(scale_down_unneeded_time=seconds(1)).add_group("a").add_node("a-0").add_node("a-1")
    tpus = {"requests": {"cpu": "100m", "cloud-tpus.google.com/v2": "8"}}
    made.add_pod("x", "a-0", spec={"containers": [{"name": "c", "image": "i", "resources": tpus}]})
    made.add_pod("v", "a-1", cpu="2400m").loop()
    assert made.status.unneeded == ("a-0",)


def test_of_a_delay_of_more_than_an_hour_the_rest_holds_after_the_start(world):
    """A process begins as if nodes had been added, and removed, an hour before; at exactly the delay nodes may go."""
    made = world(scale_down_unneeded_time=seconds(1), scale_down_delay_after_add=minutes(90))
    made.add_group("a").add_node("a-0").sync("update")
    made.state.memory.started = made.now
    made.loop(minutes(30) - seconds(1))
    assert (made.status.result, made.tainted()) == ("ScaleDownInCooldown", ["a-0"])
    assert made.status.why.startswith("the last scale-up was before the start")
    made.loop(seconds(1))
    made.loop()
    assert made.status.result == "ScaleDownNodeDeleteStarted"


def test_holds_stop_deletion_but_not_the_watch(world):
    """While a cache cannot be trusted nothing is deleted, and the reason is reported."""
    made = typical(world, scale_down_unneeded_time=seconds(1))
    made.loop()
    made.sync("scale_down")
    made.state.holds = ("pods were not heard of for 11m",)
    commands = decide_scale_down(made.state, made.now + seconds(10))
    assert commands.result == "ScaleDownInCooldown"
    assert [reason.code for reason in commands.reasons] == ["ScaleDownHeld"]
    assert not any(isinstance(one, AddTaint) and one.cordon for one in commands.actions)


def test_a_cap_an_hour_bounds_deletions(world):
    """No more nodes go within an hour than the cap says."""
    made = world(scale_down_unneeded_time=seconds(1), max_node_deletions_per_hour=2).add_group("a")
    for index in range(4):
        made.add_node(f"a-{index}")
    made.loop()
    made.loop()
    made.settle(seconds(10))
    made.loop()
    assert (sorted(made.nodes), made.status.result) == (["a-2", "a-3"], "ScaleDownNoNodeDeleted")
    made.loop(minutes(60))
    assert [one.node for one in made.status.scaled_down] == ["a-2", "a-3"]


def test_a_taint_that_cannot_be_written_takes_the_batch_back(world):
    """When one empty node cannot be tainted, the others of the batch are given back and the delay after failure starts."""
    made = world(scale_down_unneeded_time=seconds(1)).add_group("a").add_node("a-0").add_node("a-1")
    made.loop()
    made.failed_taints = ("a-0",)
    made.loop()
    assert made.status.result == "ScaleDownError"
    assert made.messages() == ["failed to mark the node as toBeDeleted/unschedulable: api down"]
    made.settle(seconds(1))
    assert made.tainted("ToBeDeletedByClusterAutoscaler") == []
    assert not made.log
    assert made.loop().result == "ScaleDownInCooldown"


def test_a_node_whose_taint_is_always_refused_keeps_no_other(world):
    """It is left alone for longer than the others, twice as long each time, and says so; a webhook may refuse it for ever."""
    made = world(scale_down_unneeded_time=seconds(1))
    made.add_group("a").add_node("a-0").add_node("a-1").add_node("a-2")
    made.failed_taints = ("a-0",)

    def play(loops):
        for _ in range(loops):
            made.loop()
            made.settle(seconds(1))

    play(45)
    assert sorted(made.nodes) == ["a-0"]
    [stays] = made.status.unremovable
    assert stays.reason == "NodeDeleteErrorFailedToMarkToBeDeleted"
    assert (
        stays.detail
        == "its taint was refused 2 times in a row, it is tried again at 2026-01-01T00:09:28Z: api down"
    )
    made.failed_taints = ()
    play(30)
    assert not made.nodes


def test_scale_down_switched_off_does_nothing(world):
    """--scale-down-enabled=false leaves nodes alone and says so."""
    made = typical(world, scale_down_enabled=False)
    assert (made.loop().actions, made.status.result) == ((), "ScaleDownNotTried")


def test_nodes_that_are_to_go_themselves_are_named_as_not_counted(world):
    """A node stays if its pods fit only on one that goes as well, and says which one was not counted."""
    made = world().add_group("a").add_node("a-0").add_node("a-1", cpu="2")
    made.add_pod("big", "a-0", cpu="1900m").add_pod("f", "a-2", cpu="3500m").add_node("a-2").loop()
    assert made.verdicts()["a-0"] == "NoPlaceToMovePods"
    detail = next(one.detail for one in made.status.unremovable if one.node == "a-0")
    assert detail == (
        "pod default/big fits on none of the 1 other nodes: 1 Insufficient cpu; "
        "a-1 is not counted: it is to go as well"
    )


@pytest.mark.parametrize(
    ("cpu", "said"),
    [("2857m", "cpu utilization 0.714 is above"), ("2001m", "cpu utilization 0.50025 is above")],
)
def test_a_utilization_has_three_digits_unless_the_threshold_needs_more(cpu, said, world):
    """People read 0.714, but 0.50025 where 0.5 is the threshold."""
    made = world().add_group("a").add_node("a-0").add_pod("x", "a-0", cpu=cpu)
    made.loop()
    assert said in made.status.unremovable[0].detail
