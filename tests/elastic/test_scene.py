"""The index of ElasticWorkloads, and of what may be in their way."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubetide.elastic.sections import target_key
from kubetide.elastic.verdicts import Other, Scene
from kubetide.objects.elastic import ElasticWorkload
from kubetide.objects.hpa import CrossVersionObjectReference

NAMES = st.sampled_from(["a", "b"])


def reference(name):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


def workload(name, target):
    spec = {"targetRef": reference(target), "horizontal": {"maxReplicas": 3}}
    return msgspec.convert({"metadata": {"name": name, "namespace": "n"}, "spec": spec}, ElasticWorkload)


def other(name, target):
    ref = msgspec.convert(reference(target), CrossVersionObjectReference)
    return Other("HorizontalPodAutoscaler", "n", name, target_key("n", ref))


@given(st.lists(st.tuples(st.booleans(), NAMES, st.one_of(st.none(), NAMES)), max_size=12))
def test_whatever_came_and_went_the_verdicts_are_those_of_what_is_there(steps):
    """After any changes and deletions the scene is that of the objects that are left, and keeps nothing of the others."""
    scene, present = Scene(), {}
    for is_workload, name, target in steps:
        put(scene, is_workload, name, target)
        present[is_workload, name] = target
    fresh = Scene()
    for (is_workload, name), target in present.items():
        if target is not None:
            put(fresh, is_workload, name, target)
    assert vars(fresh)["_by_target"] == vars(scene)["_by_target"]
    assert vars(fresh)["_others_by_target"] == vars(scene)["_others_by_target"]
    assert {key: scene.verdict(key) for key in scene.workloads} == {
        key: fresh.verdict(key) for key in fresh.workloads
    }


def put(scene, is_workload, name, target):
    if is_workload:
        scene.put(("n", name), None if target is None else workload(name, target))
    else:
        key = ("HorizontalPodAutoscaler", "n", name)
        scene.put_other(key, None if target is None else other(name, target))
