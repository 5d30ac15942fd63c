"""A real API server sends the same objects in protobuf and in JSON."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from kubetide.cluster import HttpCluster
from kubetide.cluster.transport import Asked
from kubetide.objects.kinds import NAMESPACES, NODES, PODS
from kubetide.objects.protobuf import MAGIC, PROTOBUF_OR_JSON
from kubetide.ports.cluster import Listing
from kubetide.ports.errors import BadRequest, Forbidden
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders

pytestmark = pytest.mark.slow

NAMESPACE = "wire"
READY_AT = "2026-03-02T10:00:07Z"

FULL_SPEC = {
    "serviceAccountName": "default",
    "terminationGracePeriodSeconds": 0,
    "hostNetwork": True,
    "nodeSelector": {"disk": "ssd"},
    "priority": 0,
    "schedulingGates": [{"name": "example.com/wait"}],
    "tolerations": [
        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
        {"operator": "Exists"},
    ],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]},
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
                ]
            }
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {},
                    "namespaceSelector": {"matchLabels": {"a": "b"}},
                }
            ]
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 2,
            "minDomains": 3,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            "nodeTaintsPolicy": "Honor",
        }
    ],
    "initContainers": [
        {
            "name": "sidecar",
            "image": "x",
            "restartPolicy": "Always",
            "resources": {"requests": {"cpu": "0.1"}},
        }
    ],
    "containers": [
        {
            "name": "app",
            "image": "x",
            "env": [{"name": "A", "value": "b"}],
            "ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "127.0.0.1", "protocol": "UDP"}],
            "resources": {"requests": {"cpu": "1.5", "memory": "1e9"}, "limits": {"example.com/gpu": "1"}},
            "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
            "volumeMounts": [{"name": "scratch", "mountPath": "/s"}],
        },
        {"name": "bare", "image": "y"},
    ],
    "volumes": [
        {"name": "scratch", "emptyDir": {}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "host", "hostPath": {"path": "/x"}},
        {"name": "claimed", "persistentVolumeClaim": {"claimName": "c"}},
        {"name": "config", "configMap": {"name": "c"}},
        {
            "name": "made",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    }
                }
            },
        },
        {
            "name": "token",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                    {"configMap": {"name": "ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                ]
            },
        },
    ],
}

STATUS = {
    "phase": "Running",
    "startTime": READY_AT,
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "No",
            "message": "größer",
            "lastTransitionTime": READY_AT,
        },
        {"type": "Initialized", "status": "True", "lastTransitionTime": None},
    ],
    "containerStatuses": [
        {
            "name": "app",
            "ready": True,
            "restartCount": 3,
            "image": "x",
            "imageID": "",
            "state": {"running": {"startedAt": READY_AT}},
            "resources": {"requests": {"cpu": "1"}},
            "allocatedResources": {"cpu": "1"},
        }
    ],
}


async def fill(client):
    """Write pods and nodes that have every field that is read."""
    await client.create(NODES.untyped, {"metadata": {"name": "wire-bare"}})
    taints = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": "c", "effect": "NoExecute"}]
    spec = {"providerID": "cloud://1", "taints": taints, "unschedulable": True}
    labels = {"zone": "a"}
    await client.create(NODES.untyped, {"metadata": {"name": "wire-full", "labels": labels}, "spec": spec})
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "",
        "lastHeartbeatTime": READY_AT,
        "lastTransitionTime": READY_AT,
    }
    status = {
        "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
        "allocatable": {"cpu": "3900m", "memory": "15Gi", "pods": "110"},
        "conditions": [condition],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
    }
    await client.patch(NODES, "wire-full", {"status": status}, subresource="status")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "u", "controller": True}
    metadata = {
        "name": "full",
        "labels": {"app": "web", "empty": ""},
        "annotations": {"long": "x" * 5_000, "short": "größe"},
        "ownerReferences": [owner, {**owner, "name": "other", "uid": "v", "controller": False}],
        "finalizers": ["example.com/hold"],
    }
    await client.create(PODS.untyped, {"metadata": metadata, "spec": FULL_SPEC}, namespace=NAMESPACE)
    await client.patch(PODS, "full", {"status": STATUS}, namespace=NAMESPACE, subresource="status")
    for number in range(3):
        await client.create(PODS.untyped, builders.pod(f"plain-{number}"), namespace=NAMESPACE)
    # A pod on its way out, held by its finalizer.
    await client.delete(PODS, "full", namespace=NAMESPACE, grace_period_s=0)


@pytest.fixture(scope="module")
def filled(quiet_plane):
    """A plane with those objects, which are deleted afterwards."""

    async def run(clock):
        async with HttpCluster(quiet_plane.connection, clock) as client:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            await client.create(NAMESPACES.untyped, body)
            await fill(client)

    async def clear(clock):
        async with HttpCluster(quiet_plane.connection, clock) as client:
            for name in ("wire-bare", "wire-full"):
                await client.delete(NODES, name)
            await client.patch(PODS, "full", {"metadata": {"finalizers": None}}, namespace=NAMESPACE)
            for pod in (await client.list(PODS, namespace=NAMESPACE)).items:
                await client.delete(PODS, pod.metadata.name, namespace=NAMESPACE, grace_period_s=0)

    run_real(run)
    yield quiet_plane
    run_real(clear)


def both(filled, main):
    """Run ``main(json, protobuf, clock)`` with a client of each."""

    async def run(clock):
        async with (
            HttpCluster(filled.connection, clock) as plain,
            HttpCluster(filled.connection, clock, protobuf=True) as packed,
        ):
            await main(plain, packed, clock)

    run_real(run)


@pytest.mark.parametrize("kind", [PODS, NODES], ids=lambda kind: kind.kind)
def test_lists(filled, kind):
    """Lists are equal, in pages and streamed."""

    async def main(plain, packed, _):
        expected = await plain.list(kind)
        assert len(expected.items) >= 2
        assert await packed.list(kind) == expected
        async with aclosing(packed.list_and_watch(kind)) as parts:
            streamed = await anext(parts)
        assert isinstance(streamed, Listing)
        assert streamed.items == expected.items

    both(filled, main)


def test_it_is_protobuf_that_comes(filled):
    """The server does answer in protobuf: the bytes of a list begin with its magic number."""

    async def main(_, packed, __):
        asked = Asked("GET", "/api/v1/pods", accept=PROTOBUF_OR_JSON)
        assert (await packed._transport.send(asked)).startswith(MAGIC)

    both(filled, main)


def test_watches(filled):
    """The same changes come as equal events: new, changed, deleted, and bookmarks without an object."""

    async def main(plain, packed, _):
        since = (await plain.list(PODS, namespace=NAMESPACE)).resource_version

        async def seen(client):
            found = []
            stream = client.watch(PODS, resource_version=since, namespace=NAMESPACE)
            async with aclosing(stream) as batches:
                async for batch in batches:
                    found += [event for event in batch if event.type != "BOOKMARK"]
                    if found and found[-1].type == "DELETED":
                        return found
            return found

        watching = [asyncio.ensure_future(seen(client)) for client in (plain, packed)]
        await plain.create(PODS.untyped, builders.pod("brief"), namespace=NAMESPACE)
        await plain.patch(PODS, "brief", {"metadata": {"labels": {"a": "b"}}}, namespace=NAMESPACE)
        await plain.patch(PODS, "brief", {"status": STATUS}, namespace=NAMESPACE, subresource="status")
        await plain.delete(PODS, "brief", namespace=NAMESPACE, grace_period_s=0)
        one, other = await asyncio.wait_for(asyncio.gather(*watching), 300)
        assert [event.type for event in one][:3] == ["ADDED", "MODIFIED", "MODIFIED"]
        assert one == other

    both(filled, main)


def test_refusals(filled):
    """Refusals have the words that they have in JSON."""

    async def said(client, **asked):
        with pytest.raises((BadRequest, Forbidden)) as caught:
            await client.list(PODS, **asked)
        return type(caught.value), str(caught.value), caught.value.details

    async def main(plain, packed, clock):
        wrong = await said(plain, fields="spec.nono=1")
        assert wrong[0] is BadRequest
        assert await said(packed, fields="spec.nono=1") == wrong
        async with (
            HttpCluster(filled.viewer, clock) as viewer,
            HttpCluster(filled.viewer, clock, protobuf=True) as packed_viewer,
        ):
            forbidden = await said(viewer)
            assert forbidden[0] is Forbidden
            assert await said(packed_viewer) == forbidden

    both(filled, main)
