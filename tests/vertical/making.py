"""Objects of the VPA's cores, made from few words."""

from __future__ import annotations

import msgspec

from kubetide.objects.pod import Pod
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.units.time import before, format_rfc3339, hours, parse_rfc3339, seconds
from kubetide.vertical.updater.settings import Settings
from kubetide.vertical.updater.state import Delta, LeaseView, State
from kubetide.vertical.workloads import WorkloadView

DAY = hours(24)
NOW = parse_rfc3339("2026-03-02T08:00:00Z")


def ago(duration):
    return format_rfc3339(before(NOW, duration))


def amounts(cpu, memory="100Mi"):
    return {"cpu": cpu, "memory": memory}


def pod(name="web-0", *, owner=("ReplicaSet", "web-1"), cpu="100m", memory="100Mi", age=DAY, **more):
    resources = {"requests": amounts(cpu, memory)}
    body = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": {"app": "web"},
            "ownerReferences": [{"kind": owner[0], "name": owner[1], "controller": True}],
            **more.pop("metadata", {}),
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "main", "resources": resources}]},
        "status": {"phase": "Running", "startTime": ago(age), **more},
    }
    return msgspec.convert(body, Pod)


def vpa(mode="Recreate", *, name="web", target=("Deployment", "web"), cpu="500m", **spec):
    container = {
        "containerName": "main",
        "target": amounts(cpu, "500Mi"),
        "lowerBound": amounts("300m", "300Mi"),
        "upperBound": amounts("800m", "800Mi"),
    }
    body = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": target[0], "name": target[1]},
            "updatePolicy": {"updateMode": mode},
            **spec,
        },
        "status": {"recommendation": {"containerRecommendations": [container]}},
    }
    return msgspec.convert(body, VerticalPodAutoscaler)


def oom(*, lasted, since):
    """Return the status of a container that was killed that long ago, that long after its start."""
    ended = before(NOW, since)
    state = {
        "reason": "OOMKilled",
        "startedAt": format_rfc3339(before(ended, lasted)),
        "finishedAt": format_rfc3339(ended),
    }
    return [{"name": "main", "lastState": {"terminated": state}}]


def workloads(replicas=2):
    return [
        WorkloadView("Deployment", "default", "web", selector="app=web", replicas=replicas),
        WorkloadView(
            "ReplicaSet",
            "default",
            "web-1",
            owner=("Deployment", "web"),
            selector="app=web",
            replicas=replicas,
        ),
    ]


def state(pods, vpas, *, views=None, **settings):
    """Give the updater's state, with a fresh lease."""
    return State.from_full(
        Delta(
            settings=Settings(**settings),
            vpas=vpas,
            pods=pods,
            workloads=workloads(len(pods)) if views is None else views,
            lease=LeaseView(renewed=ago(seconds(5))),
        )
    )
