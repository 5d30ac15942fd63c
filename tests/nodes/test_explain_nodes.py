"""Explanations of nodes: why one stays, what that costs, and when it goes."""

from __future__ import annotations

from tests.nodes.frozen import START, World, convert, deployment, group, node, pod, replica_set

from kubetide.nodes.explain.answers import explain_node
from kubetide.nodes.explain.explainers import EXPLAINERS
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.testing import builders
from kubetide.units.time import minutes


def test_node_says_why_it_stays():
    """A node that a pod blocks names the pod and the rule."""
    bare = pod("lonely", node="n1", kind=None)
    world = World(
        nodes=[node("n1"), node("n2")],
        pods=[bare],
        groups=[group("g", nodes=["n1", "n2"])],
        deployments=(deployment("web", 1),),
    )
    world.tick()
    found = explain_node(world.state, "n1", world.now)
    assert (found.reason, found.blocking_pod, found.blocking_reason) == (
        "BlockedByPod",
        "default/lonely",
        "NotReplicated",
    )
    assert explain_node(world.state, "n2", world.now).status == "unneeded"


def test_a_node_says_when_it_goes_and_what_that_saves():
    """A blocked node has the way out and the price of its group; an unneeded one the time from which it may go."""
    world = World(
        nodes=[node("n1"), node("n2"), node("n3")],
        pods=[pod("lonely", node="n1", kind=None), pod("busy", node="n3", cpu="3")],
        groups=[group("g", nodes=["n1", "n2", "n3"], price_per_hour=0.25)],
        replica_sets=(replica_set("web", 1),),
    )
    world.tick()
    blocked, unneeded, busy = (explain_node(world.state, name, world.now) for name in ("n1", "n2", "n3"))
    assert blocked.price_per_hour == 0.25
    assert blocked.way_out.startswith("let a Deployment or a Job make the pod")
    assert blocked.goes == (
        "when that pod no longer keeps it and its pods fit on other nodes, and it has then been unneeded for 10m0s"
    )
    assert unneeded.way_out == ""
    assert (
        unneeded.goes
        == "from 2026-03-02T08:10:00Z on, if it stays unneeded and nothing else holds scale-down"
    )
    assert busy.reason == "NotUnderutilized"
    assert busy.goes == "when its utilization has been below the threshold for 10m0s"


def test_a_node_that_its_minimum_keeps_is_only_said_to_cost():
    """A node that cannot go saves nothing when it goes."""
    [explainer] = [one for one in EXPLAINERS if one.kind == "node"]
    for minimum, price in ((1, "costs: 0.25 an hour"), (0, "saves: 0.25 an hour when it goes")):
        owned = group("g", minimum=minimum, nodes=["n1"], price_per_hour=0.25)
        world = World(nodes=[node("n1")], groups=[owned])
        world.tick()
        assert explainer.lines(world, "n1", world.now, "")[-1] == price


def test_a_node_that_is_not_simulated_again_still_names_the_pod():
    """Between two simulations the last verdict is valid: the pod, the rule and the way out."""
    budget = convert(
        builders.pdb("web", {"app": "web"}, namespace="default", max_unavailable=0), PodDisruptionBudget
    )
    world = World(
        nodes=[node("n1"), node("n2")],
        pods=[pod("a", node="n1")],
        groups=[group("g", nodes=["n1", "n2"])],
        replica_sets=(replica_set("web", 1),),
        pdbs=(budget,),
    )
    for minute in (0, 1):
        world.tick(at=minutes(minute))
        found = explain_node(world.state, "n1", world.now)
        assert (found.blocking_pod, found.blocking_reason) == ("default/a", "NotEnoughPdb")
        assert found.way_out == "let its PodDisruptionBudget allow one pod more to go"
    assert found.reason == "RecentlyUnremovable"
    assert found.goes == (
        "when that pod no longer keeps it and its pods fit on other nodes (looked at again from 2026-03-02T08:05:00Z on), "
        "and it has then been unneeded "
        "for 10m0s"
    )


def test_a_node_whose_pods_fit_nowhere_says_when_it_is_looked_at_again():
    """Between two simulations the time of the next one is known, and what must have changed by then."""
    world = World(
        nodes=[node("n1"), node("n2", cpu="1")],
        pods=[pod("a", node="n1", cpu="1500m"), pod("b", node="n2", cpu="900m")],
        groups=[group("g", nodes=["n1", "n2"])],
        replica_sets=(replica_set("web", 2),),
    )
    world.tick()
    assert explain_node(world.state, "n1", world.now).goes == (
        "when its pods fit on other nodes, and it has then been unneeded for 10m0s"
    )
    world.tick(at=minutes(1))
    assert explain_node(world.state, "n1", world.now).goes == (
        "when its pods fit on other nodes (looked at again from 2026-03-02T08:05:00Z on), and it has then been unneeded "
        "for 10m0s"
    )


def test_a_node_on_its_way_out_says_so():
    """A node whose deletion the cloud has accepted is being deleted, also when its group is at its minimum by then."""
    taint = {
        "key": "ToBeDeletedByClusterAutoscaler",
        "value": str(START // 10**9),
        "effect": "NoSchedule",
    }
    world = World(
        nodes=[node("n1", spec={"taints": [taint]}), node("n2")],
        groups=[group("g", minimum=1, nodes=["n2"])],
    )
    world.tick()
    found = explain_node(world.state, "n1", world.now)
    assert (found.status, found.since) == ("deleting", START)
    assert "tainted for it since 2026-03-02T08:00:00Z" in found.sentence


def _lines(kind: str, world: World, name: str) -> list[str]:
    [explainer] = [one for one in EXPLAINERS if one.kind == kind]
    return explainer.lines(world, name, world.now, "")


def test_a_node_says_what_runs_on_it():
    """Its pods are named, those of DaemonSets last, and what they request of what it offers stands beside them."""
    world = World(
        nodes=[node("n1"), node("n2")],
        pods=[
            pod("agent", node="n1", kind="DaemonSet", cpu="100m"),
            pod("b", node="n1", cpu="1500m"),
            pod("a", node="n1", cpu="900m"),
            pod("pending", cpu="3"),  # would go to n2, and does not run there yet
        ],
        groups=[group("g", nodes=["n1", "n2"])],
    )
    world.tick()
    lines = _lines("node", world, "n1")
    assert "runs: 3 pods, 1 of DaemonSets: default/a, default/b, default/agent" in lines
    assert any(one.startswith("requested: cpu 2500m of 4, ") for one in lines)
    assert "runs: no pods" in _lines("node", world, "n2")


def test_a_group_says_what_it_is_made_of():
    """The page of a group has its nodes, their zones, and what they cost."""
    zones = {"n1": "a", "n2": "b", "n3": "b"}
    world = World(
        nodes=[node(name, labels={"topology.kubernetes.io/zone": zone}) for name, zone in zones.items()],
        groups=[group("g", nodes=list(zones), price_per_hour=0.25)],
    )
    world.tick()
    lines = _lines("nodegroup", world, "g")
    assert lines[1:4] == [
        "nodes: n1, n2, n3",
        "zones: a (1 node), b (2 nodes)",
        "price: 0.25 an hour for a node, 0.75 for all 3",
    ]
