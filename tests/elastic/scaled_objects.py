"""ScaledObjects and answers of their triggers, for tests of the loop that follows KEDA."""

from __future__ import annotations

import msgspec

from kubetide.elastic.keda.sources import read_source
from kubetide.elastic.keda.state import Answer
from kubetide.objects.timetables import ScaledObject
from kubetide.units.time import format_rfc3339, parse_rfc3339

START = parse_rfc3339("2026-03-02T08:00:00Z")
NOW = START
EXTERNAL = {"type": "external", "metadata": {"scalerAddress": "queue:9090", "list": "orders", "target": "5"}}

PROMETHEUS = {
    "type": "prometheus",
    "metadata": {"serverAddress": "http://prometheus:9090", "query": "sum(waiting)", "threshold": "5"},
}

CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}}
MEMORY = {"type": "memory", "metricType": "AverageValue", "metadata": {"value": "500Mi"}}


def cron(start, end, replicas, zone="UTC", **more):
    data = {"timezone": zone, "start": start, "end": end, "desiredReplicas": str(replicas)}
    return {"type": "cron", "metadata": data, **more}


def source(trigger=EXTERNAL, name="worker", annotations=None, created=START, **spec):
    body = {
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": name,
            "annotations": annotations or {},
            "creationTimestamp": format_rfc3339(created),
        },
        "spec": {"scaleTargetRef": {"name": "worker"}, "triggers": [trigger], **spec},
    }
    return read_source(msgspec.convert(body, ScaledObject))


def answer(replicas, *, active=False, error=""):
    return Answer(("shop", "worker"), active, error, (), replicas, "1")
