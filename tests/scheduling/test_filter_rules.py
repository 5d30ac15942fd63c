"""Single rules of filter plugins that few pods meet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from kubetide.scheduling import ClusterFacts, Snapshot, Volumes, classify

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
