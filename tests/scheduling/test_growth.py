"""How the work of verdicts and estimates grows with pods and node groups."""

from __future__ import annotations

import sys

from tests.scheduling.plain import make_node, make_pod

from kubetide.scheduling import Limits, Snapshot, classify, equivalence_groups
from kubetide.scheduling.estimator.packing import Estimator, run_to_end


def test_nodes_that_refuse_for_the_same_reason_share_the_answer():
    """Hundreds of node groups that lack a label hold one answer, the same as each gives by itself."""
    snapshot = Snapshot()
    for number in range(9):
        labels = {"disk": "ssd"} if number == 4 else {}
        snapshot.set_node(make_node(f"n-{number}", labels=labels, cpu="4", memory="8Gi", pods="10"))
    pod_class = classify(make_pod(requests={"cpu": "1"}, node_selector={"disk": "ssd"}))
    found = snapshot.first_refusals(pod_class, range(9))
    assert sorted(found) == [0, 1, 2, 3, 5, 6, 7, 8]
    assert len(set(map(id, found.values()))) == 1
    assert all(found[row] == snapshot.first_refusal(pod_class, f"n-{row}") for row in found)


def calls_of_an_estimate(others):
    """Return how many Python functions the second estimate of one pod beside so many others calls."""
    snapshot = Snapshot()
    pods = [
        make_pod(f"p-{at}", {"cpu": "1"}, node_selector={"pool": f"pool-{at}"}) for at in range(others + 1)
    ]
    estimator = Estimator(snapshot, equivalence_groups(pods))
    template = make_node("t", labels={"pool": "pool-0"}, cpu="4", memory="8Gi", pods="10")
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    run_to_end(estimator.estimate(template, (), [0], Limits((10,))))
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = run_to_end(estimator.estimate(template, (), [0], Limits((10,))))
    finally:
        sys.setprofile(before)
    assert (found.nodes, [len(pods) for pods in found.scheduled]) == (1, [1])
    return calls


def test_an_estimate_for_one_pod_asks_nothing_about_the_others():
    """The work for the pods that a node group takes is the same, however many pods other groups are for."""
    few, many = calls_of_an_estimate(10), calls_of_an_estimate(200)
    assert many < few + 10
