"""Evictions that disruption budgets allow while a plan is made."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubetide.nodes.scale_down.unneeded.pdbs import Allowances
from kubetide.objects.policy import PodDisruptionBudget


def test_taking_uses_up_every_budget_of_a_pod(pod, pdb):
    """A pod that two budgets select takes one disruption from each."""
    pdbs = {("default", "a"): pdb("a", "web", 2), ("default", "b"): pdb("b", "web", 1)}
    left = Allowances.of(pdbs)
    x = pod("x", "n")
    assert left.refusing(x) is None
    assert left.allow_together([x])
    assert not left.allow_together([x, x])
    left.take([x])
    assert left.left == {("default", "a"): 1, ("default", "b"): 0}
    assert left.refusing(x) == ("default", "b")


def test_a_budget_without_selector_selects_nothing_and_an_empty_one_everything(pod):
    """policy/v1: a null selector matches no pod, an empty one all pods of the namespace."""

    def budget(name, spec):
        meta = {"name": name, "namespace": "default"}
        return msgspec.convert({"metadata": meta, "spec": spec}, PodDisruptionBudget)

    pdbs = {("default", "null"): budget("null", {}), ("default", "all"): budget("all", {"selector": {}})}
    left = Allowances.of(pdbs)
    assert left.budgets_of(pod("x", "n")) == (("default", "all"),)
    assert left.budgets_of(pod("x", "n", namespace="other")) == ()


def test_an_unreadable_budget_protects_its_namespace(pod):
    """One budget with a bad operator does not stop the loop; nothing of its namespace moves."""
    spec = {"selector": {"matchExpressions": [{"key": "app", "operator": "Bogus"}]}}
    meta = {"name": "bad", "namespace": "default"}
    bad = msgspec.convert(
        {"metadata": meta, "spec": spec, "status": {"disruptionsAllowed": 9}}, PodDisruptionBudget
    )
    left = Allowances.of({("default", "bad"): bad})
    assert left.refusing(pod("x", "n")) == ("default", "bad")
    assert left.refusing(pod("x", "n", namespace="other")) is None


@given(
    apps=st.lists(st.sampled_from("abc"), max_size=12),
    allowed=st.fixed_dictionaries({app: st.integers(0, 4) for app in "abc"}),
)
def test_allowances_agree_with_counting(apps, allowed, pod, pdb):
    """Pods may go together exactly when no budget loses more than it allows."""
    pdbs = {("default", app): pdb(app, app, count) for app, count in allowed.items()}
    pods = [pod(f"{app}-{index}", "n", of=app) for index, app in enumerate(apps)]
    left = Allowances.of(pdbs)
    assert left.allow_together(pods) == all(apps.count(app) <= allowed[app] for app in allowed)
    left.take(pods)
    assert left.left == {("default", app): count - apps.count(app) for app, count in allowed.items()}
