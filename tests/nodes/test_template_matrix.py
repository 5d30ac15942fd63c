"""Groups evaluated together have the same verdicts and reasons as each template evaluated by itself."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.scheduling import inter_pod
from tests.scheduling.plain import make_node, make_pod
from tests.work import calls_of

from kubetide.nodes.scale_up.choosing.evaluate import evaluate_templates
from kubetide.nodes.templates.matrix import TemplateMatrix
from kubetide.nodes.templates.template import Template
from kubetide.scheduling import ClusterFacts, Snapshot, classify, fresh_node
from kubetide.scheduling.estimator.template import check_in_cluster

FACTS = ClusterFacts(namespaces=inter_pod.NAMESPACES)
GROUPS = ("t0", "t1", "t2", "t3", "t4", "t5")


def one_by_one(snapshot, templates, pod_class):
    """As in upstream: each template for itself, in the cluster where other pods matter."""
    if snapshot.has_inter_pod_rules(pod_class):
        found = [check_in_cluster(snapshot, one.node, one.pods, [pod_class])[0] for one in templates]
    else:
        found = [one.fresh.first_refusal(pod_class, one.node.metadata.name) for one in templates]
    return {at: refusal for at, refusal in enumerate(found) if refusal is not None}


@st.composite
def templates(draw):
    found = []
    daemons = draw(
        st.lists(inter_pod.pods(("d0", "d1")), max_size=2, unique_by=lambda one: one.metadata.name)
    )
    for name in GROUPS:
        node = draw(inter_pod.nodes((name,)))
        labels = {**(node.metadata.labels or {}), inter_pod.HOSTNAME: name}
        node = replace(node, metadata=replace(node.metadata, labels=labels))
        pods = tuple(one for one in daemons if draw(st.booleans()))
        found.append(Template(node, pods, "cloud", "drawn", fresh_node(node, pods, FACTS)))
    return found


@given(
    st.lists(inter_pod.nodes(), max_size=4, unique_by=lambda one: one.metadata.name),
    st.lists(inter_pod.pods(), max_size=6, unique_by=lambda one: one.metadata.name),
    templates(),
    st.lists(inter_pod.pods(("w",)), min_size=1, max_size=5),
    st.data(),
)
@settings(max_examples=80, deadline=None)
def test_template_matrix_together_changes_no_verdict(nodes, placed, made, waiting, data):
    """Clusters, templates with DaemonSet pods and waiting pods at random: refusals are equal in every part.

    They are equal when the same templates are asked again, in a cluster that has changed.
    """
    classes = [classify(pod) for pod in waiting]
    snapshot = Snapshot(FACTS)
    matrix = TemplateMatrix(made, snapshot.facts)
    before = evaluate_templates(snapshot, matrix, classes)
    assert before == {pod_class: one_by_one(snapshot, made, pod_class) for pod_class in classes}
    for node in nodes:
        snapshot.set_node(node)
    names = [node.metadata.name for node in nodes]
    for pod in placed if names else ():
        snapshot.add_pod(pod, data.draw(st.sampled_from(names)))
    together = evaluate_templates(snapshot, matrix, classes)
    assert together == {pod_class: one_by_one(snapshot, made, pod_class) for pod_class in classes}
    assert all(list(one) == sorted(one) for one in together.values())


def test_templates_that_have_not_changed_are_not_asked_again_about_the_same_pods():
    """The second answer about pods that fit nowhere takes less than a tenth of the work, and is the same."""
    made = []
    for at in range(40):
        node = make_node(
            f"t-{at}", labels={"pool": f"pool-{at}"}, cpu=str(2 + at % 3), memory="8Gi", pods="10"
        )
        made.append(Template(node, (), "cloud", "catalogue", fresh_node(node, (), FACTS)))
    waiting = [make_pod(f"big-{at}", {"cpu": str(10 + at)}) for at in range(15)]
    waiting += [make_pod(f"ssd-{at}", {"cpu": "1"}, node_selector={"disk": f"ssd-{at}"}) for at in range(15)]
    snapshot = Snapshot(FACTS)
    matrix = TemplateMatrix(made, snapshot.facts)
    classes = [classify(pod) for pod in waiting]
    found = []
    calls = [calls_of(lambda: found.append(evaluate_templates(snapshot, matrix, classes))) for _ in "12"]
    assert found[0] == found[1]
    assert all(len(refusals) == 40 for refusals in found[1].values())
    assert calls[1] < calls[0] / 10
