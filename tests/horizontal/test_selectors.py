"""Membership: which pods belong to which HPA, and which HPAs share them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.horizontal import worlds

from kubetide.horizontal.decide import COLUMNS_FROM, absorb, decide
from kubetide.horizontal.facts.pods import PodTable
from kubetide.horizontal.facts.views import PodView
from kubetide.horizontal.state import Delta, State
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


# ── HPAs that share pods ──

SHARED = [worlds.pod("w1"), worlds.pod("w2")]
USAGE = worlds.answer({("default", "w1"): 100, ("default", "w2"): 100})


def sharing(green, **changes):
    """What is gathered of ``web`` with its pods, and of ``green``, whose target has the selector of ``web`` too."""
    scales = [
        worlds.scale("web", replicas=2),
        msgspec.structs.replace(worlds.scale("green", replicas=green), selector="app=web"),
    ]
    return Delta(scales=scales, answers=[USAGE], **changes)


def started(green):
    """Return a loop that begins with two HPAs that share pods."""
    state = State()
    state.apply(sharing(green, hpas=[worlds.hpa("web"), worlds.hpa("green")], pods=SHARED))
    return state


def reasons(state, columns_from=COLUMNS_FROM):
    """Return what one tick says of ``web`` in ScalingActive."""
    commands = decide(state, worlds.NOW, columns_from=columns_from)
    absorb(state, commands, ())
    active = [note for note in commands.verdicts[1].notes if note.type == "ScalingActive"]
    return [note.reason for note in active]


@pytest.mark.parametrize("columns_from", [0, COLUMNS_FROM])
def test_an_hpa_whose_target_is_off_from_the_start_does_not_count(columns_from):
    """An HPA that has never come to its selector does not make another one's ambiguous, and does once it has."""
    state = started(green=0)
    assert reasons(state, columns_from) == ["ValidMetricFound"]
    state.apply(sharing(green=0))
    assert reasons(state, columns_from) == ["ValidMetricFound"]
    state.apply(sharing(green=1))
    assert reasons(state, columns_from) == ["AmbiguousSelector"]


def test_an_hpa_outside_its_bounds_from_the_start_does_not_count():
    """Below the minimum or above the maximum no selector is read either."""
    state = State()
    hpas = [worlds.hpa("web"), worlds.hpa("green", maximum=5)]
    state.apply(sharing(green=9, hpas=hpas, pods=SHARED))
    assert reasons(state) == ["ValidMetricFound"]


def again(state):
    """Return the state that a full record of it gives."""
    return State.from_full(state.dump())


def anew(state):
    """Return a state that begins with the memory alone, as after a failed tick."""
    new = State()
    new.apply(Delta(memory=state.memories()))
    full = state.dump()
    new.apply(Delta(hpas=full.hpas, statuses=full.statuses, pods=full.pods))
    return new


@pytest.mark.parametrize("kept_by", [again, anew])
def test_a_selector_that_has_been_read_counts_from_then_on(kept_by):
    """A target that is switched off later still counts, also after the memory was written and read."""
    state = started(green=1)
    assert reasons(state) == ["AmbiguousSelector"]
    state = kept_by(state)
    state.apply(sharing(green=0))
    assert reasons(state) == ["AmbiguousSelector"]
    never = kept_by(started(green=0))
    never.apply(sharing(green=0))
    assert reasons(never) == ["ValidMetricFound"]
