"""Spread and affinity in columns against plain rules over objects, and estimates against pod by pod."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.scheduling import inter_pod, plain
from tests.scheduling.plain import make_node

from kubetide.objects.meta import LabelSelector
from kubetide.objects.pod import PodAffinityTerm, TopologySpreadConstraint
from kubetide.scheduling import ClusterFacts, Limits, PodGroup, Snapshot, classify, estimate
from kubetide.scheduling.estimator.reference import reference_estimate
from kubetide.scheduling.snapshot import store as snapshot_store

KIND = {
    "node(s) didn't match pod topology spread constraints": "skew",
    "node(s) didn't match pod topology spread constraints (missing required label)": "missing",
    "node(s) didn't match pod affinity rules": "near",
    "node(s) didn't match pod anti-affinity rules": "apart",
    "node(s) didn't satisfy existing pods anti-affinity rules": "guarded",
}
JUDGES = {"PodTopologySpread": inter_pod.judge_spread, "InterPodAffinity": inter_pod.judge_affinity}


def terminating(pod):
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


changes = st.lists(
    st.one_of(
        st.tuples(st.just("node"), inter_pod.nodes()),
        st.tuples(st.just("gone"), st.sampled_from(("n0", "n1", "n2"))),
        st.tuples(
            st.just("pod"),
            inter_pod.pods(),
            st.sampled_from(("n0", "n1", "n2", "n3", "n4", "n9")),
            st.booleans(),
        ),
        st.tuples(
            st.just("off"), st.sampled_from(("p0", "p1", "p2", "p3")), st.sampled_from(("default", "dev"))
        ),
        st.tuples(st.just("fork")),
        st.tuples(st.just("revert")),
        st.tuples(st.just("commit")),
        st.tuples(st.just("ask"), inter_pod.pods()),
    ),
    max_size=25,
)


class Book:
    """The cluster as plain dicts, copied at each fork."""

    def __init__(self):
        self.nodes, self.pods, self.saved = {}, {}, []

    def apply(self, change):
        match change:
            case ("node", node):
                self.nodes[node.metadata.name] = node
            case ("gone", name):
                self.nodes.pop(name, None)
            case ("pod", pod, name, ending):
                key = (pod.metadata.namespace, pod.metadata.name)
                self.pods[key] = (terminating(pod) if ending else pod, name)
            case ("off", name, namespace):
                self.pods.pop((namespace, name), None)
            case ("fork",):
                self.saved.append((dict(self.nodes), dict(self.pods)))
            case ("revert",):
                self.nodes, self.pods = self.saved.pop()
            case ("commit",):
                self.saved.pop()

    def cluster(self):
        return [
            (node, [pod for pod, on in self.pods.values() if on == name]) for name, node in self.nodes.items()
        ]


def apply(snapshot, change):
    match change:
        case ("node", node):
            snapshot.set_node(node)
        case ("gone", name):
            snapshot.remove_node(name)
        case ("pod", pod, name, ending):
            snapshot.add_pod(terminating(pod) if ending else pod, name)
        case ("off", name, namespace):
            snapshot.remove_pod((namespace, name))
        case ("fork",):
            snapshot.fork()
        case ("revert",):
            snapshot.revert()
        case ("commit",):
            snapshot.commit()


def check(snapshot, book, pod):
    pod_class = classify(pod)
    fits = dict(zip(snapshot.node_names, snapshot.feasible(pod_class), strict=True))
    said = snapshot.refusals_by_plugin(pod_class)
    counts = snapshot.refusals(pod_class)
    firsts = {}
    for name, node in book.nodes.items():
        refusal = snapshot.first_refusal(pod_class, name)
        assert (refusal is None) == fits[name] == snapshot.fits(pod_class, name)
        for reason in refusal.reasons if refusal else ():
            firsts[reason] = firsts.get(reason, 0) + 1
        for plugin, judge in JUDGES.items():
            found = said.get(plugin, {}).get(name)
            expected = judge(pod, node, book.cluster())
            assert (found and (plugin, KIND[found.reasons[0]])) == expected
    assert counts == firsts


@settings(max_examples=150, deadline=None)
@given(changes, st.lists(inter_pod.pods(), min_size=1, max_size=3))
def test_columns_agree_with_plain_rules_whatever_happened(steps, asked):
    """After any changes, forks and reverts each verdict and reason is that of the rules read off the objects."""
    snapshot, book, depth = Snapshot(), Book(), 0
    snapshot.set_facts(ClusterFacts(namespaces=inter_pod.NAMESPACES))
    for step in steps:
        if step[0] == "ask":
            check(snapshot, book, step[1])
            continue
        if step[0] in {"revert", "commit"} and not depth:
            continue
        depth += {"fork": 1, "revert": -1, "commit": -1}.get(step[0], 0)
        apply(snapshot, step)
        book.apply(step)
    for pod in asked:
        check(snapshot, book, pod)


def test_counts_that_pile_up_are_forgotten(monkeypatch):
    """Old counts go, also those of anti-affinity; pods that wait for their node still guard it when it comes."""
    monkeypatch.setattr(snapshot_store, "COUNT_COLUMNS_BEFORE_FORGETTING", 3)
    snapshot, book = Snapshot(), Book()
    snapshot.set_facts(ClusterFacts(namespaces=inter_pod.NAMESPACES))
    app = LabelSelector(match_labels={"app": "a"})
    apart = PodAffinityTerm(label_selector=app, topology_key=inter_pod.HOSTNAME)
    guard = inter_pod.pod("p0", "default", "a", [], [apart], [], 0, None)
    steps = [("node", make_node("n0")), ("pod", guard, "n1", False)]
    for number in range(8):
        rule = TopologySpreadConstraint(
            topology_key="zone",
            when_unsatisfiable="DoNotSchedule",
            label_selector=LabelSelector(match_labels={"app": "a", "hash": f"{number}"}),
        )
        pod = inter_pod.pod(f"q{number}", "default", "a", [], [], [rule], 0, None)
        steps += [("ask", pod), ("pod", pod, "n0", False)]
    for step in [*steps, ("node", make_node("n1"))]:
        if step[0] == "ask":
            check(snapshot, book, step[1])
        else:
            apply(snapshot, step)
            book.apply(step)
    check(snapshot, book, inter_pod.pod("p9", "default", "a", [], [], [], 0, None))
    assert snapshot.fits(classify(inter_pod.pod("p9", "default", "b", [], [], [], 0, None)), "n1")
    assert not snapshot.fits(classify(inter_pod.pod("p9", "default", "a", [], [], [], 0, None)), "n1")


def groups_of(pods, most):
    """Draw up to three groups of so many copies at the most."""
    return st.lists(st.tuples(pods, st.integers(1, most)), min_size=1, max_size=3).map(
        lambda given: [
            PodGroup(
                tuple(plain.renamed(pod, f"g{number}-{index}") for index in range(count)),
                classify(plain.renamed(pod, f"g{number}-0")),
            )
            for number, (pod, count) in enumerate(given)
        ]
    )


def templates(zones):
    return st.builds(
        lambda labels, cpu, count: make_node("t", labels=labels, cpu=f"{cpu}m", pods=count),
        st.sampled_from([{"zone": zone} if zone else {} for zone in zones]),
        st.integers(0, 6000),
        st.integers(1, 8),
    )


@settings(max_examples=200, deadline=None)
@given(
    st.lists(inter_pod.nodes(), max_size=4),
    st.lists(st.tuples(inter_pod.pods(), st.sampled_from(("n0", "n1", "n2"))), max_size=5),
    templates(("x", "z", "")),
    st.lists(inter_pod.pods(("agent",)), max_size=1),
    groups_of(inter_pod.pods(), 12),
    st.sampled_from((0, 1, 3, 20)),
    st.integers(0, 9),
)
def test_estimates_are_those_of_one_pod_at_a_time(
    nodes, there, template, daemon_pods, groups, threshold, start
):
    """Counts per group and node, borrowed nodes, the limit and the scan position; the snapshot is as it was."""
    compare(nodes, there, template, daemon_pods, groups, threshold, start)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(inter_pod.nodes(), max_size=4),
    st.lists(st.tuples(inter_pod.spread_pods(), st.sampled_from(("n0", "n1", "n2"))), max_size=5),
    templates(("x", "z")),
    st.lists(inter_pod.spread_pods(("agent",), most=0), max_size=1),
    groups_of(inter_pod.spread_pods(), 40),
    st.sampled_from((0, 0, 20)),
    st.integers(0, 9),
)
def test_estimates_of_many_spread_copies_are_those_of_one_pod_at_a_time(
    nodes, there, template, daemon_pods, groups, threshold, start
):
    """Whole nodes are counted in one go, until the next one sees another count of domains or another zone with places."""
    compare(nodes, there, template, daemon_pods, groups, threshold, start)


def compare(nodes, there, template, daemon_pods, groups, threshold, start):
    snapshot = Snapshot()
    snapshot.set_facts(ClusterFacts(namespaces=inter_pod.NAMESPACES))
    for node in nodes:
        snapshot.set_node(node)
    for pod, name in there:
        snapshot.add_pod(pod, name)
    limits = Limits((threshold or 30,))
    before = {key: column.tobytes() for key, column in snapshot.free.items()}
    version = snapshot.version
    verdicts = [snapshot.feasible(group.pod_class).tolist() for group in groups]
    found = estimate(snapshot, template, daemon_pods, groups, limits, start=start)
    after = {key: column.tobytes() for key, column in snapshot.free.items()}
    assert (snapshot.version, before) == (version, {key: after[key] for key in before})
    assert [snapshot.feasible(group.pod_class).tolist() for group in groups] == verdicts
    count, counts, added, limited, end = reference_estimate(
        snapshot, template, daemon_pods, groups, limits, start
    )
    assert [len(pods) for pods in found.scheduled] == [sum(row.values()) for row in counts]
    assert (found.nodes, found.added, found.limited) == (count, tuple(added), limited)
    for name in (*found.added, *found.borrowed):
        expected = {index: row[name] for index, row in enumerate(counts) if name in row}
        assert found.pods_on(name) == expected
    assert int(np.sum(found.counts)) == sum(sum(row.values()) for row in counts)
    assert found.start == end
