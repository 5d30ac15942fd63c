"""Ways out of a node that stays: tried by deciding about its removal again."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import World, convert, group, node, pod, replica_set
from tests.nodes.requests import TEMPLATES, provisioned, request
from tests.nodes.requests import world as with_requests

from kubetide.nodes.explain.explainers import EXPLAINERS
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.testing import builders
from kubetide.units.time import minutes

VERIFIED = "(verified by deciding again)"


def said(world, name):
    """Return the lines on the way out and the price, as printed."""
    (explainer,) = [one for one in EXPLAINERS if one.kind == "node"]
    lines = explainer.lines(world, name, world.now, "")
    return [line for line in lines if line.startswith(("way out:", "saves:", "costs:"))]


def small(*pods, nodes=("n1", "n2"), minimum=0, **objects):
    """Return a world after a tick, of nodes with 4 CPUs in one group."""
    known = [one if not isinstance(one, str) else node(one) for one in nodes]
    names = [one.metadata.name for one in known]
    owned = group("g", minimum=minimum, nodes=names, price_per_hour=0.25)
    world = World(nodes=known, pods=pods, groups=[owned], replica_sets=(replica_set("web", 9),), **objects)
    world.tick()
    return world


def budget(name="web"):
    made = builders.pdb(name, {"app": name}, namespace="default", max_unavailable=0)
    return convert(made, PodDisruptionBudget)


def bare(name, **more):
    return pod(name, kind=None, node="n1", **more)


def filler(**more):
    """Return a pod that leaves n2 no more than 1 CPU."""
    return pod("full", node="n2", cpu="3", **more)


LOCAL = {"spec": {"volumes": [{"name": "data", "emptyDir": {}}]}}


@pytest.mark.parametrize(
    ("pods", "then"),
    [
        ([bare("a"), filler()], VERIFIED),
        (
            [bare("a", cpu="1500m"), filler()],
            "then pod default/a fits on none of the 1 other nodes: 1 Insufficient cpu",
        ),
        (
            [bare("a"), bare("b"), filler()],
            "then pod default/b: NotReplicated, the pod has no controller",
        ),
        (
            [bare("a", **LOCAL), filler()],
            "then pod default/a: LocalStorageRequested, volume data is an emptyDir",
        ),
        ([pod(name, node="n1", **LOCAL) for name in "ab"] + [filler()], VERIFIED),
    ],
    ids=["goes", "no place", "another pod", "another rule", "pods of the same controller"],
)
def test_the_way_out_of_a_node_that_a_pod_keeps_was_tried(pods, then):
    """The node that would go saves its price; where something else keeps it that is named, and nothing is saved."""
    way_out, price = said(small(*pods), "n1")
    assert then in way_out
    assert ("not enough alone" in way_out) == (then != VERIFIED)
    assert price == ("saves: 0.25 an hour when it goes" if then == VERIFIED else "costs: 0.25 an hour")


def test_a_larger_budget_lets_all_pods_of_the_node_go_one_after_another():
    """A node goes with several pods of one budget, as soon as that allows one of them to go."""
    pods = [pod("a", node="n1"), pod("b", node="n1"), filler(of="db")]
    way_out, price = said(small(*pods, pdbs=(budget(),)), "n1")
    assert way_out == f"way out: let its PodDisruptionBudget allow one pod more to go {VERIFIED}"
    assert price.startswith("saves")


def test_places_that_nodes_on_their_way_out_need_are_taken():
    """What is unneeded already goes first: its pods have the last place, or its group is at its minimum then."""
    third = node("n3")
    moving = pod("moves", node="n3", cpu="1")
    way_out, price = said(small(bare("a"), filler(), moving, nodes=("n1", "n2", third)), "n1")
    assert (
        "then pod default/a fits on none of the 1 other nodes: 1 Insufficient cpu; n3 is not counted"
        in way_out
    )
    assert price.startswith("costs")
    way_out, _ = said(small(bare("a"), filler(), nodes=("n1", "n2", third), minimum=2), "n1")
    assert "then group g is at its minimum of 2, as other nodes of it go" in way_out


def test_an_annotation_of_the_node_may_not_be_all_that_keeps_it():
    """Without it the node's utilization counts, and the rules on its pods."""
    off = {"metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}}
    excluded = node("n1", **off)
    way_out, _ = said(small(pod("busy", node="n1", cpu="3"), filler(), nodes=(excluded, "n2")), "n1")
    assert "then NotUnderutilized, cpu utilization 0.75 is above the threshold 0.5" in way_out
    way_out, _ = said(small(bare("a"), filler(), nodes=(excluded, "n2")), "n1")
    assert "then pod default/a: NotReplicated, " in way_out


def test_a_node_that_is_busy_saves_nothing():
    """Nobody has said what would let it go."""
    assert said(small(filler()), "n2") == ["costs: 0.25 an hour"]


def test_a_request_that_is_deleted_frees_its_node():
    """The pods that stand for the request's capacity are gone with it."""
    booked = request("train", ("small", 1), conditions=[provisioned(minutes(1))])
    held = with_requests(requests=[booked], templates=TEMPLATES, nodes=("n1", "n2"))
    held.tick()
    assert said(held, "n2")[0] == f"way out: delete that request if its pods are not to come {VERIFIED}"


def test_the_question_changes_nothing():
    """A world that was asked decides on as one that was not."""
    asked, other = (small(bare("a"), pod("b", node="n1"), filler(), pdbs=(budget(),)) for _ in range(2))
    said(asked, "n1")
    assert asked.state.snapshot.version == other.state.snapshot.version
    assert [asked.tick(at=minutes(11)), asked.status] == [other.tick(at=minutes(11)), other.status]
