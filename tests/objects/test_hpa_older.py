"""Autoscalers of older versions in manifests become what autoscaling/v2 says for the same thing."""

from __future__ import annotations

import pytest
import yaml

from kubetide.embedded.apiserver.manifests.manifest import ManifestError, load_manifests
from kubetide.objects.kinds import HPAS

_TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
INGRESS = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}
LABELS = {"matchLabels": {"q": "a"}}


def manifest(version, **spec):
    body = {
        "apiVersion": f"autoscaling/{version}",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": _TARGET, "maxReplicas": 9, **spec},
    }
    return yaml.safe_dump(body)


def read(text):
    [(kind, value)] = load_manifests(text, "hpa.yaml")
    assert (kind, value["apiVersion"]) == (HPAS, "autoscaling/v2")
    return value["spec"]


V2 = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "memory", "container": "app", "target": {"type": "AverageValue", "averageValue": "1Gi"},
        },
    },
    {
        "type": "Pods",
        "pods": {"metric": {"name": "rps", "selector": LABELS}, "target": {"type": "AverageValue", "averageValue": "5"}},
    },
    {
        "type": "Object",
        "object": {
            "describedObject": INGRESS, "metric": {"name": "hits"}, "target": {"type": "Value", "value": "100"},
        },
    },
    {
        "type": "External",
        "external": {
            "metric": {"name": "queue", "selector": LABELS}, "target": {"type": "AverageValue", "averageValue": "3"},
        },
    },
]  # fmt: skip
V2BETA1 = [
    {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 60}},
    {
        "type": "ContainerResource",
        "containerResource": {"name": "memory", "container": "app", "targetAverageValue": "1Gi"},
    },
    {"type": "Pods", "pods": {"metricName": "rps", "selector": LABELS, "targetAverageValue": "5"}},
    {"type": "Object", "object": {"target": INGRESS, "metricName": "hits", "targetValue": "100"}},
    {
        "type": "External",
        "external": {"metricName": "queue", "metricSelector": LABELS, "targetAverageValue": "3"},
    },
]


def test_v2beta1_writes_metrics_in_another_shape():
    """Every type comes out as v2 writes it."""
    assert read(manifest("v2beta1", metrics=V2BETA1)) == read(manifest("v2", metrics=V2))


def test_v2beta2_has_the_fields_of_v2():
    """Metrics and behavior are taken over as they are."""
    rules = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}
    assert read(manifest("v2beta2", metrics=V2, **rules)) == read(manifest("v2", metrics=V2, **rules))


def test_v1_has_a_percentage():
    """The CPU target of v1 is a metric of v2."""
    assert read(manifest("v1", targetCPUUtilizationPercentage=60)) == read(manifest("v2", metrics=V2[:1]))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (manifest("v1", metrics=V2), "spec.metrics: unknown field"),
        (manifest("v2beta1", behavior={}), "spec.behavior: unknown field"),
        (
            manifest("v2beta1", metrics=[{"type": "Resource", "resource": {"name": "cpu", "target": {}}}]),
            "spec.metrics[0].resource.target: unknown field",
        ),
        (manifest("v2beta1", metrics=[{"type": "Gauge"}]), "spec.metrics[0]: a metric of v2beta1 is a map"),
        (manifest("v2beta1", metrics=[{"type": "Pods"}]), "spec.metrics[0].pods: is missing"),
        (manifest("v2beta2", metrics=V2BETA1[:1]), "spec.metrics[0].resource"),
        (manifest("v3"), 'apiVersion: "autoscaling/v3" does not serve HorizontalPodAutoscaler'),
    ],
)
def test_what_is_wrong_is_said_at_the_field_that_was_written(text, problem):
    """Fields of another version are mistakes, in the terms of the version that was written."""
    with pytest.raises(ManifestError) as caught:
        load_manifests(text, "hpa.yaml")
    assert problem in str(caught.value)
