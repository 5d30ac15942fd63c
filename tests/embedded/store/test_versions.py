"""The same autoscaler in its two versions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.store import EmbeddedCluster, Options, Request, Rest, Store
from kubetide.objects.hpa_v1 import BEHAVIOR, CONDITIONS, CURRENT_METRICS, METRICS, v1_of, v2_of
from kubetide.objects.kinds import HPAS, HPAS_V1, PODS
from kubetide.ports.errors import BadRequest, Conflict, Invalid, NotFound
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import parse_rfc3339

START = parse_rfc3339("2026-03-02T08:00:00Z")
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


class Clock:
    def now(self):
        return START


@pytest.fixture
def rest():
    return Rest(Store(), Clock(), seed=1)


def send(rest, verb, kind, name="", body=None, subresource="", **options):
    return rest.handle(
        Request(verb, kind, "default", name, subresource, Options(**options), body)
    ).object.json


def v1(**spec):
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": TARGET, "maxReplicas": 5, **spec},
    }


def resource(name, **target):
    return {"type": "Resource", "resource": {"name": name, "target": target}}


CPU = resource("cpu", type="Utilization", averageUtilization=60)
MEMORY = resource("memory", type="AverageValue", averageValue="1Gi")


def test_a_v1_autoscaler_is_stored_as_v2(rest):
    """An HPA created in v1 is read in either version, with the target as a cpu metric in v2."""
    made = send(rest, "create", HPAS_V1, body=v1(targetCPUUtilizationPercentage=60))
    assert made["apiVersion"] == "autoscaling/v1"
    assert made["spec"]["targetCPUUtilizationPercentage"] == 60
    assert "metrics" not in made["spec"]
    read = send(rest, "get", HPAS, "web")
    assert (read["apiVersion"], read["spec"]["metrics"]) == ("autoscaling/v2", [CPU])


def test_without_a_target_it_is_80_percent(rest):
    """A v1 autoscaler that says no target has that of v2's default."""
    assert send(rest, "create", HPAS_V1, body=v1())["spec"]["targetCPUUtilizationPercentage"] == 80


def test_what_v1_has_no_field_for_is_annotated(rest):
    """Other metrics, behavior, conditions and current metrics are annotations in v1."""
    body = v1()
    body["apiVersion"] = "autoscaling/v2"
    body["spec"] |= {"metrics": [MEMORY, CPU], "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}
    send(rest, "create", HPAS, body=body)
    condition = {"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-03-02T08:00:00Z"}
    current = {
        "type": "Resource",
        "resource": {"name": "cpu", "current": {"averageUtilization": 55, "averageValue": "55m"}},
    }
    status = {"currentReplicas": 1, "conditions": [condition], "currentMetrics": [current]}
    send(rest, "patch", HPAS, "web", {"status": status}, "status")
    read = send(rest, "get", HPAS_V1, "web")
    notes = {name: json.loads(text) for name, text in read["metadata"]["annotations"].items()}
    assert notes[METRICS] == [
        {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}}
    ]
    assert notes[BEHAVIOR]["ScaleDown"]["StabilizationWindowSeconds"] == 60
    assert notes[CONDITIONS] == [condition]
    assert notes[CURRENT_METRICS] == [
        {
            "type": "Resource",
            "resource": {"name": "cpu", "currentAverageUtilization": 55, "currentAverageValue": "55m"},
        }
    ]
    assert read["status"] == {"currentReplicas": 1, "currentCPUUtilizationPercentage": 55}


def test_annotations_of_v1_mean_nothing_in_v2(rest):
    """They are dropped, and so never come back as metrics of an object that is read and written in v1."""
    body = v1()
    body["apiVersion"] = "autoscaling/v2"
    memory = {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}}
    tolerance = "autoscaling.alpha.kubernetes.io/scale-up-tolerance"
    body["metadata"]["annotations"] = {METRICS: json.dumps([memory]), tolerance: "0.5", "mine": "stays"}
    body["spec"]["metrics"] = [CPU]
    made = send(rest, "create", HPAS, body=body)
    assert made["metadata"]["annotations"] == {"mine": "stays"}
    shown = send(rest, "get", HPAS_V1, "web")
    assert shown["metadata"]["annotations"] == {"mine": "stays"}
    send(rest, "replace", HPAS_V1, "web", shown)
    assert send(rest, "get", HPAS, "web")["spec"]["metrics"] == [CPU]


def test_v1_annotations_with_two_targets(rest):
    """Of an object metric the average counts, with a value beside it that is not 0; of an external one both stand, and are refused."""
    ref = {"kind": "Service", "name": "main"}
    about = {"target": ref, "metricName": "hits", "averageValue": "3", "targetValue": "7"}
    body = v1()
    body["metadata"]["annotations"] = {METRICS: json.dumps([{"type": "Object", "object": about}])}
    send(rest, "create", HPAS_V1, body=body)
    metric = send(rest, "get", HPAS, "web")["spec"]["metrics"][0]["object"]
    assert metric["target"] == {"type": "AverageValue", "averageValue": "3", "value": "7"}
    queue = {"metricName": "queue", "targetAverageValue": "3", "targetValue": "7"}
    body["metadata"] |= {
        "name": "queue",
        "annotations": {METRICS: json.dumps([{"type": "External", "external": queue}])},
    }
    with pytest.raises(Invalid, match="may not set both"):
        send(rest, "create", HPAS_V1, body=body)


def test_a_patch_in_v1_leaves_the_rest(rest):
    """A merge patch of the v1 target changes that metric; metrics of other types and behavior stay."""
    body = v1()
    body["apiVersion"] = "autoscaling/v2"
    body["spec"] |= {"metrics": [MEMORY, CPU], "behavior": {"scaleUp": {"stabilizationWindowSeconds": 5}}}
    before = send(rest, "create", HPAS, body=body)
    patch = {"spec": {"targetCPUUtilizationPercentage": 70, "maxReplicas": 9}}
    send(rest, "patch", HPAS_V1, "web", patch)
    after = send(rest, "get", HPAS, "web")
    assert after["spec"]["maxReplicas"] == 9
    assert after["spec"]["metrics"] == [MEMORY, resource("cpu", type="Utilization", averageUtilization=70)]
    assert after["spec"]["behavior"] == before["spec"]["behavior"]
    assert "annotations" not in after["metadata"]


def test_json_patch_status_and_apply_work_in_v1(rest):
    """All kinds of patch, a PUT and the status are accepted in v1."""
    made = send(rest, "create", HPAS_V1, body=v1())
    op = {"op": "replace", "path": "/spec/targetCPUUtilizationPercentage", "value": 33}
    assert (
        send(rest, "patch", HPAS_V1, "web", [op], patch_type="json")["spec"]["targetCPUUtilizationPercentage"]
        == 33
    )
    config = v1(targetCPUUtilizationPercentage=44)
    applied = send(rest, "patch", HPAS_V1, "web", config, patch_type="apply", field_manager="m", force=True)
    assert applied["spec"]["targetCPUUtilizationPercentage"] == 44
    used = {"status": {"currentReplicas": 3, "currentCPUUtilizationPercentage": 12}}
    shown = send(rest, "patch", HPAS_V1, "web", used, "status")
    assert shown["status"]["currentCPUUtilizationPercentage"] == 12
    with pytest.raises(Conflict):
        send(rest, "replace", HPAS_V1, "web", made)
    shown["spec"]["maxReplicas"] = 50
    assert send(rest, "replace", HPAS_V1, "web", shown)["spec"]["maxReplicas"] == 50
    assert send(rest, "delete", HPAS_V1, "web")["apiVersion"] == "autoscaling/v1"


def test_bad_bodies_are_refused(rest):
    """Another version's body, a wrong type and a broken rule are refused as ever."""
    with pytest.raises(BadRequest, match="unknown conversion"):
        send(rest, "create", HPAS_V1, body={**v1(), "apiVersion": "autoscaling/v2"})
    with pytest.raises(BadRequest, match="cannot be handled as a HorizontalPodAutoscaler"):
        send(rest, "create", HPAS_V1, body=v1(targetCPUUtilizationPercentage="x"))
    with pytest.raises(Invalid, match="maxReplicas"):
        send(rest, "create", HPAS_V1, body=v1(maxReplicas=0))
    with pytest.raises(NotFound):
        send(rest, "patch", HPAS_V1, "none", {})


def test_a_version_that_nobody_serves_is_not_found(rest):
    """Asking a stored kind in an unknown version is NotFound."""
    kind = HPAS_V1.untyped
    other = type(kind)(kind.group, "v9", kind.kind, kind.plural, dict)
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        send(rest, "get", other, "web")
    assert {(one.group, one.version) for one in rest.kinds} >= {("autoscaling", "v1"), ("autoscaling", "v2")}
    assert PODS in rest.kinds


def test_lists_and_watches_show_the_requested_version():
    """A client of the port lists and watches typed v1 objects."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock)
        await cluster.create(HPAS_V1, v1(targetCPUUtilizationPercentage=60), namespace="default")
        listing = await cluster.list(HPAS_V1)
        assert [one.spec.target_cpu_utilization_percentage for one in listing.items] == [60]
        watch = cluster.watch(HPAS_V1, resource_version=listing.resource_version)
        await cluster.patch(HPAS, "web", {"spec": {"maxReplicas": 6}}, namespace="default")
        assert await anext(watch) == ()  # it is open
        [event] = await anext(watch)
        await watch.aclose()
        assert event.object.api_version == "autoscaling/v1"
        assert event.object.spec.max_replicas == 6

    run_virtual(main, start=START)


identifier = st.sampled_from([{"name": "m"}, {"name": "m", "selector": {"matchLabels": {"a": "b"}}}])
average = st.sampled_from([{"type": "AverageValue", "averageValue": "5"}])
value = st.sampled_from([{"type": "Value", "value": "7"}])
utilization = st.builds(lambda n: {"type": "Utilization", "averageUtilization": n}, st.integers(1, 99))
metric = st.one_of(
    st.builds(
        lambda target: {"type": "Resource", "resource": {"name": "memory", "target": target}},
        average | utilization,
    ),
    st.builds(
        lambda target: {
            "type": "ContainerResource",
            "containerResource": {"name": "cpu", "container": "c", "target": target},
        },
        average | utilization,
    ),
    st.builds(
        lambda m, target: {"type": "Pods", "pods": {"metric": m, "target": target}}, identifier, average
    ),
    st.builds(
        lambda m, target: {
            "type": "Object",
            "object": {"describedObject": TARGET, "metric": m, "target": target},
        },
        identifier,
        average | value,
    ),
    st.builds(
        lambda m, target: {"type": "External", "external": {"metric": m, "target": target}},
        identifier,
        average | value,
    ),
)
policy = {"type": "Pods", "value": 4, "periodSeconds": 15}


@given(st.lists(metric, max_size=4), utilization, st.booleans())
@settings(max_examples=60)
def test_v2_to_v1_and_back_is_the_same(metrics, cpu, behaves):
    """Every v2 autoscaler comes back from v1 as it was, its cpu target at the end."""
    metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": cpu}})
    spec = {"scaleTargetRef": TARGET, "maxReplicas": 5, "metrics": metrics}
    if behaves:
        spec["behavior"] = {"scaleUp": {"policies": [policy], "selectPolicy": "Max", "tolerance": "100m"}}
    hpa = {"apiVersion": "autoscaling/v2", "metadata": {"annotations": {"a": "b"}}, "spec": spec}
    assert v2_of(v1_of(hpa)) == hpa


def test_annotations_are_written_in_the_order_of_the_types():
    """Fields that v1 stores in annotations have the order of upstream's types, whatever order they were sent in."""
    rule = {"policies": [{"periodSeconds": 15, "value": 4, "type": "Pods"}], "selectPolicy": "Max"}
    condition = {"reason": "R", "status": "True", "type": "AbleToScale"}
    notes = v1_of(
        {
            "spec": {"behavior": {"scaleDown": {"selectPolicy": "Min"}, "scaleUp": rule}},
            "status": {"conditions": [condition]},
        }
    )["metadata"]["annotations"]
    assert notes[BEHAVIOR] == (
        '{"ScaleUp":{"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}]},'
        '"ScaleDown":{"SelectPolicy":"Min"}}'
    )
    assert notes[CONDITIONS] == '[{"type":"AbleToScale","status":"True","reason":"R"}]'
