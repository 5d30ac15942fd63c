"""Workloads, with state and without, and batch work that the API server would refuse."""

from __future__ import annotations

import pytest
from tests.objects import samples
from tests.objects.validating import problems

CASES = [
    (
        samples.workload(replicas=-1),
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        samples.workload(selector=None),
        [
            "spec.selector: Required value",
            'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
        ],
    ),
    (
        samples.workload(selector={}),
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
    ),
    (
        samples.workload("DaemonSet", selector={}),
        ["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"],
    ),
    (
        samples.workload(selector={"matchLabels": {"app": "db"}}),
        [
            ('spec.template.metadata.labels: Invalid value: {"app":"web"}: '
            "`selector` does not match template `labels`")
        ],
    ),
    (
        samples.workload(template=samples.template(restartPolicy="Never")),
        ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
    ),
    (
        samples.workload(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}),
        ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0'],
    ),
    (
        samples.workload(strategy={"rollingUpdate": {"maxUnavailable": "150%"}}),
        ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "150%": must not be greater than 100%'],
    ),
    (
        samples.workload(strategy={"type": "Recreate", "rollingUpdate": {}}),
        ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
    ),
    (
        samples.workload(progressDeadlineSeconds=30, minReadySeconds=30),
        ["spec.progressDeadlineSeconds: Invalid value: 30: must be greater than minReadySeconds"],
    ),
    # workloads with state, and batch work
    (
        samples.workload("StatefulSet", podManagementPolicy="Fast"),
        ["spec.podManagementPolicy: Invalid value: \"Fast\": must be 'OrderedReady' or 'Parallel'"],
    ),
    (
        samples.workload("StatefulSet", updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
        [
            ('spec.updateStrategy.rollingUpdate: Invalid value: {"partition":1}: '
            "only allowed for updateStrategy 'RollingUpdate'")
        ],
    ),
    (
        samples.workload("StatefulSet", selector={}),
        ["spec.selector: Invalid value: {}: empty selector is invalid for statefulset"],
    ),
    (samples.job(completions=-1), ["spec.completions: Invalid value: -1: must be greater than or equal to 0"]),
    (
        samples.job(completionMode="Indexed", parallelism=2),
        ["spec.completions: Required value: when completion mode is Indexed"],
    ),
    (
        samples.job(template={"spec": {"containers": [{"name": "pi", "image": "perl"}]}}),
        ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ),
    (
        samples.job(manualSelector=True),
        ["spec.selector: Required value"],
    ),
    (
        samples.cron_job(schedule="61 * * * *"),
        ['spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61'],
    ),
    (
        samples.cron_job(schedule="TZ=UTC 0 * * * *"),
        [
            ('spec.schedule: Invalid value: "TZ=UTC 0 * * * *": '
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        ],
    ),
    (
        samples.cron_job(schedule="CRON_TZ=UTC 0 * * * *", timeZone="UTC"),
        [
            ('spec.schedule: Invalid value: "CRON_TZ=UTC 0 * * * *": '
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        ],
    ),
    (
        samples.cron_job(timeZone="Moon/Base"),
        ['spec.timeZone: Invalid value: "Moon/Base": unknown time zone Moon/Base'],
    ),
    (
        samples.cron_job(timeZone="Local"),
        [
            ('spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone '
            "as defined in https://www.iana.org/time-zones")
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("obj", "expected"), CASES, ids=lambda value: value[0][:60] if isinstance(value, list) else ""
)
def test_rules_are_broken_in_the_servers_words(obj, expected):
    """Each rule names its field and says what is wrong as the API server says it."""
    assert problems(obj) == expected


@pytest.mark.parametrize(
    ("kind", "mounted", "expected"),
    [
        ("StatefulSet", "www", []),
        ("StatefulSet", "other", ["other"]),
        ("Deployment", "www", ["www"]),
    ],
)
def test_a_container_may_mount_claims_of_its_own_set(kind, mounted, expected):
    """A StatefulSet's claim templates are volumes of its pods; no other workload has any."""
    container = {"name": "web", "image": "app:1", "volumeMounts": [{"name": mounted, "mountPath": "/data"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    claims = [{"metadata": {"name": "www"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    obj = samples.workload(kind, template=template)
    if kind == "StatefulSet":
        obj["spec"]["volumeClaimTemplates"] = claims
    field = "spec.template.spec.containers[0].volumeMounts[0].name"
    assert problems(obj) == [f'{field}: Not found: "{name}"' for name in expected]
