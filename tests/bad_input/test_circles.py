"""Volumes and claims that refer to each other in circles, or to themselves: each pod gets the scheduler's verdict."""

from __future__ import annotations

import msgspec
import pytest
from tests.bad_input.crowds import node
from tests.bad_input.test_crowds import put
from tests.embedded.controllers.live import play
from tests.nodes.frozen import World, group, pod

from kubetide.nodes.facts.volumes import VolumeChanges
from kubetide.nodes.records.export import copy_state, export_state
from kubetide.objects.kinds import CLAIMS, NODES, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES
from kubetide.objects.pod import pod_condition
from kubetide.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubetide.testing import builders

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
SIZE = {
    "resources": {"requests": {"storage": "1Gi"}},
    "accessModes": ["ReadWriteOnce"],
    "volumeMode": "Filesystem",
}
HELD = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}


def claim(name, volume="", *, bound=False, owner=None, **spec):
    meta = {"name": name, **({"annotations": BOUND} if bound else {})}
    if owner:
        reference = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": owner,
            "uid": f"u-{owner}",
            "controller": True,
        }
        meta["ownerReferences"] = [reference]
    return {"metadata": meta, "spec": {**SIZE, **({"volumeName": volume} if volume else {}), **spec}}


def volume(name, of="", **spec):
    reference = {"claimRef": {"namespace": "shop", "name": of, "uid": f"persistentvolumeclaims-{of}"}}
    return {"metadata": {"name": name}, "spec": {**HELD, **(reference if of else {}), **spec}}


def storage_class(name, **fields):
    return {"metadata": {"name": name}, "provisioner": name, **fields}


USES = {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "c0"}}]}
EPHEMERAL = {"volumes": [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": SIZE}}}]}

# What there is, the pod's spec, and the words of the refusal, none where the pod gets a node.
CIRCLES = {
    "two claims, each bound to the other's volume": (
        [claim("c0", "v1", bound=True), claim("c1", "v0", bound=True)],
        [volume("v0", "c0"), volume("v1", "c1")],
        [],
        USES,
        "",
    ),
    "two claims that name each other's volume": (
        [claim("c0", "v1"), claim("c1", "v0")],
        [volume("v0", "c0"), volume("v1", "c1")],
        [],
        USES,
        "pod has unbound immediate PersistentVolumeClaims",
    ),
    "a volume that two claims are bound to": (
        [claim("c0", "v0", bound=True), claim("c1", "v0", bound=True)],
        [volume("v0", "c1")],
        [],
        USES,
        "",
    ),
    "two volumes for one claim": (
        [claim("c0", "v0", bound=True)],
        [volume("v0", "c0"), volume("v1", "c0")],
        [],
        USES,
        "",
    ),
    "a claim bound to a volume that is not there": (
        [claim("c0", "v9", bound=True)],
        [],
        [],
        USES,
        "bound to non-existent p",
    ),
    "a claim that is made of itself": (
        [
            claim(
                "c0",
                storageClassName="none",
                dataSource={"kind": "PersistentVolumeClaim", "name": "c0"},
                dataSourceRef={"kind": "PersistentVolumeClaim", "name": "c0"},
            )
        ],
        [],
        [],
        USES,
        "pod has unbound immediate PersistentVolumeClaims",
    ),
    "a class that makes what it is named after": (
        [claim("c0", storageClassName="c0", volumeAttributesClassName="c0")],
        [],
        [
            storage_class(
                "c0", parameters={"storageClassName": "c0"}, volumeBindingMode="WaitForFirstConsumer"
            )
        ],
        USES,
        "",
    ),
    "an ephemeral volume whose claim is another pod's": (
        [claim("p-data", owner="q")],
        [],
        [],
        EPHEMERAL,
        "PVC shop/p-data was not created for pod shop/p (pod is not owner)",
    ),
}


def scheduled(claims, volumes, classes, spec):
    """Play the scheduler and the volume controller; return the odd pod's node and the messages about it."""

    async def body(live):
        put(live, NODES, node(0))
        for kind, bodies in ((CLAIMS, claims), (PERSISTENT_VOLUMES, volumes), (STORAGE_CLASSES, classes)):
            for one in bodies:
                put(live, kind, one)
        put(live, PODS, {**builders.pod("p", extra={"spec": spec}), "status": {"phase": "Pending"}})
        await live.sleep(30)
        put(live, PODS, {**builders.pod("good"), "status": {"phase": "Pending"}})
        await live.sleep(30)
        assert live.running["scheduler"].errors == 0
        assert live.pods.objects["shop", "good"].spec.node_name == "n0"
        odd = live.pods.objects["shop", "p"]
        return odd.spec.node_name, pod_condition(odd, "PodScheduled").message

    return play(body, "scheduler", "volumes", "claims")


@pytest.mark.parametrize("what", sorted(CIRCLES))
def test_a_circle_ends_in_the_cluster(what):
    """The pod is bound, or refused in the scheduler's words, and a good one gets its node."""
    *objects, spec, words = CIRCLES[what]
    node_name, message = scheduled(*objects, spec)
    if words:
        assert words in message
    else:
        assert (node_name, message) == ("n0", "")


@pytest.mark.parametrize("what", sorted(CIRCLES))
def test_a_circle_ends_in_the_node_loop(what):
    """A node is bought for the good pod, and for the other one where it would get there."""
    claims, volumes, classes, spec, words = CIRCLES[what]
    meta = {"namespace": "shop", "uid": "u-p"}
    waiting = [
        pod("p", of="odd", metadata=meta, spec=spec),
        pod("good"),
    ]

    def read(bodies, model, **more):
        return tuple(
            msgspec.convert({**one, "metadata": {**one["metadata"], **more}}, model) for one in bodies
        )

    world = World(
        pods=waiting,
        groups=[group("g")],
        volumes=VolumeChanges(
            claims=read(claims, PersistentVolumeClaim, namespace="shop"),
            persistent_volumes=read(volumes, PersistentVolume),
            storage_classes=read(classes, StorageClass),
        ),
    )
    assert world.increases() == {"g": 1}
    helped = sorted(one.name for one in world.events if one.reason == "TriggeredScaleUp")
    assert helped == (["good"] if words else ["good", "p"])
    assert export_state(copy_state(world.state)) == export_state(world.state)
