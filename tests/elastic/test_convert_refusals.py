"""What ``convert`` refuses because no loop would follow it."""

from __future__ import annotations

import pytest

from kubetide.elastic.convert.backward import from_elastic
from kubetide.elastic.convert.forward import to_elastic

REF = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}


@pytest.mark.parametrize(
    ("crons", "words"),
    [
        ([{"name": "a", "schedule": "a b c d e f", "targetSize": 1}], "a ('a b c d e f'): second (field 1)"),
        ([{"name": "a", "schedule": "0 0 8 * * *", "targetSize": -2}], "rules[0].replicas: -2 is negative"),
        (
            [{"name": "a", "schedule": "0 0 8 * * *", "targetSize": 2, "excludeDates": ["* * * 40 1 *"]}],
            "excludeDates '* * * 40 1 *' leaves out no date",
        ),
        (
            [{"name": "a", "schedule": f"0 0 {hour} * * *", "targetSize": 2} for hour in (8, 9)],
            "the name 'a' stands 2 times",
        ),
    ],
)
def test_a_schedule_that_no_loop_follows_is_refused_there_and_back(crons, words):
    """The rule is named with what is wrong, in both directions."""
    body = {"apiVersion": "autoscaling.cloud.tencent.com/v1", "kind": "HorizontalPodCronscaler"}
    there = to_elastic([{**body, "metadata": {"name": "x"}, "spec": {"scaleTarget": REF, "crons": crons}}])
    assert not there.objects
    assert words in there.refused[0]
    rules = [
        {
            "name": one["name"],
            "at": one["schedule"],
            "replicas": one["targetSize"],
            "excludeDates": one.get("excludeDates", []),
        }
        for one in crons
    ]
    body = {"apiVersion": "kubetide.dev/v1alpha1", "kind": "ElasticWorkload", "metadata": {"name": "x"}}
    back = from_elastic([{**body, "spec": {"targetRef": REF, "schedule": {"rules": rules}}}])
    assert not back.objects
    assert words in back.refused[0]


@pytest.mark.parametrize(
    ("kind", "field", "rule"),
    [
        ("autoscaling.alibabacloud.com/v1beta1 CronHorizontalPodAutoscaler", "jobs", {"name": "a", "targetSize": None}),
        ("extensions.tkestack.io/v1 CronHPA", "crons", {"targetReplicas": None}),
    ],
)  # fmt: skip
def test_a_size_that_is_null_is_refused(kind, field, rule):
    """It is not taken for 0, nor for no size at all."""
    version, name = kind.split()
    schedule = "0 0 8 * * *" if field == "jobs" else "0 8 * * *"
    spec = {"scaleTargetRef": REF, field: [{**rule, "schedule": schedule}]}
    found = to_elastic([{"apiVersion": version, "kind": name, "metadata": {"name": "x"}, "spec": spec}])
    assert not found.objects
    assert "rules[0].replicas: write replicas" in found.refused[0]


def test_an_autoscaler_of_an_autoscaler_is_refused():
    """An HPA has no scale, so neither the HPA nor a table of it can be followed."""
    target = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "inner"}
    outer = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "outer"}}
    outer["spec"] = {"scaleTargetRef": target, "maxReplicas": 3}
    assert "spec.targetRef: an HPA has no scale" in to_elastic([outer]).refused[0]
    body = {"apiVersion": "kubetide.dev/v1alpha1", "kind": "ElasticWorkload", "metadata": {"name": "x"}}
    spec = {"targetRef": target, "horizontal": {"maxReplicas": 3}}
    assert "spec.targetRef: an HPA has no scale" in from_elastic([{**body, "spec": spec}]).refused[0]
