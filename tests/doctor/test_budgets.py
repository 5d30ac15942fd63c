"""What the doctor says of budgets that can never be met: fixes that work, and pods of two budgets."""

from __future__ import annotations

import msgspec
import pytest
from tests.doctor.test_checks import found, pdb
from tests.nodes.frozen import deployment, pod

from kubetide.objects.policy import PodDisruptionBudget
from kubetide.testing import builders

INSTEAD = "set maxUnavailable: 1 in the place of minAvailable"


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
