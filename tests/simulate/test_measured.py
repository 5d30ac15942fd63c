"""HPAs on custom and external metrics in a whole run: the loop asks what the model measures."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kubetide.simulate.answers.replay import replay
from kubetide.simulate.answers.when import read_moment
from kubetide.simulate.answers.why import explain_object
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import load_scenario
from kubetide.units.time import parse_rfc3339

START = parse_rfc3339("2026-03-02T00:00:00Z")


def deployment(name, replicas):
    container = {"name": "main", "image": name, "resources": {"requests": {"cpu": "200m"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }


def hpa(name, *metrics, least=1):
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": least,
            "maxReplicas": 8,
            "metrics": list(metrics),
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
        },
    }


SERVED = {
    "type": "Pods",
    "pods": {
        "metric": {"name": "http_requests_per_second"},
        "target": {"type": "AverageValue", "averageValue": "10"},
    },
}
OFFERED = {
    "type": "Object",
    "object": {
        "describedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "metric": {"name": "requests_per_second"},
        "target": {"type": "AverageValue", "averageValue": "8"},
    },
}
WAITING = {
    "type": "External",
    "external": {
        "metric": {"name": "queue_messages_ready", "selector": {"matchLabels": {"queue": "orders"}}},
        "target": {"type": "AverageValue", "averageValue": "10"},
    },
}
OBJECTS = [
    deployment("web", 2),
    hpa("web", SERVED, OFFERED),
    deployment("worker", 1),
    hpa("worker", WAITING, least=0),
]
SCENARIO = {
    "name": "measured",
    "start": "2026-03-02T00:00:00Z",
    "duration": "20m",
    "flags": {"feature-gates": "HPAScaleToZero=true"},
    "nodeGroups": [{"name": "general", "instanceType": "m5.xlarge", "min": 2, "max": 3}],
    "services": [
        {
            "deployment": "web",
            "cpuSecondsPerRequest": 0.005,
            "load": {"daily": {"low": 40, "peak": 40, "noise": 0}},
        }
    ],
    "externalMetrics": [
        {
            "metric": "queue_messages_ready",
            "labels": {"queue": name},
            "load": {"trace": f"{name}.csv", "step": "10m"},
        }
        for name in ("orders", "mail")
    ],
    "manifests": [yaml.safe_dump_all(OBJECTS)],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Twenty minutes; messages are there from the eleventh on, those of another queue all the time."""
    home = tmp_path_factory.mktemp("measured")
    (home / "orders.csv").write_text("0\n45\n")
    (home / "mail.csv").write_text("900\n900\n")
    path = home / "scenario.yaml"
    path.write_text(yaml.safe_dump(SCENARIO))
    result = run_simulation(load_scenario(path), base=home, out=home / "out", seed=1, warn=pytest.fail)
    assert result.violations == ()
    return home / "out"


def why(run: Path, name: str, after: int) -> str:
    return explain_object(run, "hpa", name, namespace="default", at=read_moment(f"{after}m", START))


def test_the_largest_of_two_custom_metrics_wins(run):
    """40 requests/s need four pods at 10 each, and five at 8 each of the Deployment's."""
    text = why(run, "web", 15)
    assert "http_requests_per_second of the pods:" in text
    assert "requests_per_second of Deployment web: 8 of 8: ratio 1 is within tolerance" in text
    assert "largest proposal: 5" in text


def test_an_empty_queue_takes_the_last_worker_and_a_message_brings_workers(run):
    """The worker is at zero while its queue is empty; 45 messages at 10 each bring five."""
    metric = "external queue_messages_ready{queue=orders}"
    empty = why(run, "worker", 9)
    assert f"{metric}: 0 of 10: with no replica there the ratio 0 is rounded up, so 0 replicas" in empty
    assert "It has 0 replicas and wants 0" in empty
    text = why(run, "worker", 15)
    assert f"{metric}: 45 of 10: with no replica there the ratio 4.5 is rounded up, so 5 replicas" in text
    assert f"{metric}: 9 of 10: ratio 0.9 is within tolerance 0.9 to 1.1, so 5 replicas" in text
    assert "It has 5 replicas and wants 5" in text


def test_the_run_replays(run):
    """The records hold the answers: everything is decided again without the model."""
    found = replay(run)
    assert found.differences == ()
    assert found.records["horizontal"] > 70
