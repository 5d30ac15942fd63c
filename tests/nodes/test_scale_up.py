"""Scale-up: demand, options, limits, backoff, statuses; one decision after another without a cluster."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.nodes.frozen import (
    START,
    World,
    daemon_set,
    group,
    node,
    pod,
    pods,
    template,
)

from kubetide.clouds.common.template import kube_proxy
from kubetide.nodes.decision import DecreaseTarget, DeleteInstances, RemoveTaint
from kubetide.nodes.records.export import copy_state
from kubetide.nodes.registry.status_map import without_probes
from kubetide.nodes.scale_down.memory import Deletion
from kubetide.nodes.scale_up.increase.balancing import balance
from kubetide.nodes.state import Delta, Gone
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Namespace
from kubetide.ports.cloud import GroupOptions, Instance, InstanceError
from kubetide.units.time import after, format_rfc3339, minutes, seconds

TAINTED = {
    "taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1772438400", "effect": "NoSchedule"}]
}


def test_the_backoff_after_a_refused_call_has_upstreams_code():
    """The status names the kind of error; what the cloud called it is in the message."""
    world = World(groups=[group("g")], pods=[pod("p")])
    world.refused["g"] = "AccessDenied: no"
    world.tick()
    entry = world.state.memory.backoff["g"]
    assert (entry.error_class, entry.error_code) == ("Other", "cloudProviderError")
    assert entry.error_message == "failed to increase node group size: AccessDenied: no"


def test_groups_that_do_not_exist_are_not_counted():
    """The event of a pod counts the reasons of groups that are there."""
    small = template(cpu="1")
    groups = [group("a", made=small), group("ghost", made=small, exists=False)]
    world = World(groups=groups, pods=[pod("p", cpu="3")])
    assert world.increases() == {}
    assert world.messages("NotTriggerScaleUp") == ["pod didn't trigger scale-up: 1 Insufficient cpu"]


def test_more_than_twelve_similar_groups_grow_in_the_order_of_upstreams_sort():
    """Go's sort is not stable: of fourteen groups with five smallest ones g09 comes first."""
    sizes = (3, 1, 3, 2, 1, 3, 1, 2, 3, 1, 2, 1, 3, 2)
    groups = [group(f"g{at:02}", target=size) for at, size in enumerate(sizes)]
    assert [(one.id, size) for one, size in balance(groups, 1)] == [("g09", 2)]


def test_no_second_purchase_while_nodes_are_on_their_way():
    """Requested nodes count as capacity until they have joined."""
    world = World(pods=pods("a", 8, cpu="1"), groups=[group("g")])
    assert world.increases() == {"g": 2}
    assert world.increases(at=seconds(10)) == {}
    assert world.messages("TriggeredScaleUp") == []


def test_upcoming_capacity_is_used_before_more_is_bought():
    """Only pods that do not fit on upcoming nodes lead to more of them."""
    world = World(pods=pods("a", 6, cpu="1"), groups=[group("g")])
    world.tick()
    assert world.increases(at=seconds(10), pods=tuple(pods("b", 3, cpu="1"))) == {"g": 1}


def in_flight(name, phase):
    due = after(START, minutes(2))
    return Deletion(
        node=name,
        group="g",
        provider_id=f"cloud:///{name}",
        drain=True,
        phase=phase,
        since=START,
        due=due,
        until=due,
    )


@pytest.mark.parametrize(("stopping", "bought"), [((), {"g": 1}), ((0, 1, 2), {})])
def test_a_drained_node_s_pods_count_until_they_are_being_deleted(stopping, bought):
    """Pods of a drained node need a place; once they stop, their replacements exist and count alone."""
    stops = {"metadata": {"deletionTimestamp": format_rfc3339(START), "deletionGracePeriodSeconds": 30}}
    old = [pod(f"a-{at}", cpu="1", node="n0", **(stops if at in stopping else {})) for at in range(3)]
    new = [pod(f"b-{at}", cpu="1", node="n1") for at in range(3)]
    world = World(
        nodes=[node("n0", spec=TAINTED), node("n1")],
        pods=[*old, *new],
        groups=[group("g", nodes=("n0", "n1"))],
    )
    world.state.memory.scale_down.deletions["n0"] = in_flight("n0", "terminating")
    assert world.increases() == bought


@pytest.mark.parametrize(("size", "text"), [("3", "TriggeredScaleUp"), ("8", "NotTriggerScaleUp")])
def test_pods_of_a_drained_node_are_told_also_those_of_no_controller(size, text):
    """As upstream: whoever is moved, for it a node is bought, and the event is the pod's."""
    world = World(
        nodes=[node("n0", cpu="8", spec=TAINTED)],
        pods=[pod("bare", cpu=size, node="n0", kind="")],
        groups=[group("g", nodes=("n0",), made=template()), group("h", made=template())],
    )
    world.state.memory.scale_down.deletions["n0"] = in_flight("n0", "terminating")
    world.tick()
    assert [one.name for one in world.events if one.reason == text] == ["bare"]


def test_requests_for_cloud_tpus_need_no_node_that_offers_them():
    """A Cloud TPU is reached over the network; other devices must be offered."""
    name = "cloud-tpus.google.com/v3"
    for device, bought in ((name, {"g": 1}), ("example.com/v3", {})):
        amounts = {"requests": {"cpu": "1", device: "8"}, "limits": {device: "8"}}
        spec = {"containers": [{"name": "main", "image": "x", "resources": amounts}]}
        world = World(pods=[pod("p", spec=spec)], groups=[group("g")])
        assert world.increases() == bought


def test_a_machine_that_is_being_deleted_is_not_upcoming():
    """While the cloud deletes a machine its node does not count as upcoming, and is not bought again."""
    world = World(nodes=[node("n0", spec=TAINTED)], groups=[group("g", nodes=("n0",))])
    world.state.memory.scale_down.deletions["n0"] = in_flight("n0", "deleting")
    waiting = tuple(pods("b", 1, cpu="3"))
    assert world.increases(pods=waiting) == {"g": 1}
    leaving = Instance(provider_id="cloud:///n0", state="Deleting")
    world.change("g", target_size=1, instances=(leaving,))
    assert world.increases(at=seconds(10), pods=tuple(pods("c", 1, cpu="500m"))) == {}
    assert world.increases(at=seconds(20)) == {}
    world.change("g", instances=())
    assert world.increases(at=seconds(30)) == {}


def test_a_pod_that_fits_is_thought_of_on_the_same_node_until_it_is_placed():
    """A pod that the scheduler has not placed yet is put on the same node in each tick, as upstream's loop does."""
    names = ["n0", "n1", "n2"]
    waiting = pod("a", cpu="1")
    world = World(nodes=[node(name) for name in names], pods=[waiting], groups=[group("g", nodes=names)])
    found = []
    for at in range(4):
        world.tick(at=seconds(10 * at))
        found.append(world.state.snapshot.node_of(("default", "a")))
    assert len(set(found)) == 1
    assert list(world.state.memory.hints.values()) == found[:1]
    world.tick(at=seconds(50), deleted_pods=(("default", "a"),))
    assert world.state.memory.hints == {}


def test_daemon_set_pods_take_their_share_of_a_new_node():
    """A cloud's template comes with the pods that DaemonSets will put on it."""
    world = World(
        pods=pods("a", 4, cpu="1"), groups=[group("g")], daemon_sets=(daemon_set("agent", cpu="500m"),)
    )
    assert world.increases() == {"g": 2}


@pytest.mark.parametrize(("priority", "bought"), [("", 2), ("system-node-critical", 4)])
def test_daemon_set_pods_that_push_others_aside_count_where_a_live_node_lacks_them(priority, bought):
    """A new node has them from the start; where the live node lacks others, so does the new one."""
    agent = daemon_set("agent", cpu="2")
    spec = replace(agent.spec.template.spec, priority_class_name=priority)
    agent = replace(agent, spec=replace(agent.spec, template=replace(agent.spec.template, spec=spec)))
    full = pod("x", cpu="4", node="n1")
    world = World(
        nodes=[node("n1")],
        pods=[full, *pods("a", 4, cpu="2")],
        groups=[group("g", nodes=["n1"])],
        daemon_sets=(agent,),
    )
    assert world.increases() == {"g": bought}


def test_the_providers_own_pods_take_their_share_of_a_new_node():
    """Pods that the provider itself runs on each new node (kube-proxy, agents) count in the cloud's template."""
    made = replace(template(), pods=(kube_proxy("g"),))
    world = World(pods=pods("a", 4, cpu="1"), groups=[group("g", made=made)])
    assert world.increases() == {"g": 2}


@pytest.mark.parametrize(
    ("expander", "grown"),
    [
        ("least-waste", {"small": 3}),
        ("most-pods", {"large": 1}),
        ("least-nodes", {"large": 1}),
        ("most-pods,least-waste", {"large": 1}),
    ],
)
def test_expander_chooses(expander, grown):
    """Each expander prefers what it is named for; a chain goes on among equals."""
    groups = [
        group("large", made=template(cpu="16", memory="64Gi")),
        group("small", made=template(cpu="2", memory="8Gi"), maximum=3),
    ]
    world = World(pods=pods("a", 4, cpu="2", memory="8Gi"), groups=groups, settings={"expander": expander})
    assert world.increases() == grown


def test_random_pick_depends_on_seed_and_time_only():
    """The same seed at the same time picks the same of several equals; another seed may not."""

    def picked(seed):
        world = World(
            pods=pods("a", 1),
            groups=[group(name) for name in "abcdef"],
            settings={"expander": "random", "seed": seed},
        )
        return tuple(world.increases())

    assert picked(7) == picked(7)
    assert len({picked(seed) for seed in range(20)}) > 1


def test_similar_groups_share_an_increase():
    """With balancing, new nodes go to the smallest of the groups that are alike but for the zone."""
    zone = "topology.kubernetes.io/zone"
    groups = [group(name, made=template(labels={zone: name})) for name in "abc"]
    world = World(pods=pods("p", 5, cpu="3"), groups=groups, settings={"balance_similar_node_groups": True})
    assert sorted(world.increases().values()) == [1, 2, 2]


@pytest.mark.parametrize(
    ("sizes", "new", "grown"),
    [
        ({"a": (2, 6), "b": (2, 3), "c": (1, 2), "d": (1, 6)}, 8, [("c", 2), ("b", 3), ("a", 5), ("d", 4)]),
        ({"a": (0, 7), "b": (1, 3)}, 17, [("b", 3), ("a", 7)]),
        ({"a": (0, 7), "b": (1, 3)}, 2, [("a", 2)]),
        ({"a": (3, 3), "b": (3, 4)}, 0, []),
    ],
)
def test_full_groups_are_raised_first_and_the_last_node_goes_where_upstream_has_it(sizes, new, grown):
    """A group that is full gives its place in the line to the first: so upstream orders calls, and deals the last node."""
    groups = [group(name, target=target, maximum=most) for name, (target, most) in sizes.items()]
    assert [(one.id, size) for one, size in balance(groups, new)] == grown


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


def test_wrong_size_is_put_right_after_its_time():
    """A target that no machine ever came for is lowered once the difference has lasted 15 minutes."""
    world = World(nodes=[node("n1")], groups=[group("g", nodes=["n1"], target=3)])
    world.tick()
    assert not any(isinstance(one, DecreaseTarget) for one in world.tick(at=minutes(15)))
    assert world.tick(at=minutes(16)) == [DecreaseTarget("g", 2, "size")]


def test_unhealthy_cluster_is_left_alone():
    """With more than 45 % and more than 3 nodes unready nothing is bought."""
    names = [f"n{at}" for at in range(8)]
    nodes = [node(name, ready=at >= 4) for at, name in enumerate(names)]
    world = World(nodes=nodes, pods=[pod("a", cpu="100")], groups=[group("g", nodes=names)])
    assert world.tick() == []
    assert world.messages("ClusterUnhealthy") == ["Cluster is unhealthy"]


def test_limits_cut_what_is_bought():
    """--max-nodes-total and --cores-total bound an increase."""
    few = World(pods=pods("a", 9, cpu="3"), groups=[group("g")], settings={"max_nodes_total": 2})
    assert few.increases() == {"g": 2}
    small = World(pods=pods("a", 9, cpu="3"), groups=[group("g")], settings={"cores_total": "0:13"})
    assert small.increases() == {"g": 3}


def test_a_group_that_grew_for_pods_still_comes_up_to_its_minimum():
    """In the same tick, by what is still missing; --max-nodes-total counts the nodes requested just before."""
    enforced = {"enforce_node_group_min_size": True}
    groups = [group("g", minimum=3)]
    world = World(pods=[pod("a")], groups=groups, settings=enforced)
    world.tick()
    assert world.groups["g"].target_size == 3
    world = World(pods=[pod("a")], groups=groups, settings={**enforced, "max_nodes_total": 2})
    world.tick()
    assert world.groups["g"].target_size == 2


def test_groups_come_up_to_their_minimum_within_the_total():
    """Together they stay within --max-nodes-total, and an event says that it is reached."""
    settings = {"enforce_node_group_min_size": True, "max_nodes_total": 5}
    world = World(groups=[group("g", minimum=3), group("h", minimum=3)], settings=settings)
    world.tick()
    assert (world.groups["g"].target_size, world.groups["h"].target_size) == (3, 2)
    said = [one.message for one in world.events if one.reason == "MaxNodesTotalReached"]
    assert said == ["Max total nodes in cluster reached: 5"]


def test_errors_of_parallel_increases_are_one_message():
    """With --parallel-scale-up the first by name leads and the others follow; a group that grew has not failed with them."""
    zone = "topology.kubernetes.io/zone"
    groups = [group(name, made=template(labels={zone: name})) for name in "abc"]
    together = {"balance_similar_node_groups": True, "parallel_scale_up": True}
    world = World(pods=pods("p", 3, cpu="3"), groups=groups, settings=together)
    world.refused.update(c="no c", a="no a")
    world.tick()
    said = world.state.tick.rounds[-1]
    assert sorted(said.failed) == ["a", "c"]
    start = "failed to increase node group size: no"
    assert said.error == f'{start} a ...and other errors: ["{start} c"]'
    assert said.remain == ()
    for name in "abc":
        world = World(pods=pods("p", 3, cpu="3"), groups=groups, settings=together)
        world.refused[name] = "no"
        world.tick()
        assert world.state.tick.rounds[-1].remain == ()


def test_an_error_at_the_minimum_is_its_own():
    """Not that of the increase for pods before it."""
    groups = [group("a"), group("b", minimum=1, made=template(cpu="1"))]
    world = World(pods=[pod("p", cpu="3")], groups=groups, settings={"enforce_node_group_min_size": True})
    world.refused.update(a="no a", b="no b")
    world.tick()
    assert [one.error[-4:] for one in world.state.tick.rounds] == ["no a", "no b"]


def test_a_group_that_goes_to_its_maximum_counts_as_a_whole():
    """The expander sees its maximum, as upstream's does; the missing nodes are bought, also where limits leave just that."""
    made = group("g", nodes=["n1"], maximum=3, options=GroupOptions(zero_or_max_node_scaling=True))
    objects = {"nodes": [node("n1")], "pods": [pod("x", cpu="4", node="n1"), pod("p", cpu="3")]}
    for limits in ({}, {"cores_total": "0:12"}, {"max_nodes_total": 3}):
        world = World(**objects, groups=[made], settings=limits)
        assert world.increases() == {"g": 2}
        assert [(one.group.id, one.nodes) for one in world.state.tick.options] == [("g", 3)]


def test_a_purchase_is_a_cooldown_where_nodes_never_go():
    """--scale-down-enabled=false: upstream says so of the tick that bought, and of others that nothing was tried."""
    world = World(pods=[pod("p")], groups=[group("g")], settings={"scale_down_enabled": False})
    assert world.increases() == {"g": 1}
    assert world.state.memory.scale_down.status.result == "ScaleDownInCooldown"
    world.tick(at=seconds(10))
    assert world.state.memory.scale_down.status.result == "ScaleDownNotTried"


def test_cap_per_hour_bounds_buying():
    """No more nodes are requested within an hour than the cap says, whatever the demand."""
    cap = {"max_node_increases_per_hour": 3}
    world = World(pods=pods("a", 5, cpu="3"), groups=[group("g"), group("h")], settings=cap)
    assert sum(world.increases().values()) == 3
    assert world.increases(at=minutes(1), pods=tuple(pods("b", 4, cpu="4"))) == {}
    later = world.increases(at=minutes(61), pods=tuple(pods("c", 4, cpu="4")))
    assert 1 <= sum(later.values()) <= 3


def test_nodes_that_did_not_help_are_not_bought_again():
    """When joined nodes leave the pods pending, that group backs off from that kind of pods."""
    promised = template(cpu="4", memory="16Gi")
    world = World(pods=[pod("a", cpu="3")], groups=[group("g", made=promised)])
    assert world.increases() == {"g": 1}
    # The machine that comes is not what the cloud promised, and is not well enough to be copied.
    poor = node("n1", cpu="1", created=format_rfc3339(after(START, minutes(2))))
    world.groups["g"] = group("g", made=promised, nodes=["n1"])
    assert world.increases(at=minutes(2), nodes=(poor,)) in ({}, {"g": 1})
    bought = [world.increases(at=minutes(at)) for at in (4, 5, 6)]
    assert bought == [{}, {}, {}]


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


def test_learned_template_promises_the_least_seen():
    """When nodes of one type differ, the template has the least of each resource."""
    nodes = [node("n1", memory="16Gi"), node("n2", cpu="3", memory="18Gi")]
    full = [pod("x", cpu="3900m", node="n1"), pod("y", cpu="2900m", node="n2")]
    world = World(nodes=nodes, pods=[*full, pod("a", cpu="3500m")], groups=[group("g", nodes=["n1", "n2"])])
    assert world.increases() == {}
    seen = world.state.memory.templates["g"].node.status.allocatable
    assert (seen["cpu"], seen["memory"]) == ("3", "16Gi")


def test_status_document_counts_and_names_states():
    """The status document has upstream's shape and words."""
    yaml = pytest.importorskip("yaml")
    world = World(pods=[pod("a")], groups=[group("g"), group("h", maximum=0)])
    world.tick()
    status = yaml.safe_load(world.status)
    assert status["autoscalerStatus"] == "Running"
    assert status["time"] == "2026-03-02 08:00:00 +0000 UTC"
    assert status["clusterWide"]["scaleUp"]["status"] == "InProgress"
    first, second = status["nodeGroups"]
    assert (first["name"], first["health"]["cloudProviderTarget"], first["scaleUp"]["status"]) == (
        "g",
        1,
        "InProgress",
    )
    assert second["scaleUp"] == {
        "status": "NoActivity",
        "backoffInfo": {},
        "lastProbeTime": None,
        "lastTransitionTime": None,
    }


def test_times_of_probing_alone_are_no_change():
    """Without its times of probing a document reads like one that was made without them, at whatever time it is written."""
    yaml = pytest.importorskip("yaml")

    def bare(value):
        if isinstance(value, dict):
            return {key: bare(item) for key, item in value.items() if key not in {"lastProbeTime", "time"}}
        return [bare(item) for item in value] if isinstance(value, list) else value

    texts = []
    for at in (seconds(0), seconds(10)):
        world = World(pods=[pod("a")], groups=[group("g"), group("time", maximum=0)])
        world.tick(at=at)
        texts.append(world.status)
        assert yaml.safe_load(without_probes(texts[-1])) == bare(yaml.safe_load(texts[-1]))
        assert "- name: time\n" in without_probes(texts[-1])
    assert texts[0] != texts[1]


def test_bad_flags_name_the_fix():
    """A limit that cannot be read says which flag it is and how it is to be written."""
    with pytest.raises(ValueError, match="--cores-total=9: give <min>:<max>"):
        World(settings={"cores_total": "9"})


SIZES = st.sampled_from(["500m", "1500m", "3", "5"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["nothing", "pods", "gone", "join", "fail", "daemon", "undaemon", "template", "label"]
        ),
        st.integers(0, 3),
        SIZES,
    ),
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 5))
def test_memory_of_quiet_ticks_changes_nothing(steps, seed):
    """With and without using earlier findings again, and after starting anew from the full form, all decides alike."""
    worlds = [_world(seed) for _ in range(3)]
    worlds[1].state.memo = False
    for number, step in enumerate(steps):
        decided = []
        for at, world in enumerate(worlds):
            _move(world, number, *step)
            if at == 2:
                world.state = copy_state(world.state)
            world.tick(at=seconds(40 * number))
            decided.append(
                msgspec.json.encode([world.commands, world.events, world.state.memory], order="deterministic")
            )
        assert decided[0] == decided[1]
        assert decided[0] == decided[2]


CHANGES = {
    "a DaemonSet comes": lambda world: world.state.apply(Delta(daemon_sets=(daemon_set("new", cpu="1"),))),
    "a DaemonSet changes": lambda world: world.state.apply(Delta(daemon_sets=(daemon_set("old", cpu="2"),))),
    "a DaemonSet goes": lambda world: world.state.apply(
        Delta(gone=Gone(daemon_sets=(("kube-system", "old"),)))
    ),
    "the cloud's template changes": lambda world: world.change("g", template=template(cpu="8")),
}


@pytest.mark.parametrize("expander", ["least-waste", "least-cost"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_templates_are_cached_while_their_input_is_unchanged(change, expander):
    """A second scale-up has the same templates as a loop that has just begun."""
    found = []
    for changed, anew in ((True, False), (True, True), (False, False)):
        world = World(
            pods=[pod("first", cpu="3")],
            groups=[group("g", maximum=50, price_per_hour=1.0)],
            daemon_sets=(daemon_set("old", cpu="1"),),
            settings={"expander": expander},
        )
        assert world.increases() == {"g": 1}
        if changed:
            change(world)
        if anew:
            world.state = copy_state(world.state)
        sizes = (pod("large", cpu="3500m"), pod("medium", cpu="2500m"))
        increases = world.increases(at=seconds(10), pods=(*pods("next", 24, cpu="1"), *sizes))
        found.append((increases, world.reasons))
    assert found[0] == found[1]
    assert found[0] != found[2]


def _world(seed):
    groups = [group("a", nodes=["n1"], maximum=4), group("b", made=template(cpu="8"), maximum=2)]
    return World(nodes=[node("n1")], groups=groups, settings={"seed": seed, "expander": "random"})


def _move(world, number, what, count, size):
    if what == "pods":
        world.state.apply(Delta(pods=tuple(pods(f"p{number}", count, cpu=size))))
    elif what == "gone":
        world.state.apply(Delta(gone=Gone(pods=tuple(sorted(world.state.pods))[:count])))
    elif what == "daemon":
        world.state.apply(Delta(daemon_sets=(daemon_set(f"d{count}", cpu=size),)))
    elif what == "undaemon":
        world.state.apply(Delta(gone=Gone(daemon_sets=tuple(sorted(world.state.daemon_sets))[:count])))
    elif what == "template":
        world.change("b", template=template(cpu=str(4 * count + 4)))
    elif what == "label":
        world.state.apply(
            Delta(namespaces=(Namespace(metadata=ObjectMeta(name="default", labels={"round": str(count)})),))
        )
    elif what == "fail":
        world.refused = {"a": "no"} if count else {}
    elif what == "join":
        known = world.groups["a"]
        names = [one.provider_id for one in known.instances or ()]
        if known.target_size > len(names):
            # Later than the others in name order too: a state made anew has its nodes in that order.
            name = f"z{number:02d}"
            world.change("a", instances=(*known.instances, Instance(provider_id=f"cloud:///{name}")))
            world.state.apply(Delta(nodes=(node(name),)))


def test_sizes_that_cannot_be_read_stop_nothing():
    """A cloud's template with an unreadable size is as good as none, and the other groups go on."""
    broken = template(cpu="4", memory="16Gi")
    status = msgspec.structs.replace(broken.node.status, allocatable={"cpu": "four"})
    broken = msgspec.structs.replace(broken, node=msgspec.structs.replace(broken.node, status=status))
    world = World(pods=[pod("a")], groups=[group("bad", made=broken), group("good")])
    assert world.increases() == {"good": 1}


def test_the_fast_path_divides():
    """With the flag, pods with affinity by hostname are divided over nodes, as upstream's estimate does."""
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    asked = pods("a", 9, cpu="1", spec={"affinity": near})
    found = [
        World(pods=asked, groups=[group("g")], settings={"fastpath_binpacking_enabled": on}).increases()
        for on in (False, True)
    ]
    assert found == [{"g": 1}, {"g": 3}]
