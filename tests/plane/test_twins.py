"""Both servers make the same of one object: all fields are the same but for those that are named here."""

from __future__ import annotations

import json

import pytest
from tests.cluster.served import served
from tests.objects import samples

from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import KINDS, NAMESPACES, Kind
from kubetide.runtime.timing.clock import run_real

pytestmark = pytest.mark.slow

# Times, identities, and who wrote what, which is tracked only on demand.
OF_THE_RUN = {"uid", "resourceVersion", "creationTimestamp", "managedFields"}
TIMES = {"lastTransitionTime"}
DRAWN = ("controller-uid", "batch.kubernetes.io/controller-uid")

STATUS = "a status is there once somebody has written it"
FINE_PRINT = "nothing acts on the fine print of volumes and references, so it is left as it was sent"
UNNAMED = "what was not sent and has no default is left out"

DIFFERENT = {
    (
        "Pod",
        "spec.tolerations",
    ): "the tolerations that each pod gets by default are taken for granted and not written",
    ("Pod", "spec.serviceAccount"): "the plane here runs without what gives pods their account",
    ("Pod", "spec.serviceAccountName"): "the plane here runs without what gives pods their account",
    ("Pod", "spec.containers[].env[].valueFrom.fieldRef.apiVersion"): FINE_PRINT,
    ("Pod", "spec.volumes[].configMap.defaultMode"): FINE_PRINT,
    (
        "Node",
        "spec.taints",
    ): "the embedded kubelets take up nodes that are ready, or say themselves that they are not",
    ("Node", "status.allocatable.memory"): "quantities are stored as they were written: 1024Ki, not 1Mi",
    ("Node", "status.capacity.memory"): "quantities are stored as they were written: 1024Ki, not 1Mi",
    ("Node", "status.daemonEndpoints"): UNNAMED,
    ("Node", "status.nodeInfo"): UNNAMED,
    ("DaemonSet", "metadata.annotations"): "the deprecated annotation of a DaemonSet's generation",
    ("CronJob", "spec.jobTemplate.metadata"): UNNAMED,
    ("CronJob", "spec.jobTemplate.spec.template.metadata"): UNNAMED,
    ("StatefulSet", "spec.serviceName"): UNNAMED,
    (
        "PersistentVolume",
        "status.lastPhaseTransitionTime",
    ): "nothing asks since when a volume is in its phase",
    ("CronJob", "status"): STATUS,
    ("DaemonSet", "status"): STATUS,
    ("Deployment", "status"): STATUS,
    ("HorizontalPodAutoscaler", "status"): STATUS,
    ("Job", "status"): STATUS,
    ("PodDisruptionBudget", "status"): STATUS,
    ("ReplicaSet", "status"): STATUS,
    ("StatefulSet", "status"): STATUS,
}
"""Kind and path, and why it may differ; one that differs no longer is to be taken off."""

MORE = (
    samples.pod(
        containers=[
            {
                "name": "web",
                "image": "nginx:1",
                "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
                "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            }
        ],
        volumes=[{"name": "c", "configMap": {"name": "c"}}],
        affinity={
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "podAffinityTerm": {
                            "topologyKey": "zone",
                            "labelSelector": {"matchLabels": {"a": "b"}},
                        },
                    }
                ]
            }
        },
    ),
    samples.workload(
        "StatefulSet",
        serviceName="web",
        volumeClaimTemplates=[
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        ],
    ),
    samples.hpa(
        metrics=[
            {
                "type": "External",
                "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "1500m"}},
            }
        ]
    ),
    {
        **samples.node(capacity={"memory": "1024Ki"}),
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
    },
)


def plain(kind):
    """The kind with objects as they come."""
    return Kind(kind.group, kind.version, kind.kind, kind.plural, dict, namespaced=kind.namespaced)


async def made_of(client):
    """Create every sample, each with a name of its own, and return what is stored."""
    await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
    made = []
    for number, sample in enumerate((*samples.ALL, *MORE)):
        kind = KINDS[sample["apiVersion"], sample["kind"]]
        body = {**sample, "metadata": {**sample["metadata"], "name": f"twin-{number}"}}
        if kind.namespaced:
            body["metadata"]["namespace"] = "shop"
        made.append(await client.create(plain(kind), body, namespace="shop" if kind.namespaced else ""))
    return made


def differences(one, other, path=""):
    """Yield the paths at which two JSON values differ; items of lists count as one."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other} - OF_THE_RUN):
            if key in DRAWN:
                continue
            a, b = one.get(key), other.get(key)
            if key in TIMES:  # of the run, but set by both or by none
                a, b = bool(a), bool(b)
            yield from differences(a, b, f"{path}.{key}" if path else key)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for a, b in zip(one, other, strict=True):
            yield from differences(a, b, f"{path}[]")
    elif json.dumps(one) != json.dumps(other):
        yield path


def test_objects_are_filled_in_alike(quiet_plane):
    """Both servers default, prune and number an object alike; what differs is a known gap, with its reason."""

    async def run(clock):
        async with HttpCluster(quiet_plane.connection, clock) as client:
            real = await made_of(client)
        async with served(clock) as (_, _, connection), HttpCluster(connection, clock) as client:
            ours = await made_of(client)
        return {
            (one["kind"], path)
            for one, other in zip(real, ours, strict=True)
            for path in differences(one, other)
        }

    assert run_real(run) == set(DIFFERENT)
