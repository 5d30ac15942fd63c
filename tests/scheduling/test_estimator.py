"""Estimates for several templates by one estimator: each as if pods were placed one at a time on a fork."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert
from msgspec.structs import replace
from tests.objects import samples
from tests.scheduling import inter_pod, plain
from tests.scheduling.inter_pod import HOSTNAME
from tests.scheduling.plain import make_node, make_pod

from kubetide.objects.meta import LabelSelector, ObjectMeta
from kubetide.objects.pod import (
    ContainerPort,
    PersistentVolumeClaimVolume,
    PodAffinityTerm,
    TopologySpreadConstraint,
    Volume,
)
from kubetide.objects.storage import (
    CSINode,
    CsiNodeDriver,
    CsiNodeSpec,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeCount,
)
from kubetide.scheduling import (
    ClusterFacts,
    Limits,
    PodGroup,
    Snapshot,
    Volumes,
    classify,
    estimate,
)
from kubetide.scheduling.estimator import packing
from kubetide.scheduling.estimator import single as packing_single
from kubetide.scheduling.estimator.packing import Estimator, run_to_end
from kubetide.scheduling.estimator.reference import reference_estimate


def numbered(given):
    return [
        PodGroup(
            tuple(plain.renamed(pod, f"g{number}-{index}") for index in range(count)),
            classify(plain.renamed(pod, f"g{number}-0")),
        )
        for number, (pod, count) in enumerate(given)
    ]


def neighbour(name, app, about, rules, cpu, skew, least_domains):
    """A pod with rules about one of two kinds, such that many of them can hold at once."""
    meant = LabelSelector(match_labels={"app": about})
    term = {
        f"{word} {key}": PodAffinityTerm(label_selector=meant, topology_key=key)
        for word in ("near", "apart")
        for key in ("zone", HOSTNAME)
    }
    spread = [
        TopologySpreadConstraint(
            topology_key=key,
            max_skew=skew,
            min_domains=least_domains,
            when_unsatisfiable="DoNotSchedule",
            label_selector=meant,
        )
        for key in ("zone", HOSTNAME)
        if f"spread {key}" in rules
    ]
    near = [term[rule] for rule in rules if rule.startswith("near")]
    apart = [term[rule] for rule in rules if rule.startswith("apart")]
    return inter_pod.pod(name, "default", app, near, apart, spread, cpu, None)


neighbours = st.builds(
    neighbour,
    st.sampled_from(("p0", "p1", "p2")),
    st.sampled_from(("a", "b")),
    st.sampled_from(("a", "a", "b")),
    st.sampled_from(
        (
            (),
            ("spread zone",),
            (f"spread {HOSTNAME}",),
            (f"spread {HOSTNAME}",),
            ("spread zone", f"spread {HOSTNAME}"),
            ("near zone",),
            (f"near {HOSTNAME}",),
            (f"apart {HOSTNAME}",),
            ("apart zone",),
        )
    ),
    st.sampled_from((100, 300, 400, 900)),
    st.integers(1, 2),
    st.sampled_from((None, 2, 2, 4)),
)
like_ones = st.lists(st.tuples(neighbours, st.integers(1, 6)), min_size=2, max_size=8)
any_ones = st.lists(
    st.tuples(st.one_of(neighbours, inter_pod.pods(), plain.pods(("q0", "q1"))), st.integers(1, 4)),
    min_size=1,
    max_size=6,
)
groups_of_pods = st.one_of(like_ones, like_ones, like_ones, any_ones).map(numbered)
existing = st.builds(
    lambda name, zone, cpu: make_node(name, labels={"zone": zone}, cpu=f"{cpu}m"),
    st.sampled_from(("n0", "n1", "n2")),
    st.sampled_from(("x", "y")),
    st.sampled_from((0, 0, 0, 500)),
)
templates = st.builds(
    lambda name, labels, cpu, count, other: make_node(
        name, labels=labels, cpu=f"{cpu}m", pods=count, **other
    ),
    st.sampled_from(("t", "u")),
    st.sampled_from(({"zone": "x"}, {"zone": "x"}, {"zone": "z"}, {"zone": "y", "rack": "1"}, {})),
    st.integers(900, 4000),
    st.sampled_from((1, 2, 3, 8)),
    st.sampled_from(({}, {}, {}, {"unschedulable": True}, {"example.com/gpu": 3})),
)
daemons = st.one_of(*[st.just([])] * 5, st.lists(inter_pod.pods(("agent",)), max_size=1))


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(st.just([]), st.lists(st.one_of(existing, existing, inter_pod.nodes()), max_size=3)),
    st.lists(
        st.tuples(st.one_of(neighbours, inter_pod.pods()), st.sampled_from(("n0", "n1", "n2"))), max_size=4
    ),
    st.lists(st.tuples(templates, daemons), min_size=1, max_size=3),
    groups_of_pods,
    st.sampled_from((0, 1, 3, 20)),
    st.integers(0, 9),
    st.sampled_from((0, 100, 100, 100)),
    st.sampled_from((1, 12)),
    st.data(),
)
def test_every_way_of_estimating_is_one_pod_at_a_time(
    nodes, there, asked, groups, threshold, start, few, looks, data
):
    """It does not matter whether pods are counted by kind or taken one by one, and what was estimated before."""
    snapshot = Snapshot()
    snapshot.set_facts(ClusterFacts(namespaces=inter_pod.NAMESPACES))
    for node in nodes:
        snapshot.set_node(node)
    limits = Limits((threshold or 30,))
    estimator = Estimator(snapshot, groups)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "PODS_A_CLASS_ONE_BY_ONE", few)
        patch.setattr(packing_single, "NEW_NODES_ONE_BY_ONE", looks)
        for template, daemon_pods in asked:
            numbers = [
                at for at in range(len(groups)) if data.draw(st.sampled_from((True, True, True, False)))
            ]
            given_groups = [groups[at] for at in numbers]
            version = snapshot.version
            found = run_to_end(estimator.estimate(template, daemon_pods, numbers, limits, start=start))
            assert snapshot.version == version
            count, counts, added, limited, end = reference_estimate(
                snapshot, template, daemon_pods, given_groups, limits, start
            )
            assert [len(pods) for pods in found.scheduled] == [sum(row.values()) for row in counts]
            assert (found.nodes, found.added, found.limited) == (count, tuple(added), limited)
            for name in (*found.added, *found.borrowed):
                expected = {index: row[name] for index, row in enumerate(counts) if name in row}
                assert found.pods_on(name) == expected
            rows = len(snapshot) + len(added)
            assert not rows or found.start % rows == end % rows
            start = found.start
            if there:
                snapshot.add_pod(*there.pop())


def with_port(name, port):
    return make_pod(
        name, containers=(plain.make_container({"cpu": "1m"}, ports=(ContainerPort(host_port=port),)),)
    )


def test_ports_of_daemon_pods_exclude_pods_from_every_new_node():
    """A port that a DaemonSet's pod has on each new node is never free; another one is once a node."""
    groups = numbered([(with_port("p", 80), 2), (with_port("q", 81), 2)])
    found = estimate(Snapshot(), make_node("t"), [with_port("agent", 80)], groups, Limits((5,)))
    assert [len(pods) for pods in found.scheduled] == [0, 2]
    assert found.nodes == 2


def test_names_that_are_taken_are_not_those_of_new_nodes():
    """Where an existing node has the name that a new node would get, the estimate is that of placing one at a time."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("t-e-0", cpu="0m"))
    app = LabelSelector(match_labels={"app": "a"})
    apart = PodAffinityTerm(label_selector=app, topology_key=HOSTNAME)
    groups = numbered([(inter_pod.pod("p", "default", "a", [], [apart], [], 300, None), 2)])
    found = estimate(snapshot, make_node("t"), (), groups, Limits((5,)))
    count, counts, *_ = reference_estimate(snapshot, make_node("t"), (), groups, Limits((5,)), 1)
    assert (found.nodes, [len(pods) for pods in found.scheduled]) == (
        count,
        [sum(row.values()) for row in counts],
    )


def test_a_fork_that_grew_leaves_the_next_estimates_right():
    """Between two estimates by one estimator, others may add enough nodes on a fork that columns are made anew."""
    snapshot = Snapshot()
    plain_pod, spread = (neighbour("p", "a", "a", rules, 100, 1, 2) for rules in ((), ("spread zone",)))
    groups = numbered([(plain_pod, 3), (spread, 1)])
    estimator = Estimator(snapshot, groups)
    for zone in ("x", "y"):
        template = make_node("t", labels={"zone": zone}, cpu="900m", pods=1)
        found = run_to_end(estimator.estimate(template, (), range(2), Limits()))
        assert [len(pods) for pods in found.scheduled] == [3, 0]
        snapshot.fork()
        snapshot.add_templates(template, (), [f"other-{at}" for at in range(20)])
        snapshot.revert()


def test_existing_nodes_affect_new_ones():
    """A full node without pods of a kind limits their spread to one a node; one with such a pod in another zone attracts them to that zone."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0", labels={"zone": "x"}, cpu="0m"))
    spread = neighbour("p", "a", "a", (f"spread {HOSTNAME}",), 100, 1, None)
    found = estimate(snapshot, make_node("t"), (), numbered([(spread, 3), (spread, 1)]), Limits((5,)))
    assert found.nodes == 4
    snapshot.add_pod(neighbour("q", "a", "a", (), 0, 1, None), "n0")
    near = numbered([(neighbour("p", "a", "a", ("near zone",), 100, 1, None), 2)])
    estimator = Estimator(snapshot, near)
    far, here = (make_node("t", labels={"zone": zone}) for zone in ("y", "x"))
    assert [run_to_end(estimator.estimate(one, (), [0], Limits())).nodes for one in (far, here)] == [0, 1]


@pytest.mark.parametrize(("full_nodes", "least_domains", "nodes"), [(0, 3, 3), (0, 5, 5), (2, 5, 20)])
def test_new_nodes_are_the_domains_that_a_spread_requires(full_nodes, least_domains, nodes):
    """Pods that must stand on so many nodes at least are one a node up to that number, and then share them evenly."""
    snapshot = Snapshot()
    spread = neighbour("p", "a", "a", (f"spread {HOSTNAME}",), 100, 1, least_domains)
    for at in range(full_nodes):
        snapshot.set_node(make_node(f"n{at}", cpu="0m"))
        snapshot.add_pod(plain.renamed(spread, f"old-{at}"), f"n{at}")
    groups, template = numbered([(spread, 40)]), make_node("t", cpu="4000m", pods=40)
    found = estimate(snapshot, template, (), groups, Limits())
    count, counts, *_ = reference_estimate(snapshot, template, (), groups, Limits(), 1)
    assert found.nodes == count == nodes
    assert [found.pods_on(name) for name in found.added] == [{0: counts[0][name]} for name in found.added]


@pytest.mark.parametrize(
    ("rules", "old_pods", "pods", "nodes"),
    [((f"apart {HOSTNAME}",), 3, 5, 5), ((), 4, 9, 5)],
)
def test_pods_fall_back_on_a_zone_that_new_nodes_open(rules, old_pods, pods, nodes):
    """Once new nodes have made up the arrears of their zone, a pod that is uneven on the last one goes to a node of the other zone."""
    snapshot = Snapshot()
    pod = neighbour("p", "a", "a", ("spread zone", f"spread {HOSTNAME}", *rules), 100, 1, None)
    snapshot.set_node(make_node("free", labels={"zone": "x"}, pods=2))
    snapshot.set_node(make_node("full", labels={"zone": "x"}, cpu="0m"))
    for at in range(old_pods):
        snapshot.add_pod(plain.renamed(pod, f"old-{at}"), "full")
    groups, template = numbered([(pod, pods)]), make_node("t", labels={"zone": "y"}, pods=40)
    found = estimate(snapshot, template, (), groups, Limits())
    count, counts, *_ = reference_estimate(snapshot, template, (), groups, Limits(), 1)
    assert found.nodes == count == nodes
    assert found.borrowed == ("free",)
    placed = {name: found.pods_on(name) for name in (*found.added, *found.borrowed)}
    assert {name: one[0] for name, one in placed.items() if one} == counts[0]


def test_daemon_pods_of_new_nodes_count_where_pods_are_spread():
    """A DaemonSet's pod that a spread counts takes one place of its zone with each node."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("full", labels={"zone": "x"}, cpu="0m"))
    for at in range(20):
        snapshot.add_pod(neighbour(f"old-{at}", "a", "a", (), 0, 1, None), "full")
    spread, agent = (neighbour("p", "a", "a", rules, 100, 1, None) for rules in (("spread zone",), ()))
    groups, template = numbered([(spread, 40)]), make_node("t", labels={"zone": "y"}, pods=4)
    found = estimate(snapshot, template, [agent], groups, Limits())
    count, counts, *_ = reference_estimate(snapshot, template, [agent], groups, Limits(), 1)
    # Five nodes with a daemon pod and three others each; with the sixth's daemon pod the zone has all it may have.
    assert (found.nodes, len(found.scheduled[0])) == (count, sum(counts[0].values())) == (5, 15)


def with_claim(number):
    """A pod with claim ``c<number>``; every other one has anti-affinity to its like by hostname."""
    made = neighbour(f"p{number}", "a", "a", (f"apart {HOSTNAME}",) if number % 2 else (), 300, 1, None)
    source = PersistentVolumeClaimVolume(claim_name=f"c{number}")
    volumes = (Volume(name="data", persistent_volume_claim=source),)
    return replace(made, spec=replace(made.spec, volumes=volumes))


@pytest.mark.parametrize("few", [0, 100])
def test_volumes_are_looked_at_for_each_template(monkeypatch, few):
    """Claims whose volumes are made in one zone, or exist, bring nodes in that zone alone; limits of other nodes do not count."""
    monkeypatch.setattr(packing, "PODS_A_CLASS_ONE_BY_ONE", few)
    claims = [
        samples.claim(f"c{at}", **({"volumeName": "v"} if at == 4 else {"storageClassName": "late"}))
        for at in range(5)
    ]
    for body in claims:
        body["metadata"] |= {
            "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        }
    where = {"matchLabelExpressions": [{"key": "zone", "values": ["x"]}]}
    late = samples.storage_class("late", volumeBindingMode="WaitForFirstConsumer", allowedTopologies=[where])
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["y"]}]}
    bound = samples.volume("v", nodeAffinity={"required": {"nodeSelectorTerms": [term]}})
    driver = CsiNodeDriver(name="csi.test", allocatable=VolumeCount(count=1))
    csi_node = CSINode(metadata=ObjectMeta(name="n0"), spec=CsiNodeSpec(drivers=(driver,)))
    volumes = Volumes(
        claims={
            ("default", body["metadata"]["name"]): convert(body, PersistentVolumeClaim) for body in claims
        },
        storage_classes={"late": convert(late, StorageClass)},
        persistent_volumes={"v": convert(bound, PersistentVolume)},
        csi_nodes={"n0": csi_node},
    )
    snapshot = Snapshot()
    snapshot.set_facts(ClusterFacts(volumes=volumes))
    snapshot.set_node(make_node("n0", labels={"zone": "x"}, cpu="0m"))
    groups = numbered([(with_claim(at), 1) for at in range(5)])
    estimator = Estimator(snapshot, groups)
    for zone, served in (("x", [1, 1, 1, 1, 0]), ("y", [0, 0, 0, 0, 1])):
        template = make_node("t", labels={"zone": zone})
        found = run_to_end(estimator.estimate(template, (), range(5), Limits((9,))))
        assert [len(pods) for pods in found.scheduled] == served
        count, counts, added, *_ = reference_estimate(snapshot, template, (), groups, Limits((9,)), 1)
        assert (found.nodes, found.added) == (count, tuple(added))
        assert [sum(row.values()) for row in counts] == served


def test_nodes_too_full_for_a_size_are_passed_over_and_no_others():
    """A node is full for pods of its size only where amounts excluded one, and what comes after it is still considered."""
    apart = neighbour("p", "a", "a", (f"apart {HOSTNAME}",), 300, 1, None)
    plain_ones = neighbour("q", "b", "b", (), 300, 1, None)
    groups = numbered([(apart, 1), (apart, 1), (plain_ones, 4)])
    assert estimate(Snapshot(), make_node("t", cpu="900m"), (), groups, Limits()).nodes == 2
    big, middle = (neighbour("p", "a", "a", (), cpu, 1, None) for cpu in (900, 500))
    template = make_node("t", cpu="1200m")
    found = estimate(
        Snapshot(), template, (), numbered([(big, 1), (middle, 1), (middle, 1)]), Limits(), start=0
    )
    assert found.nodes == 2
