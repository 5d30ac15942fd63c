"""The texts in table cells."""

from __future__ import annotations

import pytest

from kubetide.embedded.apiserver.tables import columns_of, row_of
from kubetide.embedded.apiserver.tables.column import short_duration
from kubetide.objects.kinds import HPAS, PODS, STORED_KINDS
from kubetide.units.time import parse_duration, parse_rfc3339

NOW = parse_rfc3339("2026-03-02T12:00:00Z")


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        ("0s", "0s"),
        ("119s", "119s"),
        ("2m", "2m"),
        ("9m59s", "9m59s"),
        ("10m30s", "10m"),
        ("2h59m", "179m"),
        ("3h", "3h"),
        ("7h5m", "7h5m"),
        ("47h", "47h"),
        ("48h", "2d"),
        ("191h", "7d23h"),
        ("192h", "8d"),
        ("17520h", "2y"),
        ("17544h", "2y1d"),
        ("70080h", "8y"),
    ],
)
def test_durations_are_short(duration, text):
    """A duration has two figures at most where the first is small."""
    assert short_duration(parse_duration(duration)) == text


def pod(**status):
    return {
        "metadata": {"name": "p", "creationTimestamp": "2026-03-02T11:59:00Z"},
        "spec": {"containers": [{"name": "c"}]},
        "status": status,
    }


@pytest.mark.parametrize(
    ("obj", "word"),
    [
        (pod(phase="Pending"), "Pending"),
        (pod(phase="Failed", reason="Evicted"), "Evicted"),
        (
            pod(phase="Running", containerStatuses=[{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]),
            "CrashLoopBackOff",
        ),
        (pod(phase="Running", containerStatuses=[{"state": {"terminated": {"exitCode": 3}}}]), "ExitCode:3"),
        (
            pod(conditions=[{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]),
            "SchedulingGated",
        ),
        ({**pod(phase="Running"), "metadata": {"name": "p", "deletionTimestamp": "x"}}, "Terminating"),
    ],
)
def test_the_status_of_a_pod(obj, word):
    """The Status column says why a pod does not run rather than in which phase it is."""
    assert row_of(PODS, obj, NOW)[2] == word


def hpa(*metrics, current=()):
    return {
        "metadata": {"name": "h"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "web"},
            "metrics": metrics,
            "maxReplicas": 5,
        },
        "status": {"currentMetrics": current},
    }


def cpu(target, **current):
    spec = {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    return spec, {"type": "Resource", "resource": {"name": "cpu", "current": current}}


@pytest.mark.parametrize(
    ("metrics", "current", "text"),
    [
        ((), (), "<none>"),
        (({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}},), (), "cpu: <unknown>/50%"),
        (
            (cpu({"averageUtilization": 50})[0],) * 3,
            (cpu({}, averageUtilization=71)[1],),
            "cpu: 71%/50%, cpu: <unknown>/50% + 1 more...",
        ),
        (
            ({"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"averageValue": "10"}}},),
            ({"type": "Pods", "pods": {"current": {"averageValue": "7"}}},),
            "7/10",
        ),
    ],
)  # fmt: skip
def test_the_targets_of_an_hpa(metrics, current, text):
    """The Targets column shows two metrics and counts the others."""
    assert row_of(HPAS, hpa(*metrics, current=current), NOW)[2] == text


@pytest.mark.parametrize("kind", STORED_KINDS, ids=lambda kind: kind.resource)
def test_an_object_that_says_nothing_has_a_row(kind):
    """Every kind's row has as many cells as columns, also for an object of metadata alone."""
    assert len(row_of(kind, {"metadata": {"name": "x"}}, NOW)) == len(columns_of(kind))
