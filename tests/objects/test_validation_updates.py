"""What an update may change."""

from __future__ import annotations

import copy

import pytest
from tests.objects import samples
from tests.objects.validating import problems

from kubetide.units.patch import merge_patch

UPDATES = [
    (samples.pod(), {"spec": {"nodeName": "n1"}}, ["spec: Forbidden: pod updates may not change"]),
    (samples.pod(nodeName="n1"), {"spec": {"nodeName": "n2"}}, ["spec: Forbidden: pod updates may not change"]),
    (samples.pod(), {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}, []),
    (samples.pod(), {"spec": {"priority": 5}}, ["spec: Forbidden: pod updates may not change"]),
    (samples.pod(), {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}, []),
    (
        samples.pod(tolerations=[{"key": "a", "operator": "Exists"}]),
        {"spec": {"tolerations": []}},
        ["spec.tolerations: Forbidden: existing toleration"],
    ),
    (samples.pod(schedulingGates=[{"name": "g"}]), {"spec": {"schedulingGates": [], "nodeSelector": {"a": "b"}}}, []),
    (
        samples.pod(),
        {"spec": {"schedulingGates": [{"name": "g"}]}},
        ["spec.schedulingGates: Forbidden: only deletion is allowed"],
    ),
    (samples.pod(), {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}}, []),
    (samples.pod(), {"metadata": {"name": "web-2"}}, ['metadata.name: Invalid value: "web-2": field is immutable']),
    (samples.workload(), {"spec": {"replicas": 5}}, []),
    (
        samples.workload(),
        {"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}},
        [
            ('spec.selector: Invalid value: {"matchLabels":{"app":"web"},'
            '"matchExpressions":[{"key":"app","operator":"Exists"}]}: field is immutable')
        ],
    ),
    (samples.workload("StatefulSet"), {"spec": {"replicas": 5, "minReadySeconds": 3}}, []),
    (
        samples.workload("StatefulSet"),
        {"spec": {"serviceName": "other"}},
        ["spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', "],
    ),
    (samples.job(completions=2), {"spec": {"parallelism": 5, "suspend": True}}, []),
    (samples.job(completions=2), {"spec": {"completions": 5}}, ["spec.completions: Invalid value: 5: field is immutable"]),
    (samples.job(), {"spec": {"template": {"spec": {"priority": 5}}}}, ["spec.template: Invalid value"]),
    (samples.cron_job(), {"spec": {"schedule": "0 * * * *", "suspend": True}}, []),
    (
        merge_patch(samples.node(), {"spec": {"providerID": "sim://a"}}),
        {"spec": {"providerID": "sim://b"}},
        ["spec.providerID: Forbidden"],
    ),
    (samples.node(), {"spec": {"providerID": "sim://b"}}, []),
    (
        merge_patch(samples.hpa(), {"spec": {"scaleTargetRef": {"apiVersion": "v1"}}}),
        {"spec": {"maxReplicas": 11}},
        [],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("old", "change", "expected"), UPDATES)
def test_updates_change_only_what_may_change(old, change, expected):
    """Immutable fields are held, and what an update may do passes."""
    before = copy.deepcopy(old)
    found = list(dict.fromkeys(problems(merge_patch(old, change), old)))
    assert len(found) == len(expected)
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True))
    assert old == before
