"""The registry at the edges: overdue machines, suspended nodes, failures of several kinds and their causes, sizes that are wrong."""

from __future__ import annotations

import pytest
import yaml
from msgspec.structs import replace
from tests.nodes.frozen import LONG_AGO, START, World, group, node, pod, pods

from kubetide.clouds.azure.cloud import AzureCloud
from kubetide.nodes.decision import DecreaseTarget, DeleteInstances, Outcome, RemoveTaint
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.facts.nodes import TO_BE_DELETED, health_of
from kubetide.nodes.reasons import VOCABULARY
from kubetide.nodes.scale_down.decide import begin_deletions
from kubetide.nodes.scale_down.drain_rules import Moves
from kubetide.nodes.scale_down.memory import DeleteResult
from kubetide.nodes.scale_down.plan import Plan
from kubetide.nodes.scale_down.unneeded.evaluate import Removable
from kubetide.nodes.scale_down.unneeded.utilization import Utilization
from kubetide.nodes.settings import Settings
from kubetide.ports.cloud import GroupOptions, Instance, InstanceError
from kubetide.units.time import after, format_rfc3339, minutes, seconds

SUSPENDED = [{"type": "Ready", "status": "False"}, {"type": "Suspended", "status": "True"}]


def failed(name, *, code="STOCKOUT", message="none left"):
    error = InstanceError(error_class="OutOfResource", error_code=code, error_message=message)
    return Instance(provider_id=f"cloud:///{name}", state="Creating", error=error)


def status_of(world, number=0):
    return yaml.safe_load(world.status)["nodeGroups"][number]


def test_a_request_of_which_only_overdue_machines_are_left_times_out():
    """They have not fulfilled it: the group backs off, so that another one may serve.

    They are deleted in the same tick: the target covers what exists, so a cloud does not lower it.
    """
    world = World(pods=[pod("a")], groups=[group("g")])
    world.tick()
    world.change("g", instances=(Instance(provider_id="cloud:///late"),))
    world.tick(at=seconds(10))
    actions = world.tick(at=minutes(20))
    assert DecreaseTarget("g", 1, "timeout") in actions
    assert DeleteInstances("g", ("cloud:///late",), "unregistered", False) in actions
    assert world.messages("ScaleUpTimedOut") == ["Nodes added to group g failed to register within 20m0s"]
    assert list(world.state.memory.backoff) == ["g"]


def test_what_a_timeout_takes_off_the_target_is_not_there_for_deletions():
    """Of a group at its minimum no machine that never joined is deleted in the tick that gives a request up."""
    world = World(
        nodes=[node("n1")],
        pods=[pod("full", cpu="4", node="n1"), *pods("p", 2, cpu="4")],
        groups=[group("g", minimum=3, nodes=["n1", "u1", "u2"])],
    )
    assert world.increases() == {"g": 2}
    actions = world.tick(at=minutes(16))
    assert actions[0] == DecreaseTarget("g", 2, "timeout")
    assert not any(isinstance(one, DeleteInstances) for one in actions)
    assert world.groups["g"].target_size == 3


def test_machines_of_a_group_that_goes_as_a_whole_are_deleted_once():
    """An overdue machine and a failed one are each a reason to empty the group."""
    options = GroupOptions(zero_or_max_node_scaling=True)
    machines = tuple(Instance(provider_id=f"cloud:///{name}") for name in ("f1", "u1"))
    world = World(groups=[group("g", maximum=2, target=2, instances=machines, options=options)])
    world.tick()
    world.change("g", instances=(failed("f1"), machines[1]))
    deleted = [one for one in world.tick(at=minutes(16)) if isinstance(one, DeleteInstances)]
    assert [sorted(one.provider_ids) for one in deleted] == [["cloud:///f1", "cloud:///u1"]]


def test_how_deletions_ended_is_reported_by_a_loop_that_ends_early():
    """An unhealthy cluster has no scale-down; the loop after it does not report the same again."""
    nodes = [node(f"n{at}", ready=False) for at in range(5)]
    world = World(groups=[group("g", nodes=[one.metadata.name for one in nodes])], nodes=nodes)
    down = world.state.memory.scale_down
    down.results = {"gone": DeleteResult("NodeDeleteOk")}
    world.tick()
    assert (down.status.result, list(down.status.delete_results)) == ("ScaleDownNotTried", ["gone"])
    world.tick(at=seconds(10))
    assert down.status.delete_results == {}


def test_how_deletions_ended_is_reported_after_repairs_too():
    """A tick that repairs something and goes on reports it once, with scale-down."""
    machines = (Instance(provider_id="cloud:///u1"), Instance(provider_id="cloud:///n1"))
    world = World(groups=[group("g", target=2, instances=machines)], nodes=[node("n1")])
    world.tick()
    down = world.state.memory.scale_down
    down.results = {"gone": DeleteResult("NodeDeleteOk")}
    actions = world.tick(at=minutes(16))
    assert any(isinstance(one, DeleteInstances) for one in actions)
    assert list(down.status.delete_results) == ["gone"]


class Tainted(World):
    """A world with a node that an earlier process has tainted; ``said`` is the outcome of each try to take that off."""

    def __init__(self, **settings):
        taint = {"key": TO_BE_DELETED, "value": "1", "effect": "NoSchedule"}
        nodes = [node("n1", spec={"taints": [taint]}), node("n2")]
        groups = [group("g", nodes=["n1", "n2"], minimum=2)]
        super().__init__(groups=groups, nodes=nodes, settings=settings)
        self.said = []

    def _do(self, action):
        return self.said.pop(0) if isinstance(action, RemoveTaint) else super()._do(action)

    def cleans(self):
        return [one.node for one in self.tick() if isinstance(one, RemoveTaint)]


@pytest.mark.parametrize(("status", "events"), [("withheld", 0), ("failed", 1)])
def test_a_taint_that_could_not_be_taken_off_at_the_start_is_tried_again(status, events):
    """The lease may have been lost in that very tick; nobody else takes the taint off."""
    world = Tainted()
    world.said = [Outcome(status, "not now"), Outcome()]
    assert world.cleans() == ["n1"]
    assert len(world.messages("ClusterAutoscalerCleanup")) == events
    assert world.cleans() == ["n1"]
    assert world.messages("ClusterAutoscalerCleanup") == [f"removed {TO_BE_DELETED} taint from node n1"]
    assert world.cleans() == []


def test_who_only_advises_tries_once_to_take_taints_off():
    world = Tainted(advises=True)
    world.said = [Outcome("withheld", "this run only advises")]
    assert (world.cleans(), world.cleans()) == (["n1"], [])


def test_a_taint_of_a_deletion_that_has_begun_since_is_left_alone():
    """Its machine may be ending before the cloud says so."""
    world = Tainted()
    world.said = [Outcome("withheld", "not now")]
    world.cleans()
    plan = Plan(empty=[Removable("n1", "g", Moves(), False, Utilization())])
    begin_deletions(world.state, plan, world.now)
    world.state.memory.scale_down.deletions.clear()
    assert world.cleans() == []


def test_a_node_without_the_ready_condition_is_not_ready():
    assert health_of(node("n"), Settings()).unready == ""
    bare = node("n")
    bare = replace(bare, status=replace(bare.status, conditions=()))
    assert health_of(bare, Settings()).unready == "Unready"


def test_a_node_is_a_template_a_minute_after_its_network_came():
    """The last change of the conditions that say whether a node is ready counts."""
    network = {"type": "NetworkUnavailable", "status": "False", "lastTransitionTime": format_rfc3339(START)}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}
    found = health_of(node("n", status={"conditions": [ready, network]}), Settings())
    assert not found.is_good_template(after(START, minutes(1)))
    assert found.is_good_template(after(START, seconds(61)))


def test_a_wrong_size_counts_from_when_it_was_seen_though_nodes_were_requested():
    """The difference is there as soon as the target was raised; the loop that gives the request up puts it right too."""
    world = World(nodes=[node("n1")], pods=pods("a", 2, cpu="3"), groups=[group("g", nodes=["n1"])])
    assert world.increases() == {"g": 1}
    world.tick(at=seconds(30))
    assert world.tick(at=minutes(16)) == [DecreaseTarget("g", 1, "timeout"), DecreaseTarget("g", 1, "size")]


def test_the_size_of_a_group_that_goes_to_its_maximum_is_left_alone():
    options = GroupOptions(zero_or_max_node_scaling=True)
    world = World(nodes=[node("n1")], groups=[group("g", nodes=["n1"], target=3, maximum=3, options=options)])
    world.tick()
    assert not any(isinstance(one, DecreaseTarget) for one in world.tick(at=minutes(16)))


def test_suspended_nodes_count_neither_as_ready_nor_as_unready():
    """They are where they should be, so that their group is healthy and waits for nothing."""
    names = [f"n{number}" for number in range(6)]
    nodes = [node(name, status={"conditions": SUSPENDED}) for name in names]
    world = World(nodes=nodes, groups=[group("g", nodes=names)])
    world.tick()
    health = status_of(world)["health"]
    assert health["status"] == "Healthy"
    registered = health["nodeCounts"]["registered"]
    assert (registered["ready"], registered["suspended"], registered["unready"]["total"]) == (0, 6, 0)


def test_a_machine_that_fails_otherwise_than_before_is_not_counted_again():
    world = World(pods=pods("a", 2, cpu="3"), groups=[group("g")])
    world.tick()
    world.change("g", instances=(failed("x"),))
    world.tick(at=seconds(30))
    assert len(world.messages("ScaleUpFailed")) == 1
    world.change("g", instances=(failed("x", code="QUOTA"),), target_size=2)
    world.tick(at=seconds(60))
    assert world.messages("ScaleUpFailed") == []


def test_messages_of_machines_that_failed_alike_are_reported_whole():
    """The event has each message once, and more than three end in dots; the backoff has the same text."""
    world = World(pods=pods("a", 4, cpu="3"), groups=[group("g")])
    world.tick()
    world.change("g", instances=tuple(failed(f"x{number}", message=f"m{number % 4}") for number in range(4)))
    world.tick(at=seconds(30))
    assert world.messages("ScaleUpFailed") == [
        "Failed adding 4 nodes to group g due to OutOfResource.STOCKOUT; source errors: m0, m1, m2, m3, ..."
    ]
    assert status_of(world)["scaleUp"]["backoffInfo"] == {
        "errorCode": "STOCKOUT",
        "errorMessage": "m0, m1, m2, m3, ...",
    }


def test_failures_of_another_kind_do_not_count_once_the_request_is_used_up():
    """One node was requested; the second failure is of a machine that nobody waits for."""
    world = World(pods=[pod("a")], groups=[group("g")])
    world.tick()
    world.change("g", instances=(failed("x", code="A"), failed("y", code="B")))
    world.tick(at=seconds(30))
    assert len(world.messages("ScaleUpFailed")) == 1


def test_a_long_message_is_cut_and_says_so():
    world = World(pods=[pod("a")], groups=[group("g")])
    world.refused["g"] = "x" * 600
    world.tick()
    message = status_of(world)["scaleUp"]["backoffInfo"]["errorMessage"]
    assert len(message) == 500
    assert message.endswith("x<truncated>")


def test_a_cordoned_node_is_not_unready_for_what_is_still_to_come():
    """A startup taint, and GPUs that do not show yet, are looked for on nodes that take pods."""
    taint = {"key": "startup-taint.cluster-autoscaler.kubernetes.io/x", "effect": "NoSchedule"}
    nodes = [
        node(name, spec={"taints": [taint], "unschedulable": cordoned})
        for name, cordoned in (("a", True), ("b", False))
    ]
    world = World(nodes=nodes, groups=[group("g", nodes=["a", "b"])])
    world.tick()
    registered = status_of(world)["health"]["nodeCounts"]["registered"]
    assert (registered["ready"], registered["unready"]["total"]) == (1, 1)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("OutOfCapacity", "the cloud is out of capacity: no"),
        ("Quota", "a quota of the cloud is used up: no"),
        ("Throttled", "the cloud throttles calls: no"),
        ("Permission", "a permission in the cloud is missing: no"),
        ("Other", "no"),
    ],
)
def test_refusals_name_their_cause(cause, words):
    """The reason says in words why the cloud refused, and so does the skipped group."""
    world = World(pods=[pod("p", cpu="1")], groups=[group("g")])
    world._do = lambda action: Outcome("failed", "no", "Other", "code", cause)
    world.tick()
    refused = next(one for one in world.reasons if one.code == "IncreaseRefused")
    assert VOCABULARY.text(refused) == f"group g could not be increased by 1: {words}"
    assert words.split(":")[0] in explain_group(world.state, "g", world.now).obstacles[0]


def test_machines_that_could_not_be_made_name_their_cause():
    """A machine that the cloud could not make for lack of capacity says so in words."""
    world = World(pods=[pod("p", cpu="1")], groups=[group("g")])
    world.tick()
    error = InstanceError(error_class="OutOfResource", error_code="STOCKOUT")
    world.change("g", instances=(Instance(provider_id="i", state="Creating", error=error),))
    world.tick(at=seconds(10))
    failed = next(one for one in world.reasons if one.code == "FailedInstance")
    assert dict(failed.fields)["error"] == "the cloud is out of capacity: OutOfResource.STOCKOUT"


@pytest.mark.parametrize(("partly", "deleted"), [(None, ["i1", "i2"]), (True, None)])
def test_a_group_at_zero_or_its_maximum_goes_as_a_whole(partly, deleted):
    """With one machine that cannot be made all of them go, and none where the group may grow in part."""
    options = GroupOptions(zero_or_max_node_scaling=True, allow_non_atomic_scale_up_to_max=partly)
    world = World(pods=[pod("p", cpu="1")], groups=[group("g", maximum=2, options=options)])
    world.tick()
    failed = Instance(provider_id="i1", state="Creating", error=InstanceError(error_code="X"))
    world.change("g", instances=(failed, Instance(provider_id="i2", state="Creating")))
    found = [one for one in world.tick(at=seconds(10)) if isinstance(one, DeleteInstances)]
    assert [sorted(one.provider_ids) for one in found] == ([] if deleted is None else [deleted])


def test_a_tick_without_ready_nodes_ends_before_the_registry_is_asked():
    """With --scale-up-from-zero=false unneeded nodes are forgotten, and no time of a machine begins until there is a ready node."""
    there = group("g", nodes=("n0",))
    world = World(nodes=[node("n0")], groups=[there], settings={"scale_up_from_zero": False})
    world.tick()
    memory = world.state.memory
    assert list(memory.scale_down.unneeded) == ["n0"]
    late = Instance(provider_id="cloud:///late")
    world.change("g", instances=(*there.instances, late), target_size=2)
    world.tick(at=seconds(10), nodes=(node("n0", ready=False),))
    assert 'message: "Cluster has no ready nodes."' in world.status
    assert (memory.scale_down.unneeded, memory.unregistered_since, world.events) == ({}, {}, [])
    world.tick(at=minutes(11))
    assert world.messages("ClusterUnhealthy") == ["Cluster has no ready nodes."]
    world.tick(at=minutes(12), nodes=(node("n0"),))
    assert memory.unregistered_since == {late.provider_id: after(START, minutes(12))}
    assert memory.started == START


def test_results_of_deletions_wait_for_a_tick_that_begins():
    """With --scale-up-from-zero=false a tick without ready nodes does not report them; the next one with such a node does."""
    there = group("g", nodes=("n0",))
    world = World(nodes=[node("n0")], groups=[there], settings={"scale_up_from_zero": False})
    world.tick()
    memory = world.state.memory.scale_down
    memory.results["gone"] = done = DeleteResult("NodeDeleteOk")
    world.tick(at=seconds(10), nodes=(node("n0", ready=False),))
    assert memory.status.delete_results == {}
    world.tick(at=seconds(20), nodes=(node("n0"),))
    assert memory.status.delete_results == {"gone": done}


@pytest.mark.parametrize(("whole", "shown"), [(False, 0), (True, 1)])
def test_targets_are_read_again_once_failed_machines_were_deleted(whole, shown):
    """The document shows what the tick has changed before only then, as upstream's; where all stay, from the next tick on."""
    options = GroupOptions(zero_or_max_node_scaling=whole, allow_non_atomic_scale_up_to_max=whole)
    late = Instance(provider_id="cloud:///late")
    coming = Instance(provider_id="cloud:///coming", state="Creating")
    groups = group("g", maximum=2, target=2, options=options), group("h", instances=(late,), target=1)
    world = World(groups=groups)
    world.tick()
    world.change("g", instances=(failed("broken"), coming))
    actions = world.tick(at=minutes(16))
    assert whole is not any(isinstance(one, DeleteInstances) and one.group == "g" for one in actions)
    assert world.groups["h"].target_size == 0
    assert status_of(world, 1)["health"]["cloudProviderTarget"] == shown


def test_leftover_deletion_taints_are_cleaned_at_start():
    """Taints that an earlier process left on nodes of groups are taken off at the first tick."""
    taints = {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}]}
    world = World(nodes=[node("n1", spec=taints)], groups=[group("g", nodes=["n1"])])
    assert world.tick()[0] == RemoveTaint("n1", "ToBeDeletedByClusterAutoscaler", uncordon=True)
    assert not any(isinstance(one, RemoveTaint) for one in world.tick(at=seconds(10)))


def test_the_deletion_taint_of_a_machine_that_is_going_stays():
    """A process that begins while the cloud deletes a machine invites no pods to it: they would be lost."""
    taints = {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}]}
    there = group("g", nodes=["n1", "n2"])
    going, staying = there.instances
    there = replace(there, instances=(replace(going, state="Deleting"), staying))
    world = World(nodes=[node("n1", spec=taints), node("n2", spec=taints)], groups=[there])
    assert [one.node for one in world.tick() if isinstance(one, RemoveTaint)] == ["n2"]


def test_nodes_whose_machines_the_cloud_deletes_make_no_cluster_unhealthy_on_azure():
    """They are being deleted, and so neither ready nor unready: the cluster may grow meanwhile."""
    names = [f"n{number}" for number in range(6)]
    world = World(
        nodes=[node("up"), *(node(name, ready=False, spec={"unschedulable": True}) for name in names)],
        pods=pods("p", 2, cpu="3"),
        groups=[group("g", nodes=["up"])],
        settings={"knows_machines": AzureCloud.knows_machines},
    )
    going = tuple(Instance(provider_id=f"cloud:///{name}", state="Deleting") for name in names)
    world.change("g", instances=(Instance(provider_id="cloud:///up"), *going))
    assert world.increases() == {"g": 1}
    counted = status_of(world)["health"]["nodeCounts"]["registered"]
    assert (counted["total"], counted["ready"], counted["beingDeleted"]) == (7, 1, 6)
