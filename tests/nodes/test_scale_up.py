"""Scale-up: demand, templates, expanders, similar groups; one decision after another without a cluster."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.nodes.frozen import (
    START,
    TAINTED,
    World,
    daemon_set,
    group,
    node,
    pod,
    pods,
    template,
)

from kubetide.clouds.common.template import kube_proxy
from kubetide.nodes.scale_down.memory import Deletion
from kubetide.nodes.scale_up.increase.balancing import balance
from kubetide.ports.cloud import Instance
from kubetide.units.time import after, format_rfc3339, minutes, seconds


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


def test_of_many_waiting_pods_those_come_first_that_upstreams_sort_puts_first():
    """Go's sort is not stable: of sixteen pods, five of which are more important, others than the first by name get the rest."""
    priorities = (0, 5, 0, 0, 5, 0, 5, 0, 0, 5, 0, 0, 5, 0, 0, 0)
    waiting = [
        pod(f"p{at:02}", cpu="1", spec={"priority": priority}) for at, priority in enumerate(priorities)
    ]
    world = World(pods=waiting, nodes=[node("n", cpu="7")], groups=[group("g")])
    world.tick()
    placed = [one.metadata.name for one, _ in world.state.tick.demand.placed]
    assert placed == ["p12", "p09", "p06", "p01", "p04", "p05", "p03"]


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


def test_static_pods_of_a_drained_node_need_no_other_one():
    """A pod that a kubelet reads from a file ends with its node, also where the API server does not call it a mirror."""
    notes = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true", "kubernetes.io/config.source": "file"}
    world = World(
        nodes=[node("n0", spec=TAINTED)],
        pods=[pod("static", cpu="3", node="n0", kind="", metadata={"annotations": notes})],
        groups=[group("g", nodes=("n0",))],
    )
    world.state.memory.scale_down.deletions["n0"] = in_flight("n0", "terminating")
    assert world.increases() == {}


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


def test_where_a_pod_fitted_is_forgotten_once_it_fits_nowhere():
    """A hint lives for one loop, though its pod still waits."""
    world = World(nodes=[node("n0")], pods=[pod("a", cpu="3")], groups=[group("g", maximum=1, nodes=["n0"])])
    world.tick()
    assert list(world.state.memory.hints.values()) == ["n0"]
    world.tick(at=seconds(10), pods=(pod("full", cpu="3", node="n0"),))
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


def test_learned_template_promises_the_least_seen():
    """When nodes of one type differ, the template has the least of each resource."""
    nodes = [node("n1", memory="16Gi"), node("n2", cpu="3", memory="18Gi")]
    full = [pod("x", cpu="3900m", node="n1"), pod("y", cpu="2900m", node="n2")]
    world = World(nodes=nodes, pods=[*full, pod("a", cpu="3500m")], groups=[group("g", nodes=["n1", "n2"])])
    assert world.increases() == {}
    seen = world.state.memory.templates["g"].node.status.allocatable
    assert (seen["cpu"], seen["memory"]) == ("3", "16Gi")


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
