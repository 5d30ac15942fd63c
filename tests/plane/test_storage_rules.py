"""A real API server and the embedded one answer alike about volumes, claims and storage classes."""

from __future__ import annotations

import pytest
from tests.objects import samples
from tests.plane.alike import differing_answers, shown_by_both

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


def test_objects_are_judged_alike(quiet_plane):
    """Both take an object or a change of it, or both refuse it for the same fields with the same words."""
    assert differing_answers(quiet_plane, CREATED, UPDATED) == {}


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


def test_kubectl_shows_the_same(quiet_plane, tmp_path):
    """The columns and cells of each kind, as wide as they get."""
    ours, real = shown_by_both(quiet_plane, SHOWN, tmp_path)
    assert ours == real
