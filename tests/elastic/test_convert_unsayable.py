"""What ``convert`` cannot say in the other form is refused by name."""

from __future__ import annotations

import pytest
from tests.elastic.convertible import WEB, hpa, table

from kubetide.elastic.convert.backward import from_elastic
from kubetide.elastic.convert.forward import to_elastic

OF_HPA = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "web"}


@pytest.mark.parametrize(
    ("objects", "words"),
    [
        (
            [hpa(ownerReferences=[{"kind": "ScaledObject", "name": "q"}])],
            "HorizontalPodAutoscaler web: belongs to ScaledObject q",
        ),
        ([hpa(finalizers=["x/y"])], "metadata.finalizers cannot be kept"),
        ([hpa(), hpa("second")], "HorizontalPodAutoscaler web has the same target"),
        ([table("HorizontalPodCronscaler", scaleTarget=OF_HPA, crons=[])], "which is not among the objects"),
        (
            [
                hpa(),
                table(
                    "HorizontalPodCronscaler",
                    scaleTarget=WEB,
                    crons=[{"name": "x", "schedule": "0 0 8 * * *", "targetSize": 3}],
                ),
            ],
            "sets the size of what HorizontalPodAutoscaler web scales too",
        ),
        (
            [hpa(), table("CronHorizontalPodAutoscaler", scaleTargetRef=OF_HPA, jobs=[])],
            "has sizes, not bounds",
        ),
        (
            [
                table(
                    "CronHorizontalPodAutoscaler",
                    scaleTargetRef=WEB,
                    jobs=[{"name": "x", "schedule": "0 0 8 * * *", "targetSize": 3, "runOnce": True}],
                )
            ],
            "jobs[0]: runOnce has no counterpart",
        ),
        *(
            (
                [
                    table(
                        "CronHorizontalPodAutoscaler",
                        scaleTargetRef=WEB,
                        jobs=[{"name": "x", "schedule": schedule, "targetSize": 3}],
                        excludeDates=["* * * 1 1 *", dates],
                    )
                ],
                words,
            )
            for schedule, dates, words in (
                ("0 8 * * *", "@daily", "jobs[0]: schedule '0 8 * * *': write six fields"),
                ("0 ? 8 * * *", "@daily", "jobs[0]: schedule '0 ? 8 * * *': ? stands for days only; write *"),
                ("0 0 8 ? * *", "* * 15 6 *", "excludeDates '* * 15 6 *': write six fields"),
                ("@daily", "* * * 1 ? *", "excludeDates '* * * 1 ? *': ? stands for days only; write *"),
            )
        ),
        *(
            (
                [
                    table(
                        "HorizontalPodCronscaler",
                        scaleTarget=WEB,
                        crons=[{"name": "x", "schedule": at, "targetSize": 3, "excludeDates": [dates]}],
                    )
                ],
                words,
            )
            for at, dates, words in (
                ("0 8 * * *", "* * * 1 1 *", "crons[0]: schedule '0 8 * * *': write six fields"),
                ("@daily", "* * * 1 1 *", "crons[0]: schedule '@daily': write six fields"),
                ("0 0 8 * * *", "* * 1 1 *", "crons[0]: excludeDates '* * 1 1 *': write six fields"),
            )
        ),
        (
            [table("CronHPA", scaleTargetRef=WEB, crons=[{"schedule": "@every 1h", "targetReplicas": 3}])],
            "crons[0]: @every counts from",
        ),
        (
            [
                hpa(),
                {
                    "apiVersion": "keda.sh/v1alpha1",
                    "kind": "ScaledObject",
                    "metadata": {"name": "q"},
                    "spec": {"scaleTargetRef": {"name": "web"}},
                },
            ],
            "ScaledObject q: cooldownPeriod",
        ),
        (
            [{**hpa(), "spec": {"scaleTargetRef": WEB, "maxReplicas": 1, "minReplicas": 3}}],
            "spec.horizontal.maxReplicas: Invalid value: 1",
        ),
    ],
)
def test_what_an_elastic_workload_cannot_say_is_refused(objects, words):
    """The object and the field are named, and its target is not converted by half."""
    found = to_elastic(objects)
    [refusal] = found.refused
    assert words in refusal
    assert not found.objects


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ({"timeZone": "Europe/Berlin", "rules": []}, "schedule.timeZone: a time table has none"),
        (
            {"rules": [{"name": "x", "start": "0 8 * * *", "end": "0 9 * * *", "replicas": 3}]},
            "rule x: has an end",
        ),
        (
            {"rules": [{"name": "x", "at": "0 8 * * *", "timeZone": "Europe/Paris", "replicas": 3}]},
            "timeZone Europe/Paris",
        ),
        ({"rules": [{"name": "x", "at": "@daily", "replicas": 3}]}, "has no @daily"),
        (
            {"rules": [{"name": "x", "at": "0 8 * * *", "replicas": 3, "excludeDates": ["@weekly"]}]},
            "rule x: excludeDates '@weekly': HorizontalPodCronscaler has no @weekly",
        ),
        ({"rules": [{"name": "x", "at": "0 8 * * *", "minReplicas": 3}]}, "without a horizontal section"),
    ],
)
def test_what_a_time_table_cannot_say_is_refused(schedule, words):
    """On the way back, too."""
    found = from_elastic(
        [
            {
                "apiVersion": "kubetide.dev/v1alpha1",
                "kind": "ElasticWorkload",
                "metadata": {"name": "web"},
                "spec": {"targetRef": WEB, "schedule": schedule},
            }
        ]
    )
    assert words in found.refused[0]
    assert not found.objects


REF = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "shop"}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (None, "spec.targetRef.kind: is missing"),
        ({"targetRef": REF, "schedule": {"rules": None}}, "spec.schedule.rules: is missing"),
        ({"targetRef": REF, "schedule": {"rules": [{"at": "@daily"}]}}, "rules[0].name: is missing"),
        ({"targetRef": REF, "schedule": {"rules": [{"name": "a"}]}}, "rules[0].at: write either at"),
    ],
)
def test_an_elastic_workload_that_lacks_fields_is_refused_by_name(spec, words):
    """Fields that a server would ask for are named, and other objects are converted."""
    body = {"apiVersion": "kubetide.dev/v1alpha1", "kind": "ElasticWorkload", "metadata": {"name": "a"}}
    found = from_elastic([{**body, "spec": spec}])
    assert not found.objects
    assert words in found.refused[0]


def test_a_time_table_without_a_spec_is_refused_by_name():
    """It names no target."""
    body = {"apiVersion": "autoscaling.cloud.tencent.com/v1", "kind": "HorizontalPodCronscaler"}
    found = to_elastic([{**body, "metadata": {"name": "a"}}])
    assert "spec.targetRef.kind: is missing" in found.refused[0]
