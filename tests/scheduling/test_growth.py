"""How the work of verdicts and estimates grows with pods and node groups."""

from __future__ import annotations

import pytest
from tests.scheduling.plain import make_node, make_pod
from tests.work import calls_of

from kubetide.objects.node import Taint
from kubetide.objects.pod import Toleration
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
    run_to_end(estimator.estimate(template, (), [0], Limits((10,))))
    found = []
    calls = calls_of(lambda: found.append(run_to_end(estimator.estimate(template, (), [0], Limits((10,))))))
    assert (found[0].nodes, [len(pods) for pods in found[0].scheduled]) == (1, [1])
    return calls


def test_an_estimate_for_one_pod_asks_nothing_about_the_others():
    """The work for the pods that a node group takes is the same, however many pods other groups are for."""
    few, many = calls_of_an_estimate(10), calls_of_an_estimate(200)
    assert many < few + 10


def tainted(nodes):
    """Return a snapshot in which every node but the first has taints of its own."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n-0"))
    for number in range(1, nodes):
        taints = [Taint(key=f"team-{number}", value="a", effect="NoSchedule")]
        if number % 2:
            taints.append(Taint(key="spot", effect="NoExecute"))
        snapshot.set_node(make_node(f"n-{number}", taints=taints))
    return snapshot


@pytest.mark.parametrize(
    ("tolerations", "nodes"),
    [
        ((), ["n-0"]),
        ((Toleration(key="team-2", value="a"),), ["n-0", "n-2"]),
        ((Toleration(key="team-2", value="b"), Toleration(key="spot")), ["n-0"]),
        ((Toleration(key="team-3", operator="Exists"),), ["n-0"]),
        ((Toleration(key="team-3", operator="Exists"), Toleration(key="spot")), ["n-0", "n-3"]),
        ((Toleration(operator="Exists", effect="NoSchedule"),), ["n-0", "n-2", "n-4"]),
        ((Toleration(operator="Exists"),), ["n-0", "n-1", "n-2", "n-3", "n-4", "n-5"]),
    ],
)
def test_tolerations_find_the_nodes_that_they_tolerate(tolerations, nodes):
    """All taints must be tolerated: by key and value, by any value, by any key."""
    snapshot = tainted(6)
    passes = snapshot.feasible(classify(make_pod(tolerations=tolerations)))
    assert [name for name, takes in zip(snapshot.node_names, passes, strict=True) if takes] == nodes


def test_pods_are_not_compared_with_taints_that_they_cannot_tolerate():
    """With ten times as many nodes, each with a taint of its own, a pod's verdict takes the same work."""
    pod_class = classify(make_pod(tolerations=(Toleration(key="team-2", value="a"),)))
    calls = []
    for nodes in (20, 200):
        snapshot = tainted(nodes)
        calls.append(calls_of(lambda snapshot=snapshot: snapshot.feasible(pod_class)))
    assert calls[1] < calls[0] + 10
