"""Each deletion to its end."""

from __future__ import annotations

import msgspec
import pytest

from kubetide.nodes.explain.answers import explain_node
from kubetide.nodes.scale_down.memory import ScaleDownMemory
from kubetide.units.time import minutes, seconds

DELETED = "ToBeDeletedByClusterAutoscaler"
SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
EMPTY = 'failed to delete empty node "a-0"'


def begun(world, *pods, **settings):
    """Return a world in which the deletion of a-0, with these pods, has just begun."""
    made = world(scale_down_unneeded_time=seconds(1), **settings).add_group("a").add_node("a-0")
    for name in ("a-1", "a-2"):
        made.add_node(name).add_pod(f"f-{name}", name, cpu="2400m")
    for name, fields in pods:
        made.add_pod(name, "a-0", **fields)
    made.loop()
    made.loop()
    assert [one.node for one in made.status.scaled_down] == ["a-0"]
    made.events.clear()
    return made


def result_of(made, node="a-0"):
    found = made.state.memory.scale_down.results.get(node)
    return None if found is None else (found.result, found.error)


def test_an_empty_node_goes_after_the_delay_that_its_taint_needs(world):
    """Nothing happens for 5 s after the taint; then the machine is deleted and both events are reported."""
    made = begun(world)
    made.settle(seconds(4.9))
    assert made.log == []
    made.settle(seconds(0.1))
    assert made.log == [("delete", "a-0")]
    assert result_of(made) == ("NodeDeleteOk", "")
    assert made.messages() == ["nodes removed by cluster autoscaler", "Scale-down: empty node a-0 removed"]
    assert made.state.memory.scale_down.deletions == {}


def test_a_drained_node_goes_when_its_pods_have_ended(world):
    """Pods are evicted with their grace cut to the maximum, and the machine is deleted only once they have ended."""
    long = {"spec": {"terminationGracePeriodSeconds": 900}}
    made = begun(world, ("x", {}), ("y", long))
    made.stuck_pods = (("default", "y"),)
    made.settle(seconds(8))
    assert made.log == [("evict", "x", 30), ("evict", "y", 600)]
    del made.pods["default", "y"]
    made.settle(seconds(2))
    assert made.log[-1] == ("delete", "a-0")
    assert made.messages() == [
        "deleting pod for node scale down",
        "deleting pod for node scale down",
        "nodes removed by cluster autoscaler",
        "Scale-down: node a-0 removed with drain",
    ]


def test_a_refused_eviction_is_asked_again_every_ten_seconds(world):
    """A budget that allows the eviction at the third try costs 20 s; the event is reported once."""
    made = begun(world, ("x", {}))
    made.refused_evictions = {("default", "x"): 2}
    made.settle(seconds(24))
    assert made.log == []
    made.settle(seconds(1))
    assert made.log == [("evict", "x", 30), ("delete", "a-0")]
    assert made.messages().count("deleting pod for node scale down") == 1


def test_a_pod_that_never_may_go_gives_the_node_back(world):
    """After --max-pod-eviction-time the drain fails: taint off, uncordoned, events on pod and node."""
    made = begun(world, ("x", {}), max_pod_eviction_time=minutes(1))
    made.refused_evictions = {("default", "x"): 99}
    made.settle(minutes(1) + seconds(4))
    assert made.tainted(DELETED) == ["a-0"]
    made.settle(seconds(1))
    assert (made.tainted(DELETED), made.log) == ([], [])
    word, error = result_of(made)
    assert word == "NodeDeleteErrorFailedToEvictPods"
    assert error.startswith(
        "Failed to drain node /a-0, due to following errors: [failed to evict pod default/x within allowed timeout (last error: Cannot evict"
    )
    assert error.endswith(")]")
    assert "failed to delete pod for ScaleDown" in made.messages()
    assert f"failed to drain and delete node: {error}" in made.messages()


def test_a_pod_that_does_not_end_gives_the_node_back(world):
    """Evicted pods have the maximum grace and 30 s to end."""
    made = begun(world, ("x", {}), max_graceful_termination_sec=10)
    made.stuck_pods = (("default", "x"),)
    made.settle(seconds(44))
    assert made.tainted(DELETED) == ["a-0"]
    made.settle(seconds(1))
    assert result_of(made) == (
        "NodeDeleteErrorFailedToEvictPods",
        "Failed to drain node /a-0: pods remaining after timeout",
    )
    assert made.tainted(DELETED) == []


def test_a_pod_that_lands_on_an_empty_node_saves_it(world):
    """The API server's answer just before the deletion counts, and not the cache's."""
    made = begun(world).add_pod("late", "a-0")
    made.settle(seconds(5))
    assert (made.log, made.tainted(DELETED)) == ([], [])
    assert made.messages() == [
        'failed to delete empty node: failed to delete empty node "a-0", new pods scheduled'
    ]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"kind": None}, 'GetPodsToMove for "a-0" returned error: default/late is not replicated'),
        (
            {"metadata": {"annotations": {SAFE: "on-completion"}}},
            f"{EMPTY}, active on-completion pods present",
        ),
        ({"of": "tight"}, f"{EMPTY}, new pods scheduled"),
        ({"kind": "StatefulSet", "of": "unknown"}, f"{EMPTY}, new pods scheduled"),
    ],
)
def test_what_is_said_of_a_pod_that_lands_on_an_empty_node(fields, error, world):
    """Neither its budgets nor its controller are asked, as nobody wants to move it."""
    made = begun(world).add_pdb("tight", "tight", 0).add_pod("late", "a-0", **fields)
    made.settle(seconds(5))
    assert made.messages() == [f"failed to delete empty node: {error}"]
    assert made.tainted(DELETED) == []


def test_a_daemon_set_that_is_gone_does_not_keep_an_empty_node(world):
    """Its pod ends with the node all the same; in a drain upstream would want the DaemonSet to exist."""
    made = begun(world, ("d", {"kind": "DaemonSet", "of": "agent"}))
    made.state.daemon_sets.clear()
    made.settle(seconds(5))
    assert made.log == [("delete", "a-0")]


@pytest.mark.parametrize("drained", [True, False])
def test_a_pod_that_should_have_ended_is_evicted_with_the_others(drained, world):
    """It needs no other place, so alone it is no reason for a drain; but a drain waits until it is gone."""
    stuck = {"metadata": {"deletionTimestamp": "2025-12-31T12:00:00Z"}}
    made = begun(world, ("stuck", stuck), *((("x", {}),) if drained else ()))
    made.stuck_pods = (("default", "stuck"),)
    made.settle(minutes(12))
    assert [entry[:2] for entry in made.log] == (
        [("evict", "stuck"), ("evict", "x")] if drained else [("delete", "a-0")]
    )
    assert (result_of(made)[0] == "NodeDeleteErrorFailedToEvictPods") is drained


def test_a_pod_that_lands_and_must_end_by_itself_saves_a_node_that_is_drained(world):
    """Its owner has said that it must not be evicted."""
    made = begun(world, ("x", {}))
    made.stuck_pods = (("default", "x"),)
    made.settle(seconds(6))
    made.add_pod("late", "a-0", metadata={"annotations": {SAFE: "on-completion"}}).settle(seconds(5))
    assert [entry[:2] for entry in made.log] == [("evict", "x")]
    assert result_of(made)[1] == "pod default/late landed on it and must end by itself first"


def test_a_pod_that_lands_during_a_drain_is_evicted_too(world):
    """Pods that tolerate every taint may come back to the node; they are evicted as well, and for ever they are not."""
    made = begun(world, ("x", {}))
    made.stuck_pods = (("default", "x"),)
    made.settle(seconds(6))
    del made.pods["default", "x"]
    made.add_pod("late", "a-0").settle(seconds(5))
    assert [entry[1] for entry in made.log] == ["x", "late", "a-0"]


def test_a_pod_that_became_undrainable_saves_its_node(world):
    """A budget that closed between decision and drain stops it before anything is evicted."""
    made = begun(world, ("x", {})).add_pdb("web", "web", 0)
    made.settle(seconds(5))
    assert (made.log, made.tainted(DELETED)) == ([], [])
    error = 'GetPodsToMove for "a-0" returned error: not enough pod disruption budget to move default/x'
    assert made.messages() == [f"failed to drain and delete node: {error}"]


def test_a_budget_that_the_drain_itself_uses_up_does_not_stop_it(world):
    """Once evicted, a pod's own budget at zero is no reason to give up."""
    made = begun(world, ("x", {})).add_pdb("web", "web", 1)
    made.stuck_pods = (("default", "x"),)
    made.settle(seconds(6))
    made.add_pdb("web", "web", 0).settle(seconds(20))
    del made.pods["default", "x"]
    made.settle(seconds(5))
    assert made.log[-1] == ("delete", "a-0")


def test_a_cloud_that_fails_gives_the_node_back(world):
    """A refused deletion: taint off, event, failure noted for the group; the next loop may try again at once."""
    made = begun(world)
    made.cloud_error = "cloud down"
    made.settle(seconds(5))
    assert result_of(made) == (
        "NodeDeleteErrorFailedToDelete",
        "failed to delete nodes from group a: cloud down",
    )
    assert made.messages() == ["failed to delete empty node: failed to delete nodes from group a: cloud down"]
    assert made.tainted(DELETED) == []
    made.cloud_error = ""
    made.loop()
    assert made.status.result == "ScaleDownNodeDeleteStarted"


def test_removals_that_fail_are_counted_until_the_node_goes(world):
    """The explanation of a node says how often its removal failed, when last and why; nothing is left of one that is gone."""
    made = begun(world)
    made.cloud_error = "cloud down"
    made.settle(seconds(5))
    error = "failed to delete nodes from group a: cloud down"
    once = explain_node(made.state, "a-0", made.now).failed
    assert once == f"its removal has failed once, last at 2026-01-01T00:00:25Z: {error}"
    made.loop()
    made.settle(seconds(5))
    assert explain_node(made.state, "a-0", made.now).failed.startswith(
        "its removal has failed 2 times, last at"
    )
    made.cloud_error = ""
    made.loop()
    made.settle(seconds(5))
    assert made.log[-1] == ("delete", "a-0")
    assert made.state.memory.scale_down.failures == {}


def test_a_cordon_that_was_there_before_stays_when_a_deletion_fails(world):
    """Giving a node back undoes only what the deletion did: somebody else's cordon is left alone."""
    made = world(scale_down_unneeded_time=seconds(1)).add_group("a")
    made.add_node("a-0", spec={"unschedulable": True}).add_node("a-1")
    made.cloud_error = "cloud down"
    made.loop()
    made.loop()
    made.settle(seconds(5))
    assert made.tainted(DELETED) == []
    assert {name: node.spec.unschedulable for name, node in made.nodes.items()} == {"a-0": True, "a-1": False}


def test_results_are_reported_once(world):
    """The status of the next loop holds how deletions ended; the one after does not."""
    made = begun(world)
    made.settle(seconds(10))
    made.loop()
    assert {name: one.result for name, one in made.status.delete_results.items()} == {"a-0": "NodeDeleteOk"}
    made.loop()
    assert made.status.delete_results == {}


def test_each_node_has_its_own_call_and_outcome(world):
    """Where the cloud refuses one machine, a node whose machine ends already is not given back to the scheduler."""
    made = (
        world(scale_down_unneeded_time=seconds(1))
        .add_group("a")
        .add_node("a-0")
        .add_node("a-1")
        .add_node("a-2")
    )
    made.undeletable = ("a-1",)
    made.loop()
    made.loop()
    made.settle(seconds(6))
    assert made.log == [("delete", "a-0"), ("delete", "a-2")]
    assert {name: result_of(made, name)[0] for name in ("a-0", "a-1", "a-2")} == {
        "a-0": "NodeDeleteOk",
        "a-1": "NodeDeleteErrorFailedToDelete",
        "a-2": "NodeDeleteOk",
    }
    assert made.tainted(DELETED) == []


def test_deletions_of_a_group_are_batched(world):
    """With a batcher interval one call takes all nodes that became ready meanwhile."""
    made = world(scale_down_unneeded_time=seconds(1), node_deletion_batcher_interval=seconds(20)).add_group(
        "a"
    )
    made.add_node("a-0").add_node("a-1").loop()
    made.loop()
    made.settle(seconds(24))
    assert made.log == []
    made.settle(seconds(1))
    assert made.log == [("delete", "a-0"), ("delete", "a-1")]


def test_the_interval_of_a_whole_group_begins_with_its_last_node(world):
    """A node that is ready sooner waits for the others of a group of zero or all, and then for the interval."""
    made = world(scale_down_unneeded_time=seconds(1), node_deletion_batcher_interval=seconds(20))
    made.add_group("a", zero_or_max_node_scaling=True).add_node("a-0").add_node("a-1").add_pod("x", "a-1")
    made.add_group("b").add_node("b-0", "b").add_pod("f", "b-0", cpu="2400m")
    made.refused_evictions = {("default", "x"): 1}
    made.loop()
    made.loop()
    made.settle(seconds(34.9))
    assert made.log == [("evict", "x", 30)]
    made.settle(seconds(0.1))
    assert made.log[1:] == [("delete", "a-0"), ("delete", "a-1")]


@pytest.mark.parametrize(
    ("flag", "note", "evicted"),
    [
        (True, None, True),
        (False, None, False),
        (True, "false", False),
        (False, "true", True),
        (True, "True", False),
        (True, "", False),
    ],
)
def test_daemon_set_pods_are_evicted_as_flags_and_annotations_say(flag, note, evicted, world):
    """An annotation on the DaemonSet pod overrides the flag, and only "true" means yes; nobody waits for such a pod."""
    fields = {"kind": "DaemonSet", "of": "log"}
    if note is not None:
        fields["metadata"] = {"annotations": {"cluster-autoscaler.kubernetes.io/enable-ds-eviction": note}}
    occupied = begun(world, ("x", {}), ("d", fields), daemonset_eviction_for_occupied_nodes=flag)
    occupied.stuck_pods = (("default", "d"),)
    empty = begun(world, ("d", fields), daemonset_eviction_for_empty_nodes=flag)
    for made in (occupied, empty):
        made.settle(seconds(5))
        assert (("evict", "d", 30) in made.log) == evicted
        assert made.log[-1] == ("delete", "a-0")


@pytest.mark.parametrize("occupied", [True, False])
def test_a_daemon_set_pod_that_refuses_is_asked_again_and_then_left_behind(occupied, world):
    """It holds the node up for the time that an eviction may take, and fails nothing."""
    others = [("x", {})] if occupied else []
    pods = [*others, ("d", {"kind": "DaemonSet", "of": "log"})]
    evicts = {"daemonset_eviction_for_empty_nodes": True, "max_pod_eviction_time": seconds(30)}
    for refusals, ends in ((2, 25), (99, 35)):
        made = begun(world, *pods, **evicts)
        made.refused_evictions = {("default", "d"): refusals}
        made.settle(seconds(ends - 0.5))
        assert ("delete", "a-0") not in made.log
        made.settle(seconds(0.5))
        assert made.log[-1] == ("delete", "a-0")
        assert (("evict", "d", 30) in made.log) == (refusals == 2)
        assert result_of(made) == ("NodeDeleteOk", "")
        assert made.messages().count("deleting pod for node scale down") == len(pods)
        assert "failed to delete pod for ScaleDown" not in made.messages()


def test_a_node_whose_pods_cannot_be_read_is_not_deleted(world):
    """Without a live reading the deletion is given up after three tries."""
    made = begun(world)
    made.unreadable = ("a-0",)
    made.settle(seconds(30))
    assert (made.log, made.tainted(DELETED)) == ([], [])
    assert result_of(made) == (
        "NodeDeleteErrorInternal",
        "the node's pods could not be read from the API server",
    )


@pytest.mark.parametrize("pods", [(), (("x", {}),)], ids=["empty", "drained"])
@pytest.mark.parametrize(("batch", "vanishes"), [(0, 2), (30, 2), (30, 20)])
def test_a_node_whose_object_somebody_deletes_goes_all_the_same(pods, batch, vanishes, world):
    """Its machine would run on for nothing: it is deleted when its time comes, and the pods before it."""
    made = begun(world, *pods, node_deletion_batcher_interval=seconds(batch))
    made.settle(seconds(vanishes))
    del made.nodes["a-0"]
    made.settle(seconds(60))
    evictions = [("evict", name, 30) for name, _ in pods]
    assert made.log == [*evictions, ("delete", "a-0")]
    assert result_of(made) == ("NodeDeleteOk", "")
    assert made.state.memory.scale_down.deletions == {}


def test_a_node_that_vanishes_with_its_machine_ends_its_deletion(world):
    """When Node object and machine are gone there is nothing to give back and nothing to delete."""
    made = begun(world)
    del made.nodes["a-0"], made.group_of["a-0"]
    made.settle(seconds(10))
    assert (made.log, result_of(made)) == ([], ("NodeDeleteErrorInternal", "the node is gone"))


def test_a_group_that_vanishes_saves_the_pods_that_are_left(world):
    """Nobody could delete the machine: the node is given back, and no more of its pods are evicted."""
    made = begun(world, ("x", {}), ("y", {}))
    made.refused_evictions = {("default", "y"): 1}
    made.settle(seconds(6))
    assert made.log == [("evict", "x", 30)]
    del made.groups["a"]
    made.settle(minutes(5))
    assert (made.log, made.tainted(DELETED)) == ([("evict", "x", 30)], [])
    assert result_of(made) == ("NodeDeleteErrorInternal", "node group a is gone")
    assert made.state.memory.scale_down.deletions == {}


def test_evictions_are_capped_an_hour(world):
    """At the cap no eviction is sent, and the drain fails in time instead of passing it."""
    made = begun(world, ("x", {}), ("y", {}), max_evictions_per_hour=1)
    made.settle(minutes(10))
    assert made.log == [("evict", "x", 30)]
    assert result_of(made)[0] == "NodeDeleteErrorFailedToEvictPods"
    assert made.tainted(DELETED) == []


def test_memory_survives_a_record_in_the_middle_of_a_drain(world):
    """A record holds enough to go on with a deletion in flight."""
    made = begun(world, ("x", {}))
    made.refused_evictions = {("default", "x"): 1}
    made.settle(seconds(6))
    written = msgspec.json.encode(made.state.memory.scale_down)
    made.state.memory.scale_down = msgspec.json.decode(written, type=ScaleDownMemory)
    made.settle(seconds(20))
    assert made.log == [("evict", "x", 30), ("delete", "a-0")]
