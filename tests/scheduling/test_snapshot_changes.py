"""Nodes and pods that come and go in a snapshot, and its forks, versions and classes of pods."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.scheduling.plain import make_node, make_pod

from kubetide.objects.meta import Condition
from kubetide.objects.pod import Affinity
from kubetide.scheduling import Snapshot, classify, classify_unbound


def test_pods_wait_for_their_node():
    """A pod that is observed before its node counts once the node is there, and again after the node has come back."""
    snapshot = Snapshot()
    snapshot.add_pod(make_pod("early", {"cpu": "1"}), "n0")
    assert snapshot.node_of(("default", "early")) == "n0"
    snapshot.set_node(make_node("n0"))
    assert snapshot.free["cpu"].tolist() == [3000]
    snapshot.remove_node("n0")
    assert not snapshot.node_names
    snapshot.set_node(make_node("n0"))
    assert snapshot.free["cpu"].tolist() == [3000]
    snapshot.remove_pod(("default", "early"))
    assert snapshot.free["cpu"].tolist() == [4000]
    assert snapshot.node_of(("default", "early")) is None


def test_removed_node_comes_back_last():
    """A node removed and added again goes to the end of the rows."""
    snapshot = Snapshot()
    for name in ("a", "b", "c"):
        snapshot.set_node(make_node(name))
    snapshot.remove_node("a")
    snapshot.set_node(make_node("a"))
    assert list(snapshot.node_names) == ["b", "c", "a"]


def test_version_changes_with_every_change():
    """The version identifies the content: it never has the same number for two contents."""
    snapshot = Snapshot()
    seen = [snapshot.version]

    def changed():
        assert snapshot.version not in seen
        seen.append(snapshot.version)

    node = make_node("n0")
    snapshot.set_node(node)
    changed()
    snapshot.set_node(node)
    assert snapshot.version == seen[-1]
    ready = replace(node, status=replace(node.status, conditions=(Condition(type="Ready", status="True"),)))
    snapshot.set_node(ready)
    changed()
    pod = make_pod("p", {"cpu": "1"})
    snapshot.fork()
    snapshot.add_pod(pod, "n0")
    changed()
    snapshot.revert()
    assert snapshot.version == seen[-2]
    snapshot.add_pod(pod, "n0")
    changed()
    snapshot.add_pod(make_pod("p", {"cpu": "1"}, priority=7), "n0")
    changed()
    snapshot.remove_pod(("default", "p"))
    changed()
    snapshot.remove_pod(("default", "p"))
    assert snapshot.version == seen[-1]


def test_views_cannot_be_written():
    """Arrays that a snapshot returns are read-only."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0"))
    vectors = [snapshot.feasible(classify(make_pod())), snapshot.unschedulable]
    vectors += [of["cpu"] for of in (snapshot.free, snapshot.allocatable, snapshot.requested)]
    for vector in vectors:
        with pytest.raises(ValueError, match="read-only"):
            vector[0] = 0


def test_fork_must_come_first():
    """Reverting or committing without a fork is an error that names fork()."""
    with pytest.raises(RuntimeError, match=r"Snapshot\.fork\(\)"):
        Snapshot().revert()
    with pytest.raises(RuntimeError, match=r"Snapshot\.fork\(\)"):
        Snapshot().commit()


def test_revert_restores_the_order_of_pods():
    """A pod that was removed and that a revert restores has its old position among the node's pods."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0"))
    for name in ("a", "b", "c"):
        snapshot.add_pod(make_pod(name), "n0")
    snapshot.fork()
    snapshot.remove_pod(("default", "a"))
    snapshot.add_pod(make_pod("d"), "n0")
    snapshot.revert()
    assert [pod.metadata.name for pod in snapshot.pods_on("n0")] == ["a", "b", "c"]


def test_cached_verdicts_of_a_class_follow_removed_nodes():
    """Verdicts are right before, inside and after a fork in which one node is removed and another filled."""
    snapshot = Snapshot()
    for name in ("n0", "n1", "n2"):
        snapshot.set_node(make_node(name))
    incoming = classify(make_pod("incoming", {"cpu": "1"}))
    assert snapshot.feasible(incoming).tolist() == [True, True, True]
    snapshot.fork()
    snapshot.remove_node("n0")
    assert snapshot.feasible(incoming).tolist() == [True, True]
    snapshot.add_pod(make_pod("big", {"cpu": "4"}), "n1")
    assert snapshot.feasible(incoming).tolist() == [False, True]
    snapshot.revert()
    assert snapshot.feasible(incoming).tolist() == [True, True, True]
    snapshot.add_pod(make_pod("big", {"cpu": "4"}), "n0")
    assert snapshot.feasible(incoming).tolist() == [False, True, True]
    assert [snapshot.fits(incoming, name) for name in snapshot.node_names] == [False, True, True]


def test_inner_commit_is_undone_by_the_outer_revert():
    """Changes that an inner fork commits belong to the outer one."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0"))
    snapshot.fork()
    snapshot.fork()
    snapshot.add_pod(make_pod("p", {"cpu": "1"}), "n0")
    snapshot.commit()
    assert snapshot.free["cpu"].tolist() == [3000]
    snapshot.revert()
    assert snapshot.free["cpu"].tolist() == [4000]


def test_templates_are_copied_under_a_name():
    """A template's copy has its own name and hostname and comes with its DaemonSet pods."""
    snapshot = Snapshot()
    template = make_node("template", labels={"zone": "a"})
    for index in range(2):
        snapshot.add_template(template, (make_pod("agent", {"cpu": "500m"}),), f"template-e-{index}")
    assert list(snapshot.node_names) == ["template-e-0", "template-e-1"]
    labels = snapshot.node("template-e-1").metadata.labels
    assert labels == {"kubernetes.io/hostname": "template-e-1", "zone": "a"}
    assert snapshot.free["cpu"].tolist() == [3500, 3500]
    assert template.metadata.name == "template"


def test_forgotten_classes_are_evaluated_again():
    """Verdicts and counts are the same as before, also for pods that come later; on a fork forgetting is refused."""
    term = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    apart = msgspec.convert(rules, Affinity)
    snapshots = [Snapshot(), Snapshot()]
    waiting = classify(make_pod("next", {"cpu": "1"}, labels={"app": "web"}, affinity=apart))
    found = []
    for at, snapshot in enumerate(snapshots):
        for name in ("a", "b", "c"):
            snapshot.set_node(make_node(name))
        snapshot.add_pod(make_pod("p1", {"cpu": "1"}, labels={"app": "web"}, affinity=apart), "a")
        before = snapshot.feasible(waiting).tolist()
        if at:
            snapshot.forget_classes()
        again = snapshot.feasible(waiting).tolist()
        snapshot.add_pod(make_pod("p2", {"cpu": "1"}, labels={"app": "web"}), "b")
        found.append((before, again, snapshot.feasible(waiting).tolist()))
    assert found[0] == found[1]
    assert found[0] == ([False, True, True], [False, True, True], [False, False, True])
    snapshots[0].fork()
    with pytest.raises(RuntimeError, match="on a fork"):
        snapshots[0].forget_classes()


def test_a_bound_pod_may_be_evaluated_without_its_node():
    """The class of a bound pod names its node; to move it, that name is left out."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0"))
    snapshot.set_node(make_node("n1"))
    pod = make_pod("p", {"cpu": "1"}, node_name="n1")
    assert snapshot.feasible(classify(pod)).tolist() == [False, True]
    assert snapshot.feasible(classify_unbound(pod)).tolist() == [True, True]
