"""What the doctor says of ElasticWorkloads: their horizontal sections, and those that nothing follows."""

from __future__ import annotations

import msgspec
from tests.doctor.findings import found, hpa, without_requests
from tests.nodes.frozen import deployment

from kubetide.objects.elastic import ElasticWorkload


def elastic(name, target="web", *, accepted=True, said=None, **spec):
    horizontal = {"minReplicas": 1, "maxReplicas": 3, "metrics": []}
    conditions = [{"type": "Accepted", "status": "True"}] if accepted else []
    body = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "horizontal": horizontal,
            **spec,
        },
        "status": {"conditions": conditions, "schedule": said},
    }
    return msgspec.convert(body, ElasticWorkload)


def test_horizontal_sections_are_looked_at_as_hpas_are():
    """No target, utilization without requests and equal bounds are found; equal bounds of a schedule are not."""
    web, bare = deployment("web", 1), without_requests("bare")
    everything = {
        "deployments": (web, bare),
        "elastic": (
            elastic("lost", "gone"),
            elastic("bare", "bare"),
            elastic("fixed", horizontal={"minReplicas": 2, "maxReplicas": 2, "metrics": []}),
        ),
    }
    for check, name in (("hpa-target", "lost"), ("hpa-requests", "bare"), ("hpa-bounds", "fixed")):
        (one,) = found(check, **everything)
        assert one.object == f"ElasticWorkload default/{name}"
    schedule = {"rules": [{"at": "0 8 * * *", "replicas": 2}]}
    held = elastic("held", schedule=schedule, said={"minReplicas": 2, "maxReplicas": 2})
    assert found("hpa-bounds", deployments=(web,), elastic=(held,)) == []


def test_elastic_workloads_that_nothing_follows():
    """Invalid ones, those beside an HPA and those that no controller has answered are found; others are left alone."""
    web = deployment("web", 1)

    def seen(*objects, **more):
        return [one.seen for one in found("elastic", deployments=(web,), elastic=objects, **more)]

    assert seen(elastic("good")) == []
    assert seen(elastic("new", accepted=False)) == ["it has no condition: no controller has answered it"]
    (text,) = seen(elastic("good"), hpas=(hpa("other", "web"),))
    assert text.startswith("Conflict: HorizontalPodAutoscaler other is in the way of Deployment web")
    (text,) = seen(elastic("bad", horizontal={"minReplicas": 3, "maxReplicas": 2}))
    assert text.startswith("InvalidSpec: spec.horizontal.maxReplicas")
    bad = elastic("good", schedule={"rules": []}, said={"problems": ["rules[0].at: 99 is no minute"]})
    assert seen(bad) == ["rules[0].at: 99 is no minute"]
