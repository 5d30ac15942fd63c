"""What a real API server says of volumes, claims and storage classes, the embedded one says too."""

from __future__ import annotations

import asyncio
import re

import pytest
from tests.cluster.served import TOKEN, served
from tests.objects import samples
from tools.plane.build import find

from kubetide.cluster import HttpCluster
from kubetide.embedded.server.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.embedded.store import EmbeddedCluster, Store
from kubetide.objects.kinds import KINDS
from kubetide.ports.errors import ApiError
from kubetide.runtime.clock import run_real

pytestmark = pytest.mark.slow

LONG = "x" * 64
TWO_MODES = ["ReadWriteOnce", "ReadWriteOncePod", "ReadSometimes"]
NO_TERMS = {"required": {"nodeSelectorTerms": []}}
TERMS = [{"matchExpressions": [{"key": "a b", "operator": "In"}, {"key": "a", "operator": "Is"}]}]


def topologies(*terms):
    return {"allowedTopologies": [{"matchLabelExpressions": list(terms)}]}


CREATED = {
    "volume": samples.volume(),
    "volume of nothing": samples.volume(csi=None),
    "volume of two": samples.volume(local={"path": "/a"}),
    "volume without modes": samples.volume(accessModes=[]),
    "volume with two modes": samples.volume(accessModes=TWO_MODES),
    "volume without capacity": samples.volume(capacity={}),
    "volume with other capacity": samples.volume(capacity={"cpu": "1"}),
    "empty volume": samples.volume(capacity={"storage": "0"}),
    "negative volume": samples.volume(capacity={"storage": "-1Gi"}),
    "odd policy": samples.volume(persistentVolumeReclaimPolicy="Burn", volumeMode="Object"),
    "odd class of volume": samples.volume(storageClassName="A b"),
    "affinity without terms": samples.volume(nodeAffinity=NO_TERMS),
    "affinity without nodes": samples.volume(nodeAffinity={}),
    "odd affinity": samples.volume(nodeAffinity={"required": {"nodeSelectorTerms": TERMS}}),
    "local without affinity": samples.volume(local={"path": "/a"}, csi=None),
    "local without path": samples.volume(local={"path": ""}, csi=None),
    "hostPath without path": samples.volume(hostPath={"path": ""}, csi=None),
    "nfs without server": samples.volume(nfs={"server": "", "path": ""}, csi=None),
    "csi without driver": samples.volume(csi={"driver": "", "volumeHandle": ""}),
    "csi with a long driver": samples.volume(csi={"driver": LONG, "volumeHandle": "h"}),
    "csi with an odd driver": samples.volume(csi={"driver": "a_b", "volumeHandle": "h"}),
    "claim": samples.claim(),
    "claim without modes": samples.claim(accessModes=[]),
    "claim with two modes": samples.claim(accessModes=TWO_MODES),
    "claim without size": samples.claim(resources={}),
    "empty claim": samples.claim(resources={"requests": {"storage": "0"}}),
    "claim of a mode": samples.claim(volumeMode="Object"),
    "claim of a class": samples.claim(storageClassName="A b"),
    "claim with a selector": samples.claim(
        selector={"matchLabels": {"-": "b"}, "matchExpressions": [{"key": "a", "operator": "In"}]}
    ),
    "class": samples.storage_class(),
    "class of nobody": samples.storage_class(provisioner=""),
    "class of somebody odd": samples.storage_class(provisioner="A b"),
    "class with a mode": samples.storage_class(volumeBindingMode="Later", reclaimPolicy="Recycle"),
    "class without values": samples.storage_class(**topologies({"key": "zone", "values": []})),
    "class with values twice": samples.storage_class(
        **topologies({"key": "zone", "values": ["a", "a"]}, {"key": "zone", "values": ["b"]})
    ),
    "class with an odd key": samples.storage_class(**topologies({"key": "a b", "values": ["a"]})),
    "csi node": samples.csi_node(drivers=[{"name": "csi.test", "nodeID": "n"}]),
    "csi node without names": samples.csi_node(drivers=[{"name": "", "nodeID": ""}]),
    "csi node with a driver twice": samples.csi_node(drivers=[{"name": "csi.test", "nodeID": "n"}] * 2),
    "csi node below zero": samples.csi_node(
        drivers=[{"name": "csi.test", "nodeID": LONG * 5, "allocatable": {"count": -1}}]
    ),
    "csi node with odd keys": samples.csi_node(
        drivers=[{"name": "csi.test", "nodeID": "n", "topologyKeys": ["a", "a", "b c"]}]
    ),
    "driver": samples.csi_driver(),
    "driver with odd modes": samples.csi_driver(fsGroupPolicy="Most", volumeLifecycleModes=["Long"]),
    "capacity": samples.capacity(),
    "capacity of no class": samples.capacity(storageClassName=""),
    "capacity below zero": samples.capacity(capacity="-1"),
    "capacity with a selector": samples.capacity(nodeTopology={"matchExpressions": [{"key": "a"}]}),
    "attachment": samples.attachment(),
    "attachment of nobody": samples.attachment(attacher="", nodeName="", source={}),
    "attachment of nothing": samples.attachment(source={"persistentVolumeName": ""}),
}

UPDATED = {
    "volume keeps its source": (samples.volume(), {"spec": {"csi": {"volumeHandle": "h2"}}}),
    "volume keeps its mode": (samples.volume(), {"spec": {"volumeMode": "Block"}}),
    "volume gets a claim": (samples.volume(), {"spec": {"claimRef": {"name": "c", "namespace": "shop"}}}),
    "claim gets its volume": (samples.claim(storageClassName=""), {"spec": {"volumeName": "v1"}}),
    "claim keeps its volume": (samples.claim(volumeName="v0"), {"spec": {"volumeName": "v1"}}),
    "claim keeps its modes": (samples.claim(), {"spec": {"accessModes": ["ReadOnlyMany"]}}),
    "claim keeps its size": (samples.claim(), {"spec": {"resources": {"requests": {"storage": "9Gi"}}}}),
    "class keeps its rules": (
        samples.storage_class(),
        {
            "provisioner": "b",
            "reclaimPolicy": "Retain",
            "volumeBindingMode": "WaitForFirstConsumer",
            "parameters": {"a": "b"},
        },
    ),
    "class may expand": (samples.storage_class(), {"allowVolumeExpansion": True}),
    "driver keeps its modes": (
        samples.csi_driver(),
        {"spec": {"attachRequired": False, "volumeLifecycleModes": ["Ephemeral"]}},
    ),
    "capacity may change": (samples.capacity(), {"capacity": "5Gi"}),
    "capacity keeps its place": (
        samples.capacity(),
        {"storageClassName": "slow", "nodeTopology": {"matchLabels": {"zone": "b"}}},
    ),
}


def said(error):
    """What is compared of a refusal; of what may not change upstream shows a diff of Go structs too."""
    status = error.status()
    causes = (status.get("details") or {}).get("causes") or []
    return status["reason"], {
        (one.get("field"), one.get("reason"), one.get("message", "").partition("\n")[0]) for one in causes
    }


async def answers(client, body, patch=None):
    kind = KINDS[body["apiVersion"], body["kind"]]
    namespace = "default" if kind.namespaced else ""
    meta = {"name": body["metadata"]["name"]}
    try:
        await client.create(kind, {**body, "metadata": meta}, namespace=namespace)
    except ApiError as error:
        return said(error)
    try:
        if patch is not None:
            await client.patch(kind, meta["name"], patch, namespace=namespace)
    except ApiError as error:
        return said(error)
    else:
        return None
    finally:
        free = {"metadata": {"finalizers": None}}
        await client.patch(kind, meta["name"], free, namespace=namespace)
        await client.delete(kind, meta["name"], namespace=namespace)


def test_objects_are_judged_alike(quiet_plane):
    """Both take an object or a change of it, or both refuse it for the same fields with the same words."""

    async def run(clock):
        ours = EmbeddedCluster(Store(), clock)
        found = {}
        async with HttpCluster(quiet_plane.connection, clock) as client:
            for name, (body, *patch) in {**{n: (b,) for n, b in CREATED.items()}, **UPDATED}.items():
                pair = await answers(client, body, *patch), await answers(ours, body, *patch)
                if pair[0] != pair[1]:
                    found[name] = pair
        return found

    assert run_real(run) == {}


SHOWN = (
    samples.volume("v1", claimRef={"namespace": "default", "name": "c"}),
    samples.volume("v2", accessModes=["ReadWriteMany", "ReadOnlyMany"], storageClassName="slow"),
    samples.claim("c1"),
    samples.claim("c2", storageClassName="fast", volumeMode="Block", volumeName="v9"),
    samples.storage_class("fast", allowVolumeExpansion=True),
    {
        **samples.storage_class("usual", volumeBindingMode="WaitForFirstConsumer"),
        "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    },
    samples.csi_node("n1", drivers=[{"name": "csi.test", "nodeID": "n"}]),
    samples.csi_driver("d1", tokenRequests=[{"audience": "a"}, {"audience": "b"}]),
    samples.csi_driver("d2", attachRequired=False, storageCapacity=True, podInfoOnMount=True),
    samples.capacity("s1"),
    samples.attachment("a1"),
)


async def shown(client, kubectl, config):
    """What `kubectl get -o wide` prints of one object after another, without ages."""
    printed = []
    for body in SHOWN:
        kind = KINDS[body["apiVersion"], body["kind"]]
        name = body["metadata"].get("name", "usual")
        meta = {"name": name, **{k: v for k, v in body["metadata"].items() if k == "annotations"}}
        namespace = "default" if kind.namespaced else ""
        await client.create(kind, {**body, "metadata": meta}, namespace=namespace)
        command = [kubectl, f"--kubeconfig={config}", "get", kind.plural, name, "-o", "wide"]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        text, _ = await process.communicate()
        plain = re.sub(r"\b\d+s\b", "AGE", re.sub(r" +", " ", text.decode()))
        printed.append(re.sub(r"\d{4}-\S+Z", "DATE", plain))
        await client.patch(kind, name, {"metadata": {"finalizers": None}}, namespace=namespace)
        await client.delete(kind, name, namespace=namespace)
    return printed


def test_kubectl_shows_the_same(quiet_plane, tmp_path):
    """The columns and cells of each kind, as wide as they get."""
    kubectl = str(find("kubectl"))

    async def run(clock):
        async with HttpCluster(quiet_plane.connection, clock) as client:
            real = await shown(client, kubectl, quiet_plane.kubeconfig)
        async with served(clock) as (_, server, connection), HttpCluster(connection, clock) as client:
            config = tmp_path / "kubeconfig"
            write_kubeconfig(
                config, kubeconfig(server.url, token=TOKEN, authority=connection.authority.encode())
            )
            return real, await shown(client, kubectl, config)

    real, ours = run_real(run)
    assert ours == real
