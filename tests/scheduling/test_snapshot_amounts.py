"""Amounts in a snapshot: beyond int64, unreadable, and as a refusal names them."""

from __future__ import annotations

from tests.scheduling.plain import make_node, make_pod

from kubetide.objects.node import Taint
from kubetide.objects.pod import Toleration
from kubetide.scheduling import Snapshot, classify


def test_amounts_wrap_as_int64():
    """Sums beyond int64 wrap instead of failing, as they do upstream."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0", memory=str(2**63 - 1)))
    for index in range(3):
        snapshot.add_pod(make_pod(f"p{index}", {"memory": str(2**62)}), "n0")
    taken = 3 * 2**62 - 2**64
    assert snapshot.requested["memory"].tolist() == [taken]
    for index in range(3):
        snapshot.remove_pod(("default", f"p{index}"))
    assert snapshot.free["memory"].tolist() == [2**63 - 1]


def test_a_request_beyond_int64_takes_nothing():
    """A pod that requests 16E counts as one that requests nothing, and does not add to what is free."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0", memory="1Gi"))
    snapshot.add_pod(make_pod("vast", {"memory": "16E"}), "n0")
    assert snapshot.requested["memory"].tolist() == [0]
    assert not snapshot.fits(classify(make_pod("q", {"memory": "2Gi"})), "n0")


def test_a_refusal_has_numbers_and_what_refused():
    """A refusal carries the amounts, or the taint or label that refused."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("full", labels={"zone": "a"}))
    snapshot.set_node(make_node("tainted", taints=[Taint(key="gpu", value="yes", effect="NoSchedule")]))
    snapshot.add_pod(make_pod("p", {"cpu": "3500m"}), "full")
    incoming = classify(make_pod("q", {"cpu": "1"}, node_selector={"zone": "a"}))
    short = snapshot.first_refusal(incoming, "full")
    assert short.code == "Unschedulable"
    assert [(n.resource, n.requested, n.free, n.allocatable) for n in short.numbers] == [
        ("cpu", 1000, 500, 4000)
    ]
    assert snapshot.first_refusal(incoming, "tainted").detail == "gpu=yes:NoSchedule"
    tolerant = make_pod(
        "q", {"cpu": "1"}, node_selector={"zone": "a"}, tolerations=(Toleration(operator="Exists"),)
    )
    refused = snapshot.first_refusal(classify(tolerant), "tainted")
    assert refused.detail == "zone=a is asked for, the node has no such label"


def test_a_pod_with_an_unreadable_amount_fits_nowhere():
    """A request that is no quantity refuses the pod everywhere, says so, and raises nothing."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0"))
    bad = make_pod("bad", {"cpu": "lots"})
    pod_class = classify(bad)
    assert not snapshot.feasible(pod_class).any()
    refusal = snapshot.first_refusal(pod_class, "n0")
    assert refusal.code == "Error"
    assert '"lots" is not a quantity' in refusal.detail
    snapshot.add_pod(bad, "n0")
    assert snapshot.free["pods"].tolist() == [9]


def test_an_unreadable_allocatable_counts_as_none():
    """A node whose memory cannot be read takes no pod that requests memory."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0", memory="much"))
    assert not snapshot.feasible(classify(make_pod(requests={"memory": "1"}))).any()
    assert snapshot.feasible(classify(make_pod(requests={"cpu": "1"}))).all()
