"""Membership: which pods belong to which HPA."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.horizontal.facts.pods import PodTable
from kubetide.horizontal.facts.views import PodView
from kubetide.units.selectors import Selector

SELECTORS = [
    "app=a",
    "app=b",
    "app in (a,b)",
    "!app",
    "app",
    "tier=x",
    "app=a,tier=x",
    "app notin (a)",
    "tier!=y",
]
LABELS = [{}, {"app": "a"}, {"app": "b"}, {"app": "a", "tier": "x"}, {"tier": "y"}, {"app": "b", "tier": "x"}]

changes = st.one_of(
    st.tuples(st.just("pod"), st.sampled_from("nm"), st.integers(0, 5), st.sampled_from(LABELS)),
    st.tuples(st.just("gone"), st.sampled_from("nm"), st.integers(0, 5), st.none()),
    st.tuples(st.just("claim"), st.sampled_from("nm"), st.integers(0, 3), st.sampled_from(SELECTORS)),
    st.tuples(st.just("release"), st.sampled_from("nm"), st.integers(0, 3), st.none()),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(changes, max_size=40))
def test_members_are_the_pods_that_match(steps):
    """After any changes, members and claimants are those that a match of every pod against every selector finds."""
    table, pods, claims = PodTable(), {}, {}
    for what, namespace, number, value in steps:
        key = (namespace, f"o{number}")
        if what == "pod":
            pods[key] = value
            table.put(PodView(*key, labels=value))
        elif what == "gone":
            pods.pop(key, None)
            table.remove(key)
        elif what == "claim":
            claims[key] = Selector.parse(value)
            table.members.claim(key, value, claims[key])
        else:
            claims.pop(key, None)
            table.members.release(key)
        for hpa, selector in claims.items():
            expected = sorted(pod for pod in pods if pod[0] == hpa[0] and selector.matches(pods[pod]))
            found = [table.view(row) for row in table.members_of(hpa).tolist()]
            assert [(pod.namespace, pod.name) for pod in found] == expected
            claimants = {
                other
                for other in claims
                if other[0] == hpa[0] and any(claims[other].matches(pods[pod]) for pod in expected)
            }
            assert set(table.members.claimants(hpa)) == (claimants if expected else set())


def test_a_pod_that_changes_its_labels_changes_hands():
    """New labels take a pod from one HPA to another."""
    table = PodTable()
    for app in ("a", "b"):
        table.members.claim(("n", app), f"app={app}", Selector.parse(f"app={app}"))
    table.put(PodView("n", "p", labels={"app": "a"}))
    assert len(table.members_of(("n", "a"))) == 1
    table.put(PodView("n", "p", labels={"app": "b"}))
    assert (len(table.members_of(("n", "a"))), len(table.members_of(("n", "b")))) == (0, 1)


def test_a_selector_without_exact_values_matches_new_label_sets():
    """``!app`` matches a pod whose labels were never seen before."""
    table = PodTable()
    table.members.claim(("n", "h"), "!app", Selector.parse("!app"))
    table.put(PodView("n", "p", labels={"tier": "new"}))
    table.put(PodView("n", "q", labels={"app": "a"}))
    assert [table.view(row).name for row in table.members_of(("n", "h")).tolist()] == ["p"]
