"""Each node's verdict on a pod, with its numbers, and the smallest change that would make the pod fit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.nodes.frozen import World, node, pod, pods
from tests.nodes.test_inter_pod_rules import ZONE, apart, near, spread

from kubetide.nodes.explain.waiting.node_fit import explain_on_nodes
from kubetide.nodes.explain.waiting.node_lines import node_lines
from kubetide.objects.node import Taint
from kubetide.scheduling import Snapshot, classify_unbound

ZONE_A, ZONE_B = {ZONE: "a"}, {ZONE: "b"}


def asked(nodes, there, waiting):
    world = World(nodes=nodes, pods=[*there, waiting])
    return explain_on_nodes(world.state, ("default", waiting.metadata.name))


def one_node(made, there=(), waiting=None):
    found = asked([made], there, pod("a") if waiting is None else waiting)
    assert len(found.verdicts) == 1
    return found.verdicts[0]


def tainted(name, key, value):
    made = node(name)
    return replace(made, spec=replace(made.spec, taints=(Taint(key=key, value=value, effect="NoSchedule"),)))


def cordoned(name):
    made = node(name)
    return replace(made, spec=replace(made.spec, unschedulable=True))


PORT = {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]}}


@pytest.mark.parametrize(
    ("made", "there", "waiting", "why", "way_out"),
    [
        pytest.param(
            node("n", cpu="4"),
            pods("b", 1, cpu="2500m", node="n"),
            pod("a", cpu="2"),
            "Insufficient cpu (cpu: 2 requested, 1500m free of 4 allocatable)",
            "lower cpu request from 2 to <= 1500m",
            id="cpu",
        ),
        pytest.param(
            tainted("n", "gpu", "yes"),
            [],
            pod("a"),
            "node(s) had untolerated taint(s) (gpu=yes:NoSchedule)",
            "tolerate taint gpu=yes:NoSchedule",
            id="taint",
        ),
        pytest.param(
            node("n"),
            [],
            pod("a", spec={"nodeSelector": {"disk": "ssd"}}),
            "node(s) didn't match Pod's node affinity/selector (disk=ssd is asked for, the node has no such label)",
            "add label disk=ssd to the node",
            id="label",
        ),
        pytest.param(
            cordoned("n"),
            [],
            pod("a"),
            "node(s) were unschedulable (spec.unschedulable)",
            "uncordon the node",
            id="cordon",
        ),
        pytest.param(
            tainted("n", "gpu", "yes"),
            [],
            pod("a", cpu="6", spec={"nodeSelector": {"disk": "ssd"}}),
            "node(s) had untolerated taint(s) (gpu=yes:NoSchedule)",
            "tolerate taint gpu=yes:NoSchedule and add label disk=ssd to the node and lower cpu request from 6 to <= 4",
            id="three things",
        ),
        pytest.param(
            node("n"),
            pods("b", 1, node="n"),
            pod("a", **apart()),
            "node(s) didn't match pod anti-affinity rules",
            "drop the required podAntiAffinity over kubernetes.io/hostname",
            id="apart",
        ),
        pytest.param(
            node("n", labels=ZONE_A),
            [],
            pod("a", of="x", **near("web")),
            "node(s) didn't match pod affinity rules",
            "drop the required podAffinity over topology.kubernetes.io/zone",
            id="near",
        ),
    ],
)
def test_the_first_refusal_and_the_smallest_change(made, there, waiting, why, way_out):
    """The first filter's words with its numbers, and what has been verified to help."""
    verdict = one_node(made, there, waiting)
    assert verdict.why.startswith(why)
    assert verdict.way_out == way_out
    assert verdict.verified


def test_a_wider_skew_is_less_than_no_rule():
    """Two pods too many in a zone: the skew that would do is named, not that the rule must go."""
    nodes = [node("n1", labels=ZONE_A), node("n2", labels=ZONE_B, cpu="50m")]
    there = pods("b", 3, node="n1", **spread(ZONE))
    found = asked(nodes, there, pod("a", **spread(ZONE)))
    by_node = {one.nodes[0]: one for one in found.verdicts}
    assert by_node["n1"].way_out == f"raise maxSkew over {ZONE} from 1 to 4"
    assert by_node["n1"].verified
    assert by_node["n2"].way_out == "lower cpu request from 100m to <= 50m"


def test_no_change_of_the_pod_helps_against_other_pods():
    """Where another pod excludes the pod, no change of this pod is offered as help."""
    verdict = one_node(node("n"), pods("b", 1, of="x", node="n", **apart()), pod("a", of="web"))
    assert verdict.plugin == "InterPodAffinity"
    assert verdict.changes == ()
    assert not verdict.verified


def test_a_host_port_that_is_taken():
    """The port is named."""
    verdict = one_node(node("n"), [pod("b", node="n", **PORT)], pod("a", of="x", **PORT))
    assert verdict.way_out == "do without host port 80/TCP"
    assert verdict.verified


def test_nodes_that_say_the_same_are_reported_together_and_the_nearest_first():
    """Takers come first, then those that need least; equal verdicts are one line."""
    nodes = [node("n1"), tainted("n2", "a", "b"), tainted("n3", "a", "b"), node("n4", cpu="1")]
    found = asked(nodes, [], pod("x", cpu="2"))
    assert [one.nodes for one in found.verdicts] == [("n1",), ("n2", "n3"), ("n4",)]
    assert node_lines(found) == [
        "1 of 4 nodes would take it as they are.",
        "node n1: yes",
        "2 nodes: n2, n3: no, node(s) had untolerated taint(s) (a=b:NoSchedule)",
        "  would help: tolerate taint a=b:NoSchedule (verified by asking the filters again)",
        "node n4: no, Insufficient cpu (cpu: 2 requested, 1 free of 1 allocatable)",
        "  would help: lower cpu request from 2 to <= 1 (verified by asking the filters again)",
    ]


def test_what_remains_after_a_change_is_named():
    """A cordoned node without free CPU is not to be uncordoned for the pod."""
    found = asked([cordoned("n")], pods("b", 1, cpu="4", node="n"), pod("a", cpu="1"))
    assert found.verdicts[0].remaining == "Insufficient cpu"
    assert node_lines(found)[2:] == [
        "  would help: uncordon the node (not enough alone: then Insufficient cpu)"
    ]


def test_a_pod_that_has_a_node_is_asked_about_as_if_it_had_none():
    """Its own node would take it again."""
    found = asked([node("n1"), node("n2", cpu="1")], [], pod("a", cpu="3", node="n1"))
    assert found.sentence == "It is on node n1. 1 of 2 nodes would take it as they are."
    assert found.verdicts[0].nodes == ("n1",)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 8), st.integers(0, 3), st.booleans()), min_size=1, max_size=5),
    cpu=st.integers(1, 90),
    selector=st.booleans(),
)
def test_the_verdicts_are_those_of_the_filters(sizes, cpu, selector):
    """A node takes the pod exactly where the filters pass it, every node is reported once, and the state is unchanged."""
    nodes, there = [], []
    for at, (cores, taken, off) in enumerate(sizes):
        made = node(f"n{at}", cpu=str(cores), labels={"disk": "ssd"} if at % 2 else None)
        nodes.append(replace(made, spec=replace(made.spec, unschedulable=off)))
        there += pods(f"t{at}", taken, cpu="400m", node=f"n{at}", of="t")
    waiting = pod("a", cpu=f"{cpu}00m", **({"spec": {"nodeSelector": {"disk": "ssd"}}} if selector else {}))
    found = asked(nodes, there, waiting)
    assert sorted(name for one in found.verdicts for name in one.nodes) == sorted(
        f"n{at}" for at in range(len(sizes))
    )
    snapshot = Snapshot()
    for one in nodes:
        snapshot.set_node(one)
    for one in there:
        snapshot.add_pod(one, one.spec.node_name)
    for verdict in found.verdicts:
        for name in verdict.nodes:
            assert snapshot.fits(classify_unbound(waiting), name) == verdict.takes
