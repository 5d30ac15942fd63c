"""Small worlds for the tests of the horizontal loop: pods, HPAs and samples as a state takes them."""

from __future__ import annotations

import msgspec
import numpy as np

from kubetide.horizontal.facts.samples import Answer, answer_of
from kubetide.horizontal.facts.views import ContainerView, HpaView, PodView, ScaleView
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import Delta, State
from kubetide.objects.hpa import HpaSpec
from kubetide.ports.metrics import PodSamples, ResourceUsage
from kubetide.units.time import Instant, minutes, parse_rfc3339, seconds

NOW = parse_rfc3339("2026-03-02T08:00:00Z")
CPU = [("cpu", "")]


def pod(name, app="web", namespace="default", cpu=200, **changes):
    """A pod that has been ready for an hour."""
    fields = {
        "phase": "Running",
        "ready": "True",
        "ready_since": NOW - minutes(60),
        "started": Instant(NOW - minutes(61)),
        "containers": (ContainerView("app", {"cpu": cpu} if cpu else {}),),
        **changes,
    }
    return PodView(namespace=namespace, name=name, labels={"app": app}, **fields)


def hpa(name="web", namespace="default", target=50, minimum=1, maximum=100, **spec):
    body = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": minimum,
        "maxReplicas": maximum,
        "metrics": [utilization(target)],
        **spec,
    }
    return HpaView(namespace, name, "", msgspec.convert(body, HpaSpec))


def utilization(percent, resource="cpu"):
    return {
        "type": "Resource",
        "resource": {"name": resource, "target": {"type": "Utilization", "averageUtilization": percent}},
    }


def average(value, resource="cpu"):
    return {
        "type": "Resource",
        "resource": {"name": resource, "target": {"type": "AverageValue", "averageValue": value}},
    }


def scale(name="web", namespace="default", replicas=1, **changes):
    return ScaleView(
        namespace, name, spec_replicas=replicas, status_replicas=replicas, selector=f"app={name}", **changes
    )


def samples(usage, at=NOW):
    """Samples of one container a pod; usage is CPU in thousandths by (namespace, name), None for a sample without CPU."""
    values = list(usage.values())
    return PodSamples(
        namespaces=tuple(namespace for namespace, _ in usage),
        names=tuple(name for _, name in usage),
        timestamp_ns=np.full(len(usage), at - seconds(5), np.int64),
        window_ns=np.full(len(usage), seconds(30), np.int64),
        first=np.arange(len(usage) + 1),
        containers=("app",) * len(usage),
        usage={
            "cpu": ResourceUsage(
                np.array([value or 0 for value in values], np.int64),
                np.array([value is not None for value in values], np.bool_),
            ),
            "memory": ResourceUsage(
                np.array([1000 * (value or 0) for value in values], np.int64), np.ones(len(values), np.bool_)
            ),
        },
    )


def answer(usage, keys=CPU) -> Answer:
    return answer_of(samples(usage), keys, hpa=None, same_pods=False)


def external(target, metric="queue", **spec):
    """An External metric; the target as the API has it, ``{"value": "5"}``."""
    goal = {"type": "Value" if "value" in target else "AverageValue", **target}
    return {"type": "External", "external": {"metric": {"name": metric, **spec}, "target": goal}}


def of_object(target, metric="hits", kind="Ingress", version="networking.k8s.io/v1", name="main"):
    """An Object metric."""
    goal = {"type": "Value" if "value" in target else "AverageValue", **target}
    about = {"apiVersion": version, "kind": kind, "name": name}
    return {
        "type": "Object",
        "object": {"describedObject": about, "metric": {"name": metric}, "target": goal},
    }


def of_pods(average_value, metric="rps"):
    """A Pods metric."""
    goal = {"type": "AverageValue", "averageValue": average_value}
    return {"type": "Pods", "pods": {"metric": {"name": metric}, "target": goal}}


def state_of(*, hpas, pods, scales, usage, settings=None, keys=CPU, memory=(), values=()):
    state = State(settings or Settings())
    state.apply(
        Delta(
            hpas=hpas,
            pods=pods,
            scales=scales,
            answers=[answer(usage, keys)],
            memory=memory,
            values=values,
        )
    )
    return state
