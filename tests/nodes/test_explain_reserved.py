"""What is said of nodes whose capacity is reserved: booked for a ProvisioningRequest, or kept free by a CapacityBuffer."""

from __future__ import annotations

from tests.nodes.frozen import pod
from tests.nodes.requests import TEMPLATES, buffer, provisioned, request, world

from kubetide.nodes.explain.answers import explain_node
from kubetide.nodes.explain.explainers import EXPLAINERS
from kubetide.nodes.explain.overview import OVERVIEW
from kubetide.units.time import minutes, seconds


def lines_of(held, name):
    """Return the answer about a node as it is printed."""
    (explainer,) = [one for one in EXPLAINERS if one.kind == "node"]
    return explainer.lines(held, name, held.now, "")


def test_a_node_that_a_booking_keeps_names_the_request():
    """The pod that blocks it exists only in the plan: nobody finds it, or can annotate it."""
    booked = request("train", ("small", 1), conditions=[provisioned(minutes(1))])
    held = world(requests=[booked], templates=TEMPLATES, nodes=("n1", "n2"))
    held.tick()
    text = "apacity on it is booked for ProvisioningRequest default/train until 2026-03-02T08:09:00Z"
    found = explain_node(held.state, "n2", held.now)
    assert found.sentence == f"It stays: BlockedByPod. C{text}."
    assert found.way_out == "delete that request if its pods are not to come"
    assert (
        found.goes
        == "when that booking is over and its pods fit on other nodes, and it has then been unneeded for 10m0s"
    )
    assert "reserved: for 1 pod of ProvisioningRequest default/train, which count as used" in lines_of(
        held, "n2"
    )
    table = next(
        one for one in OVERVIEW.tables(held, held.now) if one.title == "nodes that go or are blocked"
    )
    assert ("n2", "g", "blocked", f"c{text}", None) in table.rows
    held.tick(at=seconds(20))
    assert explain_node(held.state, "n2", held.now).sentence == f"It stays: RecentlyUnremovable. C{text}."


def test_a_booking_whose_name_a_pod_has_is_named_all_the_same():
    """The plan calls it otherwise then, and the pod itself is not blamed."""
    booked = request("train", ("small", 1), conditions=[provisioned(minutes(1))])
    held = world(requests=[booked], templates=TEMPLATES, pods=[pod("train-0-0", node="n1", cpu="100m")])
    held.tick()
    assert explain_node(held.state, "n1", held.now).reserved == "1 pod of ProvisioningRequest default/train"


def test_a_node_names_the_buffer_that_fills_it():
    """Its utilization is that of placeholders, which no list of pods shows."""
    spare = buffer("spare", podTemplateRef={"name": "small"}, replicas=3)
    held = world(buffers=[spare], templates=TEMPLATES)
    held.tick()
    assert lines_of(held, "n1")[0].startswith("It stays: NotUnderutilized. cpu utilization 0.75")
    assert "reserved: for 3 pods of CapacityBuffer default/spare, which count as used" in lines_of(held, "n1")
