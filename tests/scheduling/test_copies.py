"""Copies of templates that come and go: cached results of classes equal those of a new snapshot."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.scheduling.plain import make_node, make_pod

from kubetide.objects.meta import LabelSelector
from kubetide.objects.node import Taint
from kubetide.objects.pod import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
)
from kubetide.scheduling import Snapshot, classify
from kubetide.scheduling.filters.base import UNLIMITED

HOSTNAME, ZONE = "kubernetes.io/hostname", "zone"
TAINT = Taint(key="dedicated", value="x", effect="NoSchedule")
TEMPLATES = (
    make_node("t-a", labels={ZONE: "a"}),
    make_node("t-b", labels={ZONE: "b", "disk": "fast"}),
    make_node("t-tainted", labels={ZONE: "a"}, taints=(TAINT,)),
    make_node("t-nowhere"),
    make_node("t-more", labels={ZONE: "c"}, gpu="2"),
)
NODES = tuple(make_node(f"n{at}", labels={ZONE: "ab"[at % 2]}) for at in range(4))
APP = LabelSelector(match_labels={"app": "x"})
TERM = {key: PodAffinityTerm(label_selector=APP, topology_key=key) for key in (HOSTNAME, ZONE)}


def required(term):
    return PodAffinity(required_during_scheduling_ignored_during_execution=(term,))


def spread(key, **more):
    return TopologySpreadConstraint(
        topology_key=key, max_skew=1, when_unsatisfiable="DoNotSchedule", label_selector=APP, **more
    )


def pod(name, **spec):
    return make_pod(name, {"cpu": "500m"}, labels={"app": "x"}, **spec)


def shapes():
    yield {}
    yield {"node_selector": {"disk": "fast"}}
    yield {"node_selector": {HOSTNAME: "e-1"}}
    yield {"tolerations": (Toleration(key="dedicated", operator="Exists"),)}
    for key in (HOSTNAME, ZONE):
        yield {"affinity": Affinity(pod_anti_affinity=required(TERM[key]))}
        yield {"affinity": Affinity(pod_affinity=required(TERM[key]))}
        yield {"topology_spread_constraints": (spread(key),)}
        yield {
            "topology_spread_constraints": (spread(key, node_taints_policy="Honor"),),
            "node_selector": {"disk": "fast"},
        }
        yield {"topology_spread_constraints": (spread(key, min_domains=3 if key == ZONE else 5),)}
        yield {
            "topology_spread_constraints": (spread(key, min_domains=4),),
            "node_selector": {HOSTNAME: "e-0"},
        }
    yield {"topology_spread_constraints": (spread(HOSTNAME), spread(ZONE))}


SHAPES = tuple(shapes())


def steps():
    some = st.integers(0, len(SHAPES) - 1)
    return st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, len(TEMPLATES) - 1), st.integers(1, 6)),
            st.tuples(st.just("add"), st.integers(0, len(TEMPLATES) - 1), st.integers(1, 6)),
            st.tuples(st.just("put"), some, st.integers(0, 30)),
            st.tuples(st.just("remove"), st.integers(0, 30)),
            st.tuples(st.sampled_from(("fork", "revert", "revert", "commit"))),
            st.tuples(st.just("ask"), some),
        ),
        min_size=6,
        max_size=40,
    )


def made_anew(snapshot):
    fresh = Snapshot()
    for name in snapshot.node_names:
        fresh.set_node(snapshot.node(name))
    for name in snapshot.node_names:
        for one in snapshot.pods_on(name):
            fresh.add_pod(one, name)
    return fresh


def check(snapshot, at):
    """Compare a class's verdicts and its quotas by row with those of a snapshot made anew."""
    fresh, incoming = made_anew(snapshot), classify(pod("asked", **SHAPES[at]))
    assert snapshot.feasible(incoming).tolist() == fresh.feasible(incoming).tolist()
    assert snapshot.static_part(incoming).tolist() == fresh.static_part(incoming).tolist()
    for row in range(len(fresh)):
        assert snapshot.fits(incoming, snapshot.node_names[row]) == bool(fresh.feasible(incoming)[row])
    assert quotas(snapshot, incoming) == quotas(fresh, incoming)


def quotas(snapshot, incoming):
    """How many pods each row takes by all terms; those of pods that are not there any more let in everything."""
    terms = [term for judge in snapshot.prepare(incoming).judges for term in judge.terms]
    return [min((term.quota(row) for term in terms), default=UNLIMITED) for row in range(len(snapshot))]


@given(steps())
def test_caches_agree_with_a_new_snapshot(given_steps):
    """They agree whatever copies come, are reverted and are replaced by others of the same number or name."""
    snapshot, forks, puts = Snapshot(), 0, 0
    for node in NODES:
        snapshot.set_node(node)
        snapshot.add_pod(pod(f"on-{node.metadata.name}"), node.metadata.name)
    for what, *arguments in given_steps:
        names = snapshot.node_names
        if what == "add":
            template, number = TEMPLATES[arguments[0]], arguments[1]
            first = sum(name.startswith("e-") for name in names)
            snapshot.add_templates(template, (), [f"e-{first + at}" for at in range(number)])
        elif what == "put" and names:
            puts += 1
            snapshot.add_pod(pod(f"p{puts}", **SHAPES[arguments[0]]), names[arguments[1] % len(names)])
        elif what == "remove" and names:
            snapshot.remove_node(names[arguments[0] % len(names)])
        elif what == "ask":
            check(snapshot, arguments[0])
        elif what == "fork":
            snapshot.fork()
            forks += 1
        elif what in {"revert", "commit"} and forks:
            getattr(snapshot, what)()
            forks -= 1
    for at in range(len(SHAPES)):
        check(snapshot, at)
    while forks:
        snapshot.revert()
        forks -= 1
        for at in range(len(SHAPES)):
            check(snapshot, at)


def test_judges_are_cached_while_copies_come_and_go():
    """Judges of terms about domains are not made anew for a copy, and are valid after its revert."""
    snapshot = Snapshot()
    for node in NODES:
        snapshot.set_node(node)
    for shape in SHAPES:
        incoming = classify(pod("asked", **shape))
        if incoming.names_nodes:
            continue
        snapshot.prepare(incoming)
        snapshot.fork()
        snapshot.add_templates(TEMPLATES[0], (), ["e-0"])
        judges = list(snapshot.prepare(incoming).judges)
        snapshot.add_templates(TEMPLATES[0], (), ["e-1", "e-2"])
        assert snapshot.prepare(incoming).judges == judges
        snapshot.revert()
        assert snapshot.prepare(incoming).judges == judges


def test_copies_of_another_template_take_the_place_of_those_taken_back():
    """Verdicts about earlier copies do not apply to the next ones, though they have the same rows."""
    snapshot = Snapshot()
    for node in NODES:
        snapshot.set_node(node)
    for before in TEMPLATES:
        for after in TEMPLATES:
            for template in (before, after):
                snapshot.fork()
                snapshot.add_templates(template, (), ["e-0"])
                for at in range(len(SHAPES)):
                    check(snapshot, at)
                snapshot.revert()
