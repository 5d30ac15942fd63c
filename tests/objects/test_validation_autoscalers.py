"""HorizontalPodAutoscalers that the API server would refuse."""

from __future__ import annotations

import pytest
from tests.objects import samples
from tests.objects.validating import problems

from kubetide.embedded.apiserver.rules.hpa import validate_target_group


def metric(**fields):
    return samples.hpa(metrics=[fields])


def scale_down(**rules):
    return samples.hpa(behavior={"scaleDown": rules})


def container(name, container):
    target = {"type": "AverageValue", "averageValue": "1"}
    source = {"name": name, "container": container, "target": target}
    return metric(type="ContainerResource", containerResource=source)


CASES = [
    (container("gpu", "a.b"), [
        'spec.metrics[0].containerResource.name: Invalid value: "gpu": must be a standard resource type or fully qualified',
        'spec.metrics[0].containerResource.name: Invalid value: "gpu": must be a standard resource for containers',
        'spec.metrics[0].containerResource.container: Invalid value: "a.b": must not contain dots',
    ]),
    (samples.hpa(maxReplicas=0, minReplicas=None), [
        "spec.maxReplicas: Required value: must be set and greater than 0",
        "spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`",
    ]),
    (
        samples.hpa(minReplicas=5, maxReplicas=3),
        ["spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"],
    ),
    (
        samples.hpa(minReplicas=0),
        [
            ("spec.metrics: Forbidden: must specify at least one Object or External metric "
            "to support scaling to zero replicas")
        ],
    ),
    (
        samples.hpa(scaleTargetRef={"apiVersion": "v1", "kind": "Deployment"}),
        [
            "spec.scaleTargetRef.name: Required value",
            'spec.scaleTargetRef.apiVersion: Invalid value: "v1": apiVersion must specify API group',
        ],
    ),
    (
        samples.hpa(minReplicas=-2, maxReplicas=-3),
        [
            "spec.minReplicas: Invalid value: -2: must be greater than or equal to 0",
            "spec.maxReplicas: Invalid value: -3: must be greater than or equal to 1",
            "spec.maxReplicas: Invalid value: -3: must be greater than or equal to `minReplicas`",
        ],
    ),
    (
        samples.hpa(scaleTargetRef={"apiVersion": "apps/v1/x", "kind": "Deployment", "name": "web"}),
        [
            ('spec.scaleTargetRef.apiVersion: Invalid value: "apps/v1/x": '
            "unexpected GroupVersion string: apps/v1/x")
        ],
    ),
    (
        scale_down(stabilizationWindowSeconds=3601),
        [
            ("spec.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 3601: "
            "must be less than or equal to 3600")
        ],
    ),
    (
        scale_down(policies=[{"type": "Pods", "value": 1, "periodSeconds": 1801}]),
        [
            ("spec.behavior.scaleDown.policies[0].periodSeconds: Invalid value: 1801: "
            "must be less than or equal to 1800")
        ],
    ),
    (scale_down(policies=[]), ["spec.behavior.scaleDown.policies: Required value: must specify at least one Policy"]),
    (
        scale_down(selectPolicy="Fast"),
        [
            ('spec.behavior.scaleDown.selectPolicy: Unsupported value: "Fast": '
            'supported values: "Disabled", "Max", "Min"')
        ],
    ),
    (metric(type="Resource"), [
        "spec.metrics[0].resource: Required value: must populate information for the given metric source"
    ]),
    (
        metric(type="Resource", resource={"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 0}}),
        ["spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0"],
    ),
    (
        metric(type="Resource", resource={"name": "cpu", "target": {"type": "AverageValue", "averageValue": "0"}}),
        ['spec.metrics[0].resource.target.averageValue: Invalid value: "0": must be positive'],
    ),
    (
        metric(type="Resource", resource={"name": "cpu", "target": {"type": "Utilization"}}),
        [
            ("spec.metrics[0].resource.target.averageUtilization: Required value: "
            "must set either a target raw value or a target utilization")
        ],
    ),
    (metric(type="Pods", external={}), [
        "spec.metrics[0].pods: Required value: must populate information for the given metric source",
        "spec.metrics[0].external.metric.name: Required value: must specify a metric name",
        "spec.metrics[0].external.target.type: Required value: must specify a metric target type",
        ('spec.metrics[0].external.target.type: Invalid value: "": '
        "must be either Utilization, Value, or AverageValue"),
        ("spec.metrics[0].external.target.averageValue: Required value: "
        "must set either a target value for metric or a per-pod target"),
    ]),
    (
        metric(type="Object", object={
            "describedObject": {"apiVersion": "a/b/c", "kind": "Ingress", "name": "main"},
            "metric": {"name": "%a/b", "selector": {"matchExpressions": [{"key": "x", "operator": "Is"}]}},
            "target": {"type": "Value"},
        }),
        [
            ('spec.metrics[0].object.describedObject.apiVersion: Invalid value: "a/b/c": '
            "unexpected GroupVersion string: a/b/c"),
            'spec.metrics[0].object.metric.name: Invalid value: "%a/b": may not contain \'/\'',
            'spec.metrics[0].object.metric.name: Invalid value: "%a/b": may not contain \'%\'',
            ("spec.metrics[0].object.target.averageValue: Required value: "
            "must set either a target value or averageValue"),
        ],
    ),
    (
        scale_down(tolerance="-0.05", policies=[{"value": 1, "periodSeconds": 1}]),
        [
            ('spec.behavior.scaleDown.tolerance: Invalid value: "-50m": '
            "must be greater than or equal to 0"),
            ('spec.behavior.scaleDown.policies[0].type: Unsupported value: "": '
            'supported values: "Percent", "Pods"'),
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("obj", "expected"), CASES, ids=lambda value: value[0][:60] if isinstance(value, list) else ""
)
def test_rules_are_broken_in_the_servers_words(obj, expected):
    """Each rule names its field and says what is wrong as the API server says it."""
    assert problems(obj) == expected


def test_a_version_that_was_there_before_may_stay():
    """It is checked again when kind or version change, not when another object of the same kind is named."""

    def named(**ref):
        return samples.hpa(scaleTargetRef={"apiVersion": "", "kind": "Deployment", "name": "web", **ref})

    assert validate_target_group(named(name="other"), named()) == []
    assert [one.field for one in validate_target_group(named(kind="StatefulSet"), named())] == [
        "spec.scaleTargetRef.apiVersion"
    ]
