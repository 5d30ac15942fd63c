"""Nodes, pods and clusters of the benchmarks: 16-core nodes in three zones, 30 pods of 200 applications on each."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from kubetide.objects.meta import LabelSelector, ObjectMeta, OwnerReference
from kubetide.objects.node import Node, NodeSpec, NodeStatus, Taint
from kubetide.objects.pod import (
    Affinity,
    Container,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Toleration,
    TopologySpreadConstraint,
)
from kubetide.scheduling import Snapshot

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
PODS_A_NODE = 30
APPS = 200


def node_name(number: int) -> str:
    return f"node-{number:05}"


def make_node(number: int) -> Node:
    """Return a node; every tenth has a taint, for pods that tolerate it."""
    name = node_name(number)
    labels = {HOSTNAME: name, ZONE: f"zone-{number % 3}", "pool": f"pool-{number % 5}"}
    taints = (Taint(key="dedicated", value="batch", effect="NoSchedule"),) if number % 10 == 0 else None
    return Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(
            allocatable={"cpu": "15890m", "memory": "60Gi", "pods": "110", "ephemeral-storage": "95Gi"}
        ),
    )


def make_pod(
    name: str,
    *,
    cpu: str = "250m",
    memory: str = "512Mi",
    pool: str = "",
    affinity_pool: str = "",
    shape: int = 0,
    spread: str = "",
    apart: str = "",
    tolerates: bool = True,
) -> Pod:
    """Return a pod; ``spread`` and ``apart`` are the labels by which copies spread or exclude each other."""
    own = LabelSelector(match_labels={"app": f"app-{shape}"})
    term = PodAffinityTerm(label_selector=own, topology_key=apart)
    anti = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    rule = TopologySpreadConstraint(
        topology_key=spread, max_skew=1, when_unsatisfiable="DoNotSchedule", label_selector=own
    )
    near = NodeSelectorRequirement(key="pool", operator="In", values=(affinity_pool, "pool-none"))
    node_affinity = NodeAffinity(
        required_during_scheduling_ignored_during_execution=NodeSelector(
            node_selector_terms=(NodeSelectorTerm(match_expressions=(near,)),)
        )
    )
    affinity = Affinity(
        pod_anti_affinity=anti if apart else None, node_affinity=node_affinity if affinity_pool else None
    )
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"uid-{name}",
            labels={"app": f"app-{shape}"},
            owner_references=(
                OwnerReference(kind="ReplicaSet", name="rs", uid=f"rs-{shape}", controller=True),
            ),
        ),
        spec=PodSpec(
            containers=(
                Container(name="c", resources=ResourceRequirements(requests={"cpu": cpu, "memory": memory})),
            ),
            node_selector={"pool": pool} if pool else None,
            tolerations=(Toleration(key="dedicated", operator="Exists"),) if tolerates else None,
            affinity=affinity if apart or affinity_pool else None,
            topology_spread_constraints=(rule,) if spread else None,
        ),
    )


def copies(count: int, *, spread: str = "", apart: str = "") -> list[Pod]:
    """Return pods of one application of their own."""
    return [make_pod(f"copy-{index}", shape=3000, spread=spread, apart=apart) for index in range(count)]


def make_cluster(nodes: int, *, cpu: str = "250m") -> Snapshot:
    """Return a cluster with 30 pods a node, of 200 applications."""
    snapshot = Snapshot()
    patterns = [make_pod("pod", cpu=cpu, shape=at) for at in range(APPS)]
    for number in range(nodes):
        snapshot.set_node(make_node(number))
        for index in range(PODS_A_NODE):
            pod = patterns[(number * PODS_A_NODE + index) % APPS]
            name = f"pod-{number}-{index}"
            metadata = replace(pod.metadata, name=name, uid=f"uid-{name}")
            snapshot.add_pod(replace(pod, metadata=metadata), node_name(number))
    return snapshot


def pod_texts(nodes: int, *, version: int = 1) -> Iterator[bytes]:
    """Yield the JSON of all pods of a cluster, 2.4 kB each, as a server sends them."""
    for number in range(nodes):
        for index in range(PODS_A_NODE):
            yield pod_text(number, index, version)


def pod_text(number: int, index: int, version: int) -> bytes:
    """Return the JSON of one pod on one node; versions differ in a label and in the status."""
    at = number * PODS_A_NODE + index
    names = {b"app": at % APPS, b"at": at, b"node": number, b"v": version}
    return _TEXT % {key: b"%05d" % value for key, value in names.items()}


def _template() -> bytes:
    probe = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
    times = "2026-03-02T05:00:%02dZ"
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "app-%(app)s-%(at)s",
            "generateName": "app-%(app)s-",
            "namespace": "default",
            "uid": "5f6c0e5e-aaaa-bbbb-cccc-0000%(at)s",
            "resourceVersion": "%(at)s%(v)s",
            "creationTimestamp": "2026-03-02T05:00:00Z",
            "labels": {"app": "app-%(app)s", "pod-template-hash": "5d4f8c7b9%(app)s", "tier": "v%(v)s"},
            "annotations": {"kubernetes.io/psp": "restricted", "checksum/config": "0123456789abcdef" * 4},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "app-%(app)s-5d4f8c7b9",
                    "uid": "rs-%(app)s",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodeName": "node-%(node)s",
            "containers": [
                {
                    "name": "app",
                    "image": "registry.example/app:%(app)s",
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                    "env": [{"name": f"SETTING_{at}", "value": "x" * 20} for at in range(6)],
                    "resources": {
                        "requests": {"cpu": "250m", "memory": "512Mi"},
                        "limits": {"memory": "1Gi"},
                    },
                    "volumeMounts": [
                        {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io", "readOnly": True}
                    ],
                    "livenessProbe": probe,
                    "readinessProbe": probe,
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "volumes": [
                {
                    "name": "token",
                    "projected": {
                        "sources": [{"serviceAccountToken": {"path": "token"}}],
                        "defaultMode": 420,
                    },
                }
            ],
            "restartPolicy": "Always",
            "serviceAccountName": "default",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for key in ("not-ready", "unreachable")
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": times % at}
                for at, kind in enumerate(("PodScheduled", "Initialized", "ContainersReady", "Ready"))
            ],
            "containerStatuses": [
                {
                    "name": "app",
                    "ready": True,
                    "restartCount": 0,
                    "started": True,
                    "image": "registry.example/app:%(app)s",
                    "state": {"running": {"startedAt": times % 30}},
                }
            ],
            "podIP": "10.0.0.1",
            "hostIP": "10.1.0.1",
            "qosClass": "Burstable",
        },
    }
    return msgspec.json.encode(body)


_TEXT = _template()
