"""Counts that are first requested late, after any adding, removing, trying and reverting of pods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.scheduling.plain import make_node, make_pod

from kubetide.objects.meta import LabelSelector, LabelSelectorRequirement
from kubetide.objects.pod import Affinity, PodAffinity, PodAffinityTerm
from kubetide.scheduling import Snapshot, classify_unbound
from kubetide.scheduling.columns import rows
from kubetide.scheduling.columns.counting import GuardingPods, MatchingPods, SpreadPods
from kubetide.scheduling.columns.pod_index import ByMark
from kubetide.scheduling.pods.terms import compile_terms
from kubetide.units.selectors import Selector

HOSTNAME = "kubernetes.io/hostname"
NODES = ("n0", "n1", "n2", "n3")
COPIES = ("c0", "c1")


def term_about(**labels):
    return PodAffinityTerm(label_selector=LabelSelector(match_labels=labels), topology_key=HOSTNAME)


def compiled(term):
    given = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    return compile_terms(given, "default")[0]


def selecting(*expressions, **labels):
    return Selector.from_object(LabelSelector(match_labels=labels, match_expressions=expressions or None))


KEYS = (
    SpreadPods("default", selecting(app="a")),
    SpreadPods("default", selecting(app="a", tier="x")),
    SpreadPods("default", selecting(LabelSelectorRequirement(key="app", operator="In", values=("a", "b")))),
    SpreadPods("default", selecting(LabelSelectorRequirement(key="tier", operator="DoesNotExist"))),
    SpreadPods("elsewhere", selecting(app="a")),
    MatchingPods((compiled(term_about(app="b")), compiled(term_about(tier="x")))),
    GuardingPods(compiled(term_about(app="a"))),
    GuardingPods(compiled(term_about(app="c"))),
)


@st.composite
def pods(draw):
    app, tier = draw(st.sampled_from(("a", "b", "c"))), draw(st.sampled_from(("", "x")))
    apart = draw(st.sampled_from(("", "", "a", "c")))
    anti = PodAffinity(required_during_scheduling_ignored_during_execution=(term_about(app=apart),))
    pod = make_pod(
        draw(st.sampled_from(("p0", "p1", "p2", "p3", "p4", "p5"))),
        {"cpu": "1m"},
        labels={"app": app, **({"tier": tier} if tier else {})},
        affinity=Affinity(pod_anti_affinity=anti) if apart else None,
    )
    if draw(st.booleans()):
        return pod
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-03-02T08:00:00Z"))


def operations():
    names = st.sampled_from(NODES)
    return st.lists(
        st.one_of(
            st.tuples(st.just("set_node"), names),
            st.tuples(st.just("remove_node"), names),
            st.tuples(st.just("add_pod"), pods(), names),
            st.tuples(st.just("add_pod"), pods(), names),
            st.tuples(st.just("remove_pod"), st.sampled_from(("p0", "p1", "p2"))),
            st.tuples(st.sampled_from(("fork", "revert", "commit"))),
            st.tuples(st.just("add_template"), pods(), st.sampled_from(COPIES)),
            st.tuples(st.just("count"), st.sampled_from(KEYS)),
        ),
        min_size=8,
        max_size=60,
    )


def check_counts(snapshot):
    for key, column in snapshot._store.compacted().counts.items():
        expected = [
            sum(
                key.counts(
                    classify_unbound(pod), snapshot.facts, terminating=bool(pod.metadata.deletion_timestamp)
                )
                for pod in snapshot.pods_on(name)
            )
            for name in snapshot.node_names
        ]
        capacity = snapshot._store.compacted().capacity
        assert column.vector(len(snapshot)).tolist() == expected, key
        assert not column.vector(capacity)[len(snapshot) :].any(), "a row that is added begins with no pods"


@given(operations())
def test_counts_are_those_of_a_recount(given_operations):
    """A column of counts that is made at any time, and each made before, says what counting pod by pod says."""
    snapshot, forks = Snapshot(), 0
    for what, *arguments in given_operations:
        if what == "set_node":
            snapshot.set_node(make_node(arguments[0]))
        elif what == "remove_pod":
            snapshot.remove_pod(("default", arguments[0]))
        elif what == "count":
            snapshot._store.compacted().count_column(arguments[0])
            check_counts(snapshot)
        elif what == "add_template":
            if forks:
                snapshot.add_template(make_node("t"), arguments[:1], arguments[1])
        elif what in {"revert", "commit"}:
            if forks:
                getattr(snapshot, what)()
                forks -= 1
        else:
            getattr(snapshot, what)(*arguments)
            forks += what == "fork"
    for key in KEYS:
        snapshot._store.compacted().count_column(key)
    check_counts(snapshot)
    while forks:
        snapshot.revert()
        forks -= 1
    check_counts(snapshot)


def test_counts_hold_when_kinds_are_made_anew(monkeypatch):
    """After many changes it is cheaper to count all pods again; counts requested after that are right."""
    monkeypatch.setattr(rows, "POD_INDEX_CHANGES", 3)
    snapshot = Snapshot()
    for name in NODES:
        snapshot.set_node(make_node(name))
    snapshot._store.compacted().count_column(KEYS[0])
    for at in range(40):
        snapshot.add_pod(make_pod(f"p{at}", {"cpu": "1m"}, labels={"app": "ab"[at % 2]}), NODES[at % 3])
    for key in KEYS:
        snapshot._store.compacted().count_column(key)
    check_counts(snapshot)


def test_pods_of_copies_are_forgotten_with_the_copies():
    """Counts first requested while copies of a template exist are right after these, and then a node, are removed."""
    snapshot = Snapshot()
    for name in NODES:
        snapshot.set_node(make_node(name))
    snapshot.add_pod(make_pod("p", {"cpu": "1m"}, labels={"app": "a"}), "n1")
    snapshot.fork()
    daemon = make_pod("agent", {"cpu": "1m"}, labels={"app": "a"})
    snapshot.add_templates(make_node("t"), [daemon], ["c0", "c1"])
    snapshot._store.compacted().count_column(KEYS[0])
    snapshot.revert()
    snapshot.remove_node("n0")
    check_counts(snapshot)
    for key in KEYS:
        snapshot._store.compacted().count_column(key)
    check_counts(snapshot)


KEYS_OF_LABELS = "abc"
CHOICES = st.dictionaries(
    st.sampled_from(KEYS_OF_LABELS), st.lists(st.sampled_from("xyz"), min_size=1, unique=True), max_size=3
)
BORNE = st.dictionaries(st.sampled_from(KEYS_OF_LABELS), st.sampled_from("xyz"))


@given(st.lists(CHOICES, max_size=12), BORNE, st.integers(0, 12))
def test_all_that_a_bearer_may_be_meant_by_is_found(asked, borne, since):
    """The result has, in order, each item whose choices are all borne, and no item without a borne choice."""
    items = ByMark()
    for number, choices in enumerate(asked):
        items.add([tuple((key, value) for value in values) for key, values in choices.items()], number)
    found = items.borne(borne.items(), since)
    assert found == sorted(set(found))
    for number, choices in enumerate(asked):
        met = [borne.get(key) in values for key, values in choices.items()]
        if number < since or (met and not any(met)):
            assert number not in found
        elif all(met):
            assert number in found


def waiting():
    """Pods with the nodes that they are put on; some nodes are not there."""
    return st.lists(st.tuples(pods(), st.sampled_from((*NODES, "n9"))), max_size=25)


@given(waiting(), waiting(), st.lists(st.sampled_from(KEYS), max_size=3))
def test_many_pods_at_once_are_as_one_by_one(before, many, keys):
    """Pods that come together, known ones among them, leave a snapshot as they do one after another."""
    made = [Snapshot(), Snapshot()]
    for snapshot in made:
        for name in NODES:
            snapshot.set_node(make_node(name))
        for one, name in before:
            snapshot.add_pod(one, name)
        for key in keys:
            snapshot._store.compacted().count_column(key)
    for one, name in many:
        made[0].add_pod(one, name)
    made[1].add_pods([((one.metadata.namespace, one.metadata.name), one, name) for one, name in many])
    for snapshot in made:
        for key in KEYS:
            snapshot._store.compacted().count_column(key)
        check_counts(snapshot)
    single, together = made
    assert [single.pods_on(name) for name in (*NODES, "n9")] == [
        together.pods_on(name) for name in (*NODES, "n9")
    ]
    assert {k: v.tolist() for k, v in single.free.items()} == {
        k: v.tolist() for k, v in together.free.items()
    }


def test_pods_of_frequent_and_of_rare_classes_come_together():
    """Whether many or few pods of a class come at once changes no amount and no count."""
    given = [
        (make_pod(f"p{number}", {"cpu": "1m"}, labels={"app": "a"}), NODES[number % 3])
        for number in range(100)
    ]
    given += [
        (make_pod(f"q{number}", {"cpu": f"{number}m"}, labels={"app": f"b{number}"}), NODES[number % 3])
        for number in range(1, 9)
    ]
    made = [Snapshot(), Snapshot()]
    for snapshot in made:
        for name in NODES:
            snapshot.set_node(make_node(name))
        for key in KEYS:
            snapshot._store.compacted().count_column(key)
    for one, name in given:
        made[0].add_pod(one, name)
    made[1].add_pods([((one.metadata.namespace, one.metadata.name), one, name) for one, name in given])
    for snapshot in made:
        check_counts(snapshot)
    single, together = ({k: v.tolist() for k, v in one.free.items()} for one in made)
    assert single == together


def test_many_pods_at_once_are_not_for_forks():
    """Changes that are tried out must be reverted pod by pod."""
    snapshot = Snapshot()
    snapshot.fork()
    with pytest.raises(RuntimeError, match="add_pods on a fork"):
        snapshot.add_pods([])
