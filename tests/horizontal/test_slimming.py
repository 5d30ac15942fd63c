"""The loop's caches leave out only fields that the loop does not read."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubetide.horizontal.controller.slimming import slim_deployment, slim_hpa, slim_replica_set
from kubetide.horizontal.controller.targets import Targets, view_of_workload
from kubetide.horizontal.facts.specs import read_spec
from kubetide.horizontal.facts.views import HpaView, view_of_hpa
from kubetide.horizontal.settings import Settings
from kubetide.objects.hpa import HorizontalPodAutoscaler, HpaSpec, HpaStatus
from kubetide.objects.workload import Deployment, ReplicaSet
from kubetide.testing import builders

NAMES = st.sampled_from(["web", "api"])
NUMBERS = st.one_of(st.none(), st.integers(0, 3))
SELECTORS = st.sampled_from(
    [
        None,
        {},
        {"matchLabels": {"app": "web", "tier": "x"}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]},
        {"matchExpressions": [{"key": "app", "operator": "Near", "values": []}]},
    ]
)


@st.composite
def workloads(draw):
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "controller": draw(st.booleans())}
    meta = {
        "name": draw(NAMES),
        "namespace": "n",
        "uid": draw(NAMES),
        "resourceVersion": draw(NAMES),
        "labels": {"app": "x"},
        "annotations": draw(
            st.sampled_from([None, {}, {"a": "b"}, {"deployment.kubernetes.io/revision": "7", "a": "b"}])
        ),
        "ownerReferences": draw(st.sampled_from([None, [], [{**owner, "name": "web", "uid": "web"}]])),
    }
    template = {"spec": {"containers": [{"name": "app", "image": "i:1"}]}}
    spec = {"replicas": draw(NUMBERS), "selector": draw(SELECTORS), "template": template}
    status = {"replicas": draw(st.integers(0, 3)), "readyReplicas": 1}
    return {"metadata": meta, "spec": spec, "status": status}


def autoscaler(kind, **annotations):
    body = builders.hpa("web", "web")
    body["spec"]["scaleTargetRef"] = {"apiVersion": "apps/v1", "kind": kind, "name": "web"}
    spec = msgspec.convert(body["spec"], HpaSpec)
    named = {f"horizontal.kubetide.io/{name}": text for name, text in annotations.items()}
    return read_spec(HpaView("n", "web", "", spec, named), Settings())


@given(workloads())
def test_a_slim_workload_has_the_same_scale(body):
    """Replicas, selector and version of the scale are those of the whole object."""
    for model, slim in ((Deployment, slim_deployment), (ReplicaSet, slim_replica_set)):
        spec, whole = autoscaler(model.__name__), msgspec.convert(body, model)
        assert view_of_workload(spec, slim(whole)) == view_of_workload(spec, msgspec.convert(body, model))


@given(workloads(), st.lists(workloads(), max_size=4))
def test_slim_workloads_have_the_same_owners(deployment, sets):
    """Slim workloads show which ReplicaSets belong to a Deployment, and which of them is the newest."""
    spec = autoscaler("Deployment", **{"count-only-owned": "true", "count-old-during-rollout": "true"})
    assert spec.options.asks_for_owners

    def owners(of_deployment, of_set):
        target = of_deployment(msgspec.convert(deployment, Deployment))
        there = [of_set(msgspec.convert(one, ReplicaSet)) for one in sets]
        cached = {
            ("apps", "Deployment"): {("n", "web"): target},
            ("apps", "ReplicaSet"): {("n", f"{number}"): one for number, one in enumerate(there)},
        }
        return Targets(None, (), cached, None).with_owners(spec, view_of_workload(spec, target))

    assert owners(slim_deployment, slim_replica_set) == owners(lambda one: one, lambda one: one)


@given(
    annotations=st.sampled_from([None, {}, {"a": "b"}, {"horizontal.kubetide.io/pause": "up", "a": "b"}]),
    most=st.integers(1, 3),
    known=st.sampled_from(["nothing", "the same", "another"]),
)
def test_a_slim_hpa_has_the_same_view_and_status(annotations, most, known):
    """Whatever HPA the loop has cached already, the slim one equals what came, and equal parts are one object."""
    body = builders.hpa("web", "web", max_replicas=most)
    body["metadata"] |= {"annotations": annotations, "uid": "u", "resourceVersion": "7"}
    body["status"] = {
        "desiredReplicas": 2,
        "conditions": [
            {"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        ],
    }

    def read():
        return msgspec.convert(body, HorizontalPodAutoscaler)

    view, status = None, None
    if known == "the same":
        view, status = view_of_hpa(read()), read().status
    elif known == "another":
        view, status = msgspec.structs.replace(view_of_hpa(read()), spec=HpaSpec()), HpaStatus()
    slim = slim_hpa(read(), view, status)
    assert view_of_hpa(slim) == view_of_hpa(read())
    assert slim.status == read().status
    assert slim.metadata.resource_version == "7"
    if known == "the same":
        assert slim.spec is view.spec
        assert slim.status is status
