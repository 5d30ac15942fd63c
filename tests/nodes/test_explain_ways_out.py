"""What would help a pod where more than one thing keeps it, and what is said where nothing helps."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.nodes.frozen import World, daemon_set, group, node, pod, template
from tests.nodes.test_volumes import DATA, ZONE, bound_in

from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.equivalent_pods import explain_equivalent_pods
from kubetide.nodes.explain.explainers import EXPLAINERS
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.explain.waiting.counterfactual import CopyOnDemand
from kubetide.nodes.facts.slim_pods import slim_pod
from kubetide.nodes.records.export import copy_state, export_state

FULL = {"nodes": [node("n1")], "groups": [group("g", maximum=1, nodes=["n1"])]}
ON_IT = pod("z", cpu="4", node="n1")
FRIEND = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "nobody"}}}
OTHER = {**FRIEND, "labelSelector": {"matchLabels": {"app": "nobody-else"}}}
LONELIER = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [FRIEND, OTHER]}}}
LONELY = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [FRIEND]}}}


def explained(world, name="a"):
    assert world.increases() == {}
    return explain_pod(world.state, ("default", name), world.now)


@pytest.mark.parametrize(
    ("asked", "change"),
    [
        (pod("a", cpu="64"), "add a group like g with a larger machine type: 64 cpu allocatable or more"),
        (
            pod(
                "a", spec={"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}
            ),
            "add a group like g with another machine type: 1 nvidia.com/gpu allocatable or more",
        ),
    ],
    ids=["size", "GPU"],
)
def test_another_group_needs_no_higher_maximum(asked, change):
    """Where only a group of other machines helps, nobody is sent to raise the maximum of the present one."""
    found = explained(World(pods=[asked, ON_IT], **FULL))
    assert found.way_out is not None
    assert (found.way_out.text, found.way_out.verified) == (change, True)


@pytest.mark.parametrize(
    ("asked", "free"),
    [("500", "none free of 4 allocatable, as its pods ask for 500"), ("3800m", "200m free of 4 allocatable")],
)
def test_a_daemon_set_that_takes_the_whole_machine_is_named(asked, free):
    """A larger machine for every node, or a pod that asks for next to nothing, is not what helps."""
    big = daemon_set("agent", cpu=asked)
    found = explained(World(pods=[pod("a", cpu="2")], groups=[group("g")], daemon_sets=(big,)))
    assert found.groups[0].why == f"Insufficient cpu (cpu: 2 requested, {free})"
    assert found.way_out is not None
    assert found.way_out.verified
    assert found.way_out.text == (
        "keep the pods of DaemonSet kube-system/agent off the nodes of group g, or lower their request: each asks for "
        f"{asked} of 4 cpu"
    )
    assert World(pods=[pod("a", cpu="2")], groups=[group("g")]).increases() == {"g": 1}


def test_a_spread_over_zones_that_no_group_meets_names_another_zone():
    """The skew names the domains that are missing; either change alone lets a pod in, and the second is decided again."""
    rule = {
        "maxSkew": 1,
        "minDomains": 2,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    spread = {"spec": {"topologySpreadConstraints": [rule]}}
    here = {"labels": {ZONE: "zone-a"}}
    groups = [group("g", nodes=["n1"], made=template(**here))]
    pods = [pod("a", **spread), pod("there", node="n1", **spread)]
    found = explained(World(pods=pods, nodes=[node("n1", **here)], groups=groups))
    assert found.groups[0].why == (
        "node(s) didn't match pod topology spread constraints (1 pods in its topology.kubernetes.io/zone, at most 0 for one "
        "more (maxSkew 1, and 1 of minDomains 2 domains))"
    )
    assert found.way_out is not None
    assert found.way_out.verified
    assert found.way_out.text == (
        "add a group like g in another zone, or let the spread over topology.kubernetes.io/zone be soft "
        "(whenUnsatisfiable: ScheduleAnyway)"
    )
    elsewhere = group("h", made=template(labels={ZONE: "zone-b"}))
    bought = World(pods=pods, nodes=[node("n1", **here)], groups=[*groups, elsewhere])
    assert bought.increases() == {"h": 1}


def test_the_maximum_counts_the_pods_before():
    """A pod behind others that wait for the same group is told the maximum that is enough for all of them."""
    waiting = [pod(name, cpu="4") for name in ("a", "b", "c")]
    found = explained(World(pods=[*waiting, ON_IT], **FULL), "c")
    assert found.way_out is not None
    assert found.way_out.text == "raise max of group g from 1 to 4"
    bought = World(pods=[*waiting, ON_IT], nodes=FULL["nodes"], groups=[group("g", maximum=4, nodes=["n1"])])
    assert bought.increases() == {"g": 3}


@pytest.mark.parametrize(
    ("asked", "change"),
    [
        ({"cpu": "64"}, "add a group like g with a larger machine type: 64 cpu allocatable or more"),
        (
            {"cpu": "4", "spec": {"nodeSelector": {"disk": "ssd"}}},
            "add label disk=ssd to the nodes of group g and raise max of group g from 2 to 4",
        ),
    ],
    ids=["another group", "the group as it is"],
)
def test_a_change_that_helps_others_first_counts_them(asked, change):
    """Where a change lets in more pods than the group has nodes for, the last one is offered it with a maximum for all."""
    groups = [group("g", maximum=2)]
    world = World(pods=[pod(name, **asked) for name in "abcd"], groups=groups)
    found = explained(world, "d")
    assert found.way_out is not None
    assert (found.way_out.text, found.way_out.verified) == (change, True)
    assert (
        explain_equivalent_pods(world.state, [("default", name) for name in "abcd"], world.now).way_out
        == found.way_out
    )


def test_what_no_change_overcomes_is_named():
    """Behind a maximum that can be raised, what then keeps the pod is in the first line and beside the change."""
    world = World(pods=[pod("a", spec=LONELIER), ON_IT], **FULL)
    found = explained(world)
    obstacle = "node(s) didn't match pod affinity rules"
    assert found.sentence.startswith(f"No group takes it, and no change is known that would help: {obstacle}")
    assert found.without_nodes.startswith(f"put this right, which no node does: {obstacle}")
    [explainer] = [one for one in EXPLAINERS if one.kind == "pod"]
    lines = explainer.lines(world, "default/a", world.now, "")
    assert any(
        line.startswith(f"  would help: raise max of group g from 1 to 2 (not enough alone: then {obstacle}")
        for line in lines
    )


def test_an_affinity_that_no_pod_meets_names_the_rule_to_drop():
    """As about the nodes that are there: no new node has the pods that it asks for."""
    found = explained(World(pods=[pod("a", spec=LONELY), ON_IT], **FULL))
    assert found.way_out is not None
    assert (found.way_out.verified, found.way_out.text) == (
        True,
        "raise max of group g from 1 to 2 and drop the required podAffinity over kubernetes.io/hostname",
    )


def test_a_volume_elsewhere_asks_for_a_group_there():
    """A pod whose volume is in a zone without a group is offered a group in that zone."""
    groups = [group("g", made=template(labels={ZONE: "a"}))]
    world = World(pods=[pod("a", **DATA)], groups=groups, volumes=bound_in("c"))
    found = explained(world)
    assert found.way_out is not None
    assert (found.way_out.text, found.way_out.verified) == (
        "add a group like g in zone c, where its volume v1 is",
        True,
    )


def test_a_missing_claim_is_named_once():
    """A claim that is not there is what keeps the pod from every node, and is said once."""
    world = World(pods=[pod("a", **DATA)], groups=[group("g")], volumes=bound_in("c"))
    lost = pod("a", spec={"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "lost"}}]})
    assert world.increases(pods=[lost]) == {}
    found = explain_pod(world.state, ("default", "a"), world.now)
    assert found.groups[0].why == 'persistentvolumeclaim "lost" not found'


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"nodeSelector": {"disk": "ssd"}}, "label disk=ssd"),
        ({"nodeSelector": {ZONE: "c"}}, "zone c"),
        ({"nodeSelector": {"disk": "ssd", ZONE: "c"}}, "label disk=ssd and zone c"),
    ],
)
def test_one_new_group_is_offered_for_all_that_its_nodes_need(spec, what):
    """Where another machine type is needed anyway, labels and the zone are those of the new group."""
    found = explained(World(pods=[pod("a", cpu="64", spec=spec), ON_IT], **FULL))
    assert found.way_out is not None
    assert (found.way_out.text, found.way_out.verified) == (
        f"add a group like g with {what} and a larger machine type: 64 cpu allocatable or more",
        True,
    )


@pytest.mark.parametrize("asked", [False, True], ids=["not asked for events", "asked for events"])
def test_a_full_group_that_would_not_take_the_pod_says_both(asked):
    """Behind the maximum of a group stands what its nodes say to the pod, whatever events of pods name."""
    settings = {"scaleup_simulation_for_skipped_node_groups_enabled": asked}
    world = World(pods=[pod("a", memory="20Gi"), ON_IT], settings=settings, **FULL)
    found = explained(world)
    [verdict] = found.groups
    assert verdict.why == (
        "max node group size reached, and its nodes would not take it either: Insufficient memory (memory: 20Gi requested, "
        "16Gi free of 16Gi allocatable)"
    )
    assert verdict.plugin == "NodeResourcesFit"
    [event] = [one for one in world.events if one.reason == "NotTriggerScaleUp"]
    assert ("max node group size" in event.message) is not asked


def test_a_full_group_that_would_take_the_pod_says_nothing_else():
    """Where the maximum alone keeps the pod, it alone is named."""
    [verdict] = explained(World(pods=[pod("a"), ON_IT], **FULL)).groups
    assert verdict.why == "max node group size reached"


def test_requests_that_a_vpa_sets_are_lowered_there():
    """A request that the admission controller of VPA has set would be set again: the answer names the VPA."""
    said = "Pod resources updated by shop: container 0: cpu request, memory request"
    big = pod("a", memory="20Gi")
    marked = replace(big, metadata=replace(big.metadata, annotations={"vpaUpdates": said}))
    lowered = "lower memory request from 20Gi to <= 16Gi"
    for asked, change in (
        (big, lowered),
        (
            slim_pod(marked),
            f"{lowered}, which VPA shop sets: give it that maxAllowed, no higher minAllowed, and delete the pod",
        ),
    ):
        found = explained(World(pods=[asked], groups=[group("g")]))
        assert found.way_out is not None
        assert found.way_out.text == change


@pytest.mark.parametrize(
    ("limits", "change"),
    [
        ({"own": group("own", maximum=1, nodes=["n1"], made=template(labels={"for": "a"}))}, "raise max of group own from 1 to 2"),
        ({"own": group("own", made=template(labels={"for": "a"})), "settings": {"cores_total": "0:4"}}, "raise --cores-total from 0:4 to 0:8 (group own)"),
    ],
    ids=["maximum", "limit of cores"],
)  # fmt: skip
def test_the_group_that_a_pod_is_for_comes_before_labels_on_others(limits, change):
    """A limit of the group with the label that the pod asks for is lifted before nodes of a cheaper group get the label."""
    own = replace(limits.pop("own"), price_per_hour=0.4)
    cheap = group("cheap", price_per_hour=0.1)
    asked = pod("a", cpu="3", spec={"nodeSelector": {"for": "a"}})
    there = {"pods": [asked, pod("z", cpu="3", node="n1")], "nodes": [node("n1", labels={"for": "a"})]}
    assert explained(World(groups=[cheap, own], **there, **limits)).sentence == (
        f"No group takes it. What would help: {change}."
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, ()),
        ({"cores_total": "0:7"}, ("all nodes have 4 of at most 7 cpu by --cores-total, and one more needs 4",)),
        ({"memory_total": "0:31"}, ("all nodes have 16 of at most 31 GiB of memory by --memory-total, and one more needs 16",)),
        ({"cores_total": "0:8", "memory_total": "0:32", "max_nodes_total": 2}, ()),
        ({"max_nodes_total": 1}, ("1 node of all groups reaches --max-nodes-total=1",)),
    ],
)  # fmt: skip
def test_a_group_that_a_limit_of_all_groups_holds_says_so(settings, said):
    """That limits over all nodes leave no node more is why a group cannot grow, below its own maximum."""
    world = World(nodes=[node("n1")], groups=[group("g", nodes=["n1"]), group("h")], settings=settings)
    world.tick()
    assert [explain_group(world.state, name, world.now).obstacles for name in "gh"] == [said, said]


@pytest.mark.parametrize(
    "asked",
    [
        pod("a", cpu="3"),
        pod("a", cpu="3", spec={"nodeSelector": {"disk": "ssd"}}),
        pod("a", cpu="6"),
        pod("a", cpu="64"),
        pod("a", spec=LONELY),
        pod("a", cpu="3", spec={"tolerations": [{"operator": "Exists"}], "nodeSelector": {"disk": "hdd"}}),
    ],
    ids=["plain", "selector", "larger", "too large", "affinity", "tolerates"],
)
def test_groups_that_are_alike_share_a_way_out_which_is_the_best_of_all(asked):
    """Three like groups at their maximum, one that is dearer, one with a label, one with a taint, one that is larger."""
    taint = {"spec": {"taints": [{"key": "team", "value": "b", "effect": "NoSchedule"}]}}
    made = {
        "a1": template(labels={"pool": "a1"}),
        "a2": template(labels={"pool": "a2"}),
        "a3": template(labels={"pool": "a3"}),
        "dear": template(labels={"pool": "dear"}),
        "fast": template(labels={"disk": "ssd"}),
        "tainted": template(labels={"disk": "hdd"}, **taint),
        "large": template(cpu="8"),
    }
    nodes = [node(f"{name}-n", cpu="8" if name == "large" else "4") for name in made]
    groups = [
        group(name, maximum=1, made=one, nodes=[f"{name}-n"], price_per_hour=0.9 if name == "dear" else 0.1)
        for name, one in made.items()
    ]
    full = [pod(f"on-{name}", cpu="8" if name == "large" else "4", node=f"{name}-n") for name in made]
    world = World(groups=groups, nodes=nodes, pods=[*full, asked])
    shared = explain_equivalent_pods(world.state, [("default", "a")], world.now)
    each = explained(world)
    assert (shared.way_out, shared.sentence) == (each.way_out, each.sentence)
    assert {one.group: one.why for one in shared.groups} == {one.group: one.why for one in each.groups}


@pytest.mark.parametrize("names", ["abcdef", "fedcba", "afafcc"])
def test_pods_that_are_explained_together_get_the_answers_that_they_get_alone(names):
    """What was supposed for one pod is forgotten before the next: its requests, labels, limits, machines and DaemonSets."""
    asked = {
        "a": pod("a", cpu="6"),
        "b": pod("b", spec={"nodeSelector": {"disk": "ssd"}}),
        "c": pod("c", cpu="3"),
        "d": pod("d", cpu="64"),
        "e": pod("e", spec=LONELY),
        "f": pod("f"),
    }
    tainted = template(taints=[{"key": "team", "value": "x", "effect": "NoSchedule"}])
    world = World(
        pods=[*asked.values(), ON_IT],
        nodes=[node("n1")],
        groups=[group("g", maximum=1, nodes=["n1"]), group("h", made=tainted)],
        daemon_sets=[daemon_set("agent", cpu="2")],
    )
    before = export_state(world.state)
    shared_copy = CopyOnDemand(world.state, world.now)
    for name in names:
        key = ("default", name)
        together = explain_pod(world.state, key, world.now, shared_copy=shared_copy)
        assert together == explain_pod(world.state, key, world.now)
    assert export_state(world.state) == before


def test_a_copy_has_the_same_objects_and_a_memory_of_its_own():
    """Objects never change, so a copy of a large cluster takes no second place for them."""
    world = World(pods=[ON_IT], nodes=[node("n1")], groups=[group("g", nodes=["n1"])])
    world.tick()
    copy = copy_state(world.state)
    assert export_state(copy) == export_state(world.state)
    assert copy.pods["default", "z"] is world.state.pods["default", "z"]
    assert copy.memory == world.state.memory
    assert copy.memory is not world.state.memory
