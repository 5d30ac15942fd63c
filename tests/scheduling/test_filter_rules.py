"""Single rules of filter plugins that few pods meet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubetide.scheduling import ClusterFacts, PodClass, Snapshot, Volumes, classify

DRIVER = "csi.example.com"


def node(name: str, **status: Any) -> Node:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    given = {"metadata": {"name": name}, "status": {"allocatable": allocatable, **status}}
    return msgspec.convert(given, Node)


def pod(**spec: Any) -> Pod:
    given = {
        "metadata": {"name": "p", "namespace": "default", "uid": "p"},
        "spec": {"containers": [{"name": "c"}], **spec},
    }
    return msgspec.convert(given, Pod)


def _only(name: str) -> dict[str, Any]:
    field = {"key": "metadata.name", "operator": "In", "values": [name]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("minor", "refusals"),
    [
        (
            36,
            {
                "node(s) didn't satisfy plugin(s) [NodeAffinity]": 1,
                "node(s) didn't match the requested node name": 1,
            },
        ),
        (37, {"node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] simultaneously": 2}),
    ],
)
def test_a_pod_that_is_asked_onto_two_nodes_fits_nowhere(minor, refusals):
    """Its nodeName and its affinity name different nodes: v1.37 sees before it looks at nodes that none is left."""
    snapshot = Snapshot(ClusterFacts(minor=minor))
    for name in ("a", "b"):
        snapshot.set_node(node(name))
    pod_class = classify(pod(nodeName="a", affinity=_only("b")))
    assert not snapshot.feasible(pod_class).any()
    assert snapshot.refusals(pod_class) == refusals


@pytest.mark.parametrize(("minor", "left_out"), [(36, ""), (37, "NodeName")])
def test_other_nodes_than_the_named_one_are_left_out(minor, left_out):
    """With v1.37 nodes that the pod does not name are not looked at; with v1.36 each refuses it."""
    snapshot = Snapshot(ClusterFacts(minor=minor))
    for name in ("a", "b"):
        snapshot.set_node(node(name))
    pod_class = classify(pod(nodeName="a"))
    refusal = snapshot.first_refusal(pod_class, "b")
    assert refusal is not None
    assert (refusal.plugin if refusal.phase == "PreFilterResult" else "") == left_out
    assert snapshot.feasible(pod_class).tolist() == [True, False]


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({"hostNetwork": True, "hostUsers": False}, [False, True]),
        ({"hostUsers": False}, [True, True]),
        ({"hostNetwork": True}, [True, True]),
        ({"hostNetwork": True, "hostUsers": True}, [True, True]),
    ],
)
def test_users_of_its_own_on_the_nodes_network_must_be_declared(spec, fits):
    """A pod with hostNetwork and without hostUsers goes only where UserNamespacesHostNetworkSupport is declared."""
    snapshot = Snapshot()
    snapshot.set_node(node("plain"))
    snapshot.set_node(node("able", declaredFeatures=["UserNamespacesHostNetworkSupport"]))
    pod_class = classify(pod(**spec))
    assert snapshot.feasible(pod_class).tolist() == fits
    refusal = snapshot.first_refusal(pod_class, "plain")
    if not all(fits):
        assert refusal is not None
        assert (refusal.plugin, refusal.reasons) == (
            "NodeDeclaredFeatures",
            ("node(s) didn't match Pod's required features",),
        )


@pytest.mark.parametrize(("limit", "fits"), [(1, False), (2, True)])
def test_an_attached_volume_that_no_pod_uses_counts_beside_the_new_use_of_it(limit, fits):
    """A volume that is attached to the node but used by no pod there counts twice for a pod that uses it."""
    volume = {"driver": DRIVER, "volumeHandle": "h"}
    claim = {
        "metadata": {
            "name": "c",
            "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {"volumeName": "v"},
        "status": {"phase": "Bound"},
    }
    attached = {
        "spec": {"attacher": DRIVER, "nodeName": "n", "source": {"persistentVolumeName": "v"}},
    }
    drivers = [{"name": DRIVER, "allocatable": {"count": limit}}]
    volumes = Volumes(
        persistent_volumes={
            "v": msgspec.convert({"metadata": {"name": "v"}, "spec": {"csi": volume}}, PersistentVolume)
        },
        claims={("default", "c"): msgspec.convert(claim, PersistentVolumeClaim)},
        csi_nodes={"n": msgspec.convert({"metadata": {"name": "n"}, "spec": {"drivers": drivers}}, CSINode)},
        attachments=(msgspec.convert(attached, VolumeAttachment),),
    )
    snapshot = Snapshot(ClusterFacts(volumes=volumes))
    snapshot.set_node(node("n"))
    pod_class = classify(pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]))
    assert snapshot.feasible(pod_class).tolist() == [fits]


LOCAL = msgspec.convert(
    {
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    StorageClass,
)


def volume(name: str, at: str = "", **spec: Any) -> PersistentVolume:
    """Return a free volume of the class ``local``, which only the named node reaches."""
    here = [{"matchExpressions": [{"key": "at", "operator": "In", "values": [at]}]}]
    given = {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": here}}} if at else {}),
            **spec,
        },
        "status": {"phase": "Available"},
    }
    return msgspec.convert(given, PersistentVolume)


def claimed(name: str, bound_to: str = "", **spec: Any) -> PersistentVolumeClaim:
    """Return a claim for a volume of the class ``local``, bound to one or waiting for a node."""
    notes = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if bound_to else {}
    given = {
        "metadata": {"name": name, "namespace": "default", **notes},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": bound_to,
            **spec,
        },
    }
    return msgspec.convert(given, PersistentVolumeClaim)


def with_volumes(
    volumes: list[PersistentVolume], claims: list[PersistentVolumeClaim]
) -> tuple[Snapshot, PodClass]:
    """Return the nodes ``a`` and ``b``, and a pod that uses the claims."""
    facts = Volumes(
        persistent_volumes={one.metadata.name: one for one in volumes},
        claims={("default", one.metadata.name): one for one in claims},
        storage_classes={"local": LOCAL},
    )
    snapshot = Snapshot(ClusterFacts(volumes=facts))
    for name in ("a", "b"):
        snapshot.set_node(
            msgspec.structs.replace(node(name), metadata=ObjectMeta(name=name, labels={"at": name}))
        )
    used = [
        {"name": one.metadata.name, "persistentVolumeClaim": {"claimName": one.metadata.name}}
        for one in claims
    ]
    return snapshot, classify(pod(volumes=used))


@pytest.mark.parametrize("names", [("mine", "other"), ("z-mine", "other")])
def test_no_other_volume_takes_the_place_of_a_reserved_one_out_of_reach(names):
    """A claim that has a volume reserved for it gets no other one on a node that does not reach that volume."""
    mine = volume(names[0], "a", claimRef={"namespace": "default", "name": "c"})
    found = sorted([mine, volume(names[1], "b")], key=lambda one: one.metadata.name)
    snapshot, pod_class = with_volumes(found, [claimed("c")])
    assert snapshot.feasible(pod_class).tolist() == [True, False]


@pytest.mark.parametrize(
    ("offered", "asked", "fits"),
    [
        (None, None, True),
        ("gold", "gold", True),
        ("", None, True),
        ("gold", None, False),
        (None, "gold", False),
    ],
)
def test_volumes_are_taken_only_for_claims_of_their_attributes_class(offered, asked, fits):
    """A free volume of another VolumeAttributesClass does not serve a claim."""
    snapshot, pod_class = with_volumes(
        [volume("v", volumeAttributesClassName=offered)], [claimed("c", volumeAttributesClassName=asked)]
    )
    assert snapshot.feasible(pod_class).tolist() == [fits, fits]


LOST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"


@pytest.mark.parametrize(
    ("order", "reason"), [(("gone", "far"), LOST), (("far", "gone"), OUT_OF_REACH), (("near", "gone"), LOST)]
)
def test_the_first_bound_claim_that_fails_gives_the_reason(order, reason):
    """Of claims bound to a lost volume and to one out of reach only the first is reported."""
    claims = {
        "gone": claimed("gone", "lost"),
        "far": claimed("far", "on-b"),
        "near": claimed("near", "on-a"),
    }
    snapshot, pod_class = with_volumes(
        [volume("on-a", "a"), volume("on-b", "b")], [claims[name] for name in order]
    )
    assert snapshot.refusals_by_plugin(pod_class)["VolumeBinding"]["a"].reasons == (reason,)
