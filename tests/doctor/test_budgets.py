"""What the doctor says of budgets that can never be met: fixes that work, and pods of two budgets."""

from __future__ import annotations

import msgspec
import pytest
from tests.doctor.findings import found, hpa, pdb
from tests.nodes.frozen import deployment, pod

from kubetide.objects.policy import PodDisruptionBudget
from kubetide.testing import builders

INSTEAD = "set maxUnavailable: 1 in the place of minAvailable"


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({"min_available": 2}, "minAvailable is 2, and at most 2 run"),
        ({"min_available": "90%"}, "minAvailable is 90%, which is 2 pods, and at most 2 run"),
        ({"min_available": "50%"}, ""),
        ({"min_available": 1}, ""),
        ({"max_unavailable": 0}, "maxUnavailable is 0"),
        ({"max_unavailable": "0%"}, "maxUnavailable is 0%"),
        ({"max_unavailable": "1%"}, ""),
    ],
)
def test_a_budget_that_can_never_be_met(fields, seen):
    """Shares are rounded up as the disruption controller does; a budget of no workload is left alone."""
    reported = found("budgets", pdbs=(pdb(**fields),), deployments=(deployment("web", 2),))
    assert [one.seen.split(" (")[0] for one in reported] == ([seen] if seen else [])
    assert found("budgets", pdbs=(pdb(**fields),)) == []


def test_a_budget_is_measured_by_the_maximum_of_the_hpa():
    """minAvailable 2 can be met when the HPA brings a third pod."""
    objects = {"pdbs": (pdb(min_available=2),), "deployments": (deployment("web", 2),)}
    assert found("budgets", **objects, hpas=(hpa("web", "web", max_replicas=3),)) == []
    assert len(found("budgets", **objects, hpas=(hpa("web", "web", max_replicas=2),))) == 1


@pytest.mark.parametrize(
    ("fields", "fix"),
    [
        ({"max_unavailable": 0}, "set maxUnavailable: 1"),
        ({"min_available": "100%"}, INSTEAD),
        ({"min_available": 2}, f"{INSTEAD}, or run more replicas than minAvailable asks for"),
    ],
)
def test_the_fix_of_a_budget_works(fields, fix):
    """No replica more satisfies a budget of all, and a budget has one of the two fields."""
    (one,) = found("budgets", pdbs=(pdb(**fields),), deployments=(deployment("web", 2),))
    assert one.fix == fix


def test_one_replica_and_one_pod_are_singular():
    """A share of one replica is one pod, and it runs."""
    (one,) = found("budgets", pdbs=(pdb(min_available="50%"),), deployments=(deployment("web", 1),))
    assert one.seen.startswith("minAvailable is 50%, which is 1 pod, and at most 1 runs")


def test_pods_of_two_budgets_can_never_be_evicted():
    """The API server refuses to evict a pod of two budgets; those that share no pod are left alone."""

    def budget(name, app):
        body = builders.pdb(name, {"app": app}, namespace="default", max_unavailable=1)
        return msgspec.convert(body, PodDisruptionBudget)

    pods = (pod("a", node="n1"), pod("b", node="n1"), pod("c", node="n1", of="other"))
    budgets = (budget("second", "web"), budget("first", "web"), budget("third", "other"))
    (one,) = found("budgets", pdbs=budgets, pods=pods)
    assert (one.object, one.seen) == (
        "PodDisruptionBudget default/first",
        "2 pods, a among them, also belong to second: a pod of more than one budget cannot be evicted",
    )
    assert found("budgets", pdbs=budgets[1:], pods=pods) == []
