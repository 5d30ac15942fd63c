"""What is said of nodes that do not report any more, and of the pods on them."""

from __future__ import annotations

from tests.nodes.frozen import World, group, node, pod, replica_set

from kubetide.nodes.explain.answers import explain_node, explain_pod
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.explain.overview import OVERVIEW

LOST = {"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-03-02T07:30:00Z"}
DELETED = {"metadata": {"deletionTimestamp": "2026-03-02T07:35:30Z"}}


def test_a_node_that_is_not_ready_says_so_wherever_it_is_named():
    """The node, its pods and its group have since when and why; the page of status counts it."""
    world = World(
        nodes=[node("n1", status={"conditions": [LOST]}), node("n2")],
        pods=[pod("a", node="n1"), pod("b", node="n2")],
        groups=[group("g", nodes=["n1", "n2"])],
        replica_sets=(replica_set("web", 2),),
    )
    world.tick()
    why = "since 2026-03-02T07:30:00Z: its kubelet does not report any more"
    assert explain_node(world.state, "n1", world.now).unready == why
    assert explain_node(world.state, "n2", world.now).unready == ""
    assert explain_pod(world.state, ("default", "a"), world.now).sentence == (
        f"It is on node n1, which is not ready {why}."
    )
    assert explain_pod(world.state, ("default", "b"), world.now).sentence == "It is on node n2."
    assert explain_group(world.state, "g", world.now).unready == (f"node n1 {why}",)
    groups = OVERVIEW.tables(world, world.now)[0]
    assert [dict(zip(groups.columns, row, strict=True))["state"] for row in groups.rows] == ["1 not ready"]


def test_a_pod_that_stays_on_a_lost_node_says_when_it_goes():
    """It is to be deleted, but only its kubelet, or the end of its node, ends it; a StatefulSet waits for that."""
    world = World(
        nodes=[node("n1", status={"conditions": [LOST]}), node("n2")],
        pods=[
            pod("db-0", node="n1", of="db", kind="StatefulSet", **DELETED),
            pod("a", node="n1", **DELETED),
            pod("b", node="n2", **DELETED),
            pod("c", node="n3", **DELETED),
        ],
        groups=[group("g", nodes=["n1", "n2"])],
    )
    world.tick()
    told = {
        name: explain_pod(world.state, ("default", name), world.now).sentence
        for name in ("db-0", "a", "b", "c")
    }
    why = "which is not ready since 2026-03-02T07:30:00Z: its kubelet does not report any more"
    due = "It was to end by 2026-03-02T07:35:30Z, and goes once"
    goes = f"{due} its node is back or removed"
    assert told == {
        "db-0": f"It is on node n1, {why}. {goes}; its StatefulSet makes it again only then.",
        "a": f"It is on node n1, {why}. {goes}.",
        "b": "It is on node n2. It is being deleted, and has until 2026-03-02T07:35:30Z to end.",
        "c": f"It is on node n3, which is gone. {due} the pod garbage collector sees that.",
    }


def test_a_stateful_set_that_waits_for_the_end_of_a_pod_is_named():
    """No pod waits for a node then, yet one is missing until its lost node is back or removed."""
    world = World(
        nodes=[node("n1", status={"conditions": [LOST]}), node("n2")],
        pods=[
            pod("db-0", node="n1", of="db", kind="StatefulSet", **DELETED),
            pod("db-1", node="n2", of="db", kind="StatefulSet", **DELETED),
            pod("web-a", node="n1", **DELETED),
        ],
        groups=[group("g", nodes=["n1", "n2"])],
    )
    world.tick()
    (said,) = [table.sentence for table in OVERVIEW.tables(world, world.now) if table.sentence]
    assert said.startswith(
        "1 pod of StatefulSets should have ended, but the node is lost: default/db-0 on node n1. "
    )
    assert said.endswith("only once the node is back or removed: delete the node if its machine is off.")
