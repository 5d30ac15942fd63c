"""Increases that fail: refusals and backoff, machines that do not come or join, sizes that others change."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import (
    START,
    World,
    group,
    node,
    pod,
    template,
)

from kubetide.nodes.decision import DecreaseTarget, DeleteInstances, IncreaseSize, Outcome
from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.reasons import ACTIONS
from kubetide.ports.cloud import Instance, InstanceError
from kubetide.units.time import after, format_rfc3339, minutes, seconds


@pytest.mark.parametrize("error_type", ["cloudProviderError", "nodeGroupDoesNotExistError"])
def test_the_backoff_after_a_refused_call_has_upstreams_code(error_type):
    """The status names the type of the error; what the cloud called it is in the message."""
    world = World(groups=[group("g")], pods=[pod("p")])
    world.refused["g"], world.error_type = "AccessDenied: no", error_type
    world.tick()
    entry = world.state.memory.backoff["g"]
    assert (entry.error_class, entry.error_code) == ("Other", error_type)
    assert entry.error_message == "failed to increase node group size: AccessDenied: no"


def test_cloud_refusal_backs_off_and_doubles():
    """A group that refused is left out for 5 minutes, then for 10 when it refuses again."""
    world = World(pods=[pod("a")], groups=[group("g")])
    world.refused["g"] = "no machines left"
    assert world.increases() == {"g": 1}
    assert world.messages("FailedToScaleUpGroup") == ["Scale-up failed for group g: no machines left"]
    assert world.increases(at=minutes(4)) == {}
    assert world.messages("NotTriggerScaleUp") == [
        "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
    ]
    assert world.increases(at=minutes(6)) == {"g": 1}
    assert world.increases(at=minutes(15)) == {}
    assert world.increases(at=minutes(17)) == {"g": 1}


def test_another_group_serves_when_the_best_is_out():
    """The next tick buys elsewhere when the first choice is out of stock."""
    groups = [group("a"), group("b", made=template(cpu="8", memory="32Gi"))]
    world = World(pods=[pod("p", cpu="3", memory="12Gi")], groups=groups)
    world.refused["a"] = "no machines left"
    assert world.increases() == {"a": 1}
    assert world.increases(at=seconds(10)) == {"b": 1}


def test_request_that_times_out_is_taken_back():
    """After max-node-provision-time the target is lowered, the group backs off, and an event says so."""
    world = World(pods=[pod("a")], groups=[group("g")])
    world.tick()
    assert world.tick(at=minutes(15)) == []
    assert world.tick(at=minutes(16)) == [DecreaseTarget("g", 1, "timeout")]
    assert world.messages("ScaleUpTimedOut") == ["Nodes added to group g failed to register within 16m0s"]
    assert world.groups["g"].target_size == 0


def test_machines_that_cannot_be_made_are_removed():
    """A machine with a creation error is deleted and its group left out; the error is reported once."""
    world = World(pods=[pod("a")], groups=[group("g")])
    world.tick()
    error = InstanceError(error_class="OutOfResource", error_code="STOCKOUT", error_message="none left")
    world.change("g", instances=(Instance(provider_id="cloud:///x", state="Creating", error=error),))
    assert world.tick(at=seconds(30)) == [DeleteInstances("g", ("cloud:///x",), "failed")]
    assert world.messages("ScaleUpFailed") == [
        "Failed adding 1 nodes to group g due to OutOfResource.STOCKOUT; source errors: none left"
    ]
    assert world.increases(at=seconds(40)) == {}


def test_machines_that_never_register_are_removed_above_the_minimum():
    """After 15 minutes unregistered machines go, but never below the group's minimum."""
    waiting = [Instance(provider_id=f"cloud:///{name}") for name in ("u1", "u2")]
    world = World(nodes=[node("n1")], groups=[group("g", minimum=2, nodes=["n1"], instances=waiting)])
    world.tick()
    assert not any(isinstance(one, DeleteInstances) for one in world.tick(at=minutes(15)))
    assert world.tick(at=minutes(16))[0] == DeleteInstances("g", ("cloud:///u1",), "unregistered")
    assert world.messages("DeleteUnregistered") == ["Removed unregistered node cloud:///u1"]


@pytest.mark.parametrize(
    ("status", "removal", "size"),
    [
        ("ok", "UnregisteredRemoved", "SizeFixed"),
        ("failed", "UnregisteredNotRemoved", "SizeNotFixed"),
        ("withheld", "UnregisteredRemovalAdvised", "SizeFixAdvised"),
    ],
)
def test_the_record_says_what_came_of_a_repair(status, removal, size):
    """A machine that the cloud does not delete is not said to be deleted, nor a target lowered that was not."""
    waiting = [Instance(provider_id="cloud:///u1")]
    groups = [group("g", nodes=["n1"], instances=waiting), group("h", nodes=["n2"], target=3)]
    world = World(nodes=[node("n1"), node("n2")], groups=groups)
    world._do = lambda _: Outcome(status, "Throttling: rate exceeded" if status == "failed" else "")
    world.tick()
    world.tick(at=minutes(16))
    done = {one.code: one for one in world.reasons if one.subject in {"g", "h"} and one.code in ACTIONS}
    assert sorted(done) == sorted([removal, size])
    assert done[removal].fields["instance"] == "cloud:///u1"
    if status == "failed":
        assert {one.fields["error"] for one in done.values()} == {"Throttling: rate exceeded"}


def test_wrong_size_is_put_right_after_its_time():
    """A target that no machine ever came for is lowered once the difference has lasted 15 minutes."""
    world = World(nodes=[node("n1")], groups=[group("g", nodes=["n1"], target=3)])
    world.tick()
    assert not any(isinstance(one, DecreaseTarget) for one in world.tick(at=minutes(15)))
    assert world.tick(at=minutes(16)) == [DecreaseTarget("g", 2, "size")]


def test_a_size_that_is_never_put_right_stops_no_advice_about_others():
    """The first tick ends there, as upstream's does each time; who only advises goes on with the next."""
    groups = [group("g", nodes=["n1"], target=3, minimum=3), group("h", nodes=["n2"])]
    world = World(nodes=[node("n1"), node("n2")], groups=groups)
    do = world._do
    world._do = lambda one: (
        Outcome("withheld", "it only advises") if isinstance(one, DecreaseTarget) else do(one)
    )
    world.tick()
    fix = DecreaseTarget("g", 2, "size")
    assert world.tick(at=minutes(16), pods=tuple(pod(f"p{at}", cpu="1500m") for at in range(9))) == [fix]
    first, *others = world.tick(at=minutes(17))
    assert first == fix
    assert [one.group for one in others if isinstance(one, IncreaseSize)] == ["h"]


def test_unhealthy_cluster_is_left_alone():
    """With more than 45 % and more than 3 nodes unready nothing is bought."""
    names = [f"n{at}" for at in range(8)]
    nodes = [node(name, ready=at >= 4) for at, name in enumerate(names)]
    world = World(nodes=nodes, pods=[pod("a", cpu="100")], groups=[group("g", nodes=names)])
    assert world.tick() == []
    assert world.messages("ClusterUnhealthy") == ["Cluster is unhealthy"]


def test_nodes_that_did_not_help_are_not_bought_again():
    """When joined nodes leave the pods pending, that group backs off from that kind of pods, and says so."""
    world = World(pods=[pod("a", cpu="3")], groups=[group("g", maximum=1)])
    assert world.increases() == {"g": 1}
    # A node that takes no pods, and is not well enough to be copied.
    cordoned = node("n1", created=format_rfc3339(after(START, minutes(2))), spec={"unschedulable": True})
    world.groups["g"] = group("g", maximum=1, nodes=["n1"])
    assert world.increases(at=minutes(2), nodes=(cordoned,)) == {}
    world.change("g", max_size=10)
    assert [world.increases(at=minutes(at)) for at in (4, 5, 8)] == [{}, {}, {}]
    left = [one for one in world.reasons if one.code == "LeftPending"]
    assert [(one.subject, one.fields["pods"]) for one in left] == [("g", 1)]
    assert world.increases(at=minutes(10)) == {"g": 1}
    said = explain_pod(world.state, ("default", "a"), world.now).sentence
    assert said.endswith("; 1 time before, its nodes have come and left pods like this one waiting.")
