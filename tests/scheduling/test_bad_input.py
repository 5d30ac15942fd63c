"""Objects that contradict themselves, cannot be read or are far too large: a verdict, never an exception."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conformance.scheduling import devices_of, volumes_of
from tests.scheduling.nonsense import nodes, objects, pods
from tests.scheduling.plain import make_node, make_pod

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling import (
    ClusterFacts,
    Limits,
    Snapshot,
    classify,
    classify_unbound,
    equivalence_groups,
    estimate,
    place,
)


def agree(snapshot, pod_class):
    """All ways of asking give one answer, with words where it is no."""
    fits = dict(zip(snapshot.node_names, snapshot.feasible(pod_class).tolist(), strict=True))
    snapshot.refusals_by_plugin(pod_class)
    counts = snapshot.refusals(pod_class)
    for name, found in fits.items():
        refusal = snapshot.first_refusal(pod_class, name)
        assert found == snapshot.fits(pod_class, name) == (refusal is None)
        assert found or all(isinstance(reason, str) for reason in refusal.reasons)
    assert all(fits.values()) or sum(counts.values())


@settings(max_examples=250, deadline=None)
@given(st.lists(nodes, max_size=3), st.lists(pods, min_size=1, max_size=3), objects)
def test_whatever_the_objects_say_there_is_a_verdict(given_nodes, given_pods, given_objects):
    """Nodes, pods, volumes and devices with any nonsense in them are evaluated, placed, estimated and taken off."""
    snapshot = Snapshot()
    facts = ClusterFacts(volumes=volumes_of(given_objects), devices=devices_of(given_objects))
    snapshot.set_facts(facts)
    for node in given_nodes:
        snapshot.set_node(msgspec.convert(node, Node))
    read = [msgspec.convert(pod, Pod) for pod in given_pods]
    for pod in read:
        agree(snapshot, classify(pod))
    snapshot.fork()
    place(snapshot, read)
    for name in ("n0", "n9"):
        snapshot.add_pod(read[0], name)
        agree(snapshot, classify(read[-1]))
    snapshot.revert()
    template = msgspec.convert(given_nodes[0], Node) if given_nodes else make_node("template")
    estimate(snapshot, template, read[:1], equivalence_groups(read), Limits((3,)))
    for pod in read:
        snapshot.remove_pod((pod.metadata.namespace, pod.metadata.name))


def test_ten_thousand_classes():
    """More classes than are cached are each evaluated, and the first has its earlier verdict again."""
    snapshot = Snapshot()
    for name in ("n0", "n1"):
        snapshot.set_node(make_node(name))
    kinds = [classify_unbound(make_pod(requests={"cpu": f"{number}m"})) for number in range(10_000)]
    verdicts = [snapshot.feasible(kind).all() for kind in kinds]
    assert verdicts == [number <= 4000 for number in range(10_000)]
    assert snapshot.feasible(kinds[0]).all()


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_claims_and_volumes_that_name_each_other_in_a_circle(mode):
    """A claim bound to a volume that is bound to another claim, bound to the first's volume: refused, with words."""
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    given = {
        "pvcs": [
            {
                "metadata": {"name": f"c{n}", "namespace": "default", "annotations": bound},
                "spec": {"volumeName": f"v{1 - n}", "storageClassName": "s"},
            }
            for n in range(2)
        ],
        "pvs": [
            {
                "metadata": {"name": f"v{n}"},
                "spec": {"claimRef": {"namespace": "default", "name": f"c{n}"}, "storageClassName": "s"},
            }
            for n in range(2)
        ],
        "storageClasses": [{"metadata": {"name": "s"}, "provisioner": "x", "volumeBindingMode": mode}],
    }
    snapshot = Snapshot()
    snapshot.set_facts(ClusterFacts(volumes=volumes_of(given)))
    snapshot.set_node(make_node("n0"))
    uses = [{"name": f"u{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(2)]
    pod = msgspec.convert({"metadata": {"name": "p", "namespace": "default"}, "spec": {"volumes": uses}}, Pod)
    agree(snapshot, classify(pod))


def test_labels_of_a_megabyte():
    """A selector on a value that no label may have matches nothing; an equal value of a node's label still matches."""
    snapshot = Snapshot()
    text = "v" * (1 << 20)
    snapshot.set_node(make_node("n0", labels={"k": text}))
    assert snapshot.feasible(classify(make_pod(node_selector={"k": text}))).all()
    assert not snapshot.feasible(classify(make_pod(node_selector={"k": text + "!"}))).any()
