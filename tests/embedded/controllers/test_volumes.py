"""Claims get their volumes, and pods with claims the nodes that reach them."""

from __future__ import annotations

import pytest
from tests.embedded.controllers.live import play
from tests.objects import samples

from kubetide.objects.kinds import (
    CLAIMS,
    CSI_NODES,
    EVENTS,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
)
from kubetide.objects.pod import pod_condition
from kubetide.testing import builders

ZONE = "topology.kubernetes.io/zone"
LATE = {"volumeBindingMode": "WaitForFirstConsumer"}


async def add_claim(live, name="data", **spec):
    await live.add(CLAIMS, {**samples.claim(name, **spec), "metadata": {"name": name}})


async def add_pod(live, name, *claims, **spec):
    volumes = [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]
    await live.add(PODS, builders.pod(name, extra={"spec": {"volumes": volumes, **spec}}))


async def claim_of(live, name="data"):
    return await live.get(CLAIMS, name)


async def node_of(live, name):
    return (await live.get(PODS, name)).spec.node_name


async def waits_for(live, name):
    condition = pod_condition(await live.get(PODS, name), "PodScheduled")
    return "" if condition is None else condition.message


def unhelped(nodes, what="Preemption is not helpful for scheduling"):
    """What kube-scheduler 1.36 adds of a pod for which nobody may be preempted."""
    return f" no new claims to deallocate, preemption: 0/{nodes} nodes are available: {nodes} {what}."


async def reported(live):
    return {(event.reason, event.message) for event in await live.list(EVENTS)}


def local(name, zone, size="10Gi", **spec):
    """A volume that only the nodes of one zone reach."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    return samples.volume(
        name,
        storageClassName="local",
        capacity={"storage": size},
        nodeAffinity={"required": {"nodeSelectorTerms": [term]}},
        **spec,
    )


@pytest.mark.parametrize(
    ("provisioner", "expected"),
    [("example.com/x", None), ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"), ("csi.test", "csi.test")],
)
def test_any_name_of_a_provisioner_makes_volumes(provisioner, expected):
    """A provisioner with a slash in its name, which no CSI driver has, makes volumes of another kind."""

    async def body(live):
        given = {**samples.storage_class(), "provisioner": provisioner, "metadata": {"name": "own"}}
        await live.cluster.create(STORAGE_CLASSES, given)
        await add_claim(live, storageClassName="own")
        await live.sleep(1)
        claim = await claim_of(live)
        assert claim.status.phase == "Bound"
        volume = await live.cluster.get(PERSISTENT_VOLUMES, claim.spec.volume_name)
        driver = None if volume.spec.csi is None else volume.spec.csi.driver
        assert driver == expected

    play(body, "volumes")


def test_an_immediate_claim_gets_the_smallest_volume_that_will_do():
    """Class, size, modes and selector count; what is left over stays available."""

    async def body(live):
        for name, size in (("small", "1Gi"), ("right", "6Gi"), ("large", "50Gi")):
            await live.cluster.create(
                PERSISTENT_VOLUMES, samples.volume(name, capacity={"storage": size}, storageClassName="")
            )
        await add_claim(live, storageClassName="")
        await live.sleep(1)
        claim = await claim_of(live)
        assert (claim.spec.volume_name, claim.status.phase) == ("right", "Bound")
        assert claim.status.capacity == {"storage": "6Gi"}
        volumes = (await live.cluster.list(PERSISTENT_VOLUMES)).items
        assert {one.metadata.name: one.status.phase for one in volumes} == {
            "small": "Available",
            "right": "Bound",
            "large": "Available",
        }
        ref = next(one for one in volumes if one.metadata.name == "right").spec.claim_ref
        assert (ref.namespace, ref.name, ref.uid) == ("shop", "data", claim.metadata.uid)

    play(body, "volumes")


def test_a_volume_is_made_for_a_class_with_a_provisioner():
    """The default class is filled in; the volume is deleted with its claim, as the class says."""

    async def body(live):
        notes = {"storageclass.kubernetes.io/is-default-class": "true"}
        await live.cluster.create(
            STORAGE_CLASSES,
            {**samples.storage_class(), "metadata": {"name": "fast", "annotations": notes}},
        )
        await add_claim(live)
        await live.sleep(1)
        claim = await claim_of(live)
        assert claim.spec.storage_class_name == "fast"
        assert claim.spec.volume_name == f"pvc-{claim.metadata.uid}"
        volume = await live.cluster.get(PERSISTENT_VOLUMES, claim.spec.volume_name)
        assert (volume.status.phase, volume.spec.csi.driver) == ("Bound", "csi.test")
        await live.cluster.delete(CLAIMS, "data", namespace="shop")
        await live.sleep(1)
        assert await live.list(CLAIMS) == []
        assert (await live.cluster.list(PERSISTENT_VOLUMES)).items == []

    play(body, "volumes")


def test_a_volume_that_is_retained_is_released():
    """After its claim is deleted a volume of the policy Retain stays, and nobody else gets it."""

    async def body(live):
        await live.cluster.create(PERSISTENT_VOLUMES, samples.volume(storageClassName=""))
        await add_claim(live, storageClassName="")
        await live.sleep(1)
        await live.cluster.delete(CLAIMS, "data", namespace="shop")
        await live.sleep(1)
        await add_claim(live, "next", storageClassName="")
        await live.sleep(1)
        assert (await live.cluster.get(PERSISTENT_VOLUMES, "v1")).status.phase == "Released"
        assert (await claim_of(live, "next")).status.phase == "Pending"

    play(body, "volumes")


def test_what_a_claim_waits_for_is_reported():
    """Without a class, with one that is not there, and with one that waits for a pod."""

    async def body(live):
        await live.cluster.create(STORAGE_CLASSES, samples.storage_class("late", **LATE))
        for name, found in (("none", ""), ("gone", "gone"), ("late", "late")):
            await add_claim(live, name, storageClassName=found)
        await live.sleep(1)
        assert await reported(live) == {
            (
                "FailedBinding",
                "no persistent volumes available for this claim and no storage class is set",
            ),
            ("ProvisioningFailed", 'storageclass.storage.k8s.io "gone" not found'),
            ("WaitForFirstConsumer", "waiting for first consumer to be created before binding"),
        }

    play(body, "volumes")


def test_a_claim_in_use_remains_until_its_pod_is_deleted():
    """A claim remains while a pod uses it, and a volume while its claim exists."""

    async def body(live):
        await live.add_nodes("n1")
        await live.cluster.create(PERSISTENT_VOLUMES, samples.volume(storageClassName=""))
        await add_claim(live, storageClassName="")
        await add_pod(live, "web", "data")
        await live.sleep(3)
        assert await node_of(live, "web") == "n1"
        await live.cluster.delete(CLAIMS, "data", namespace="shop")
        await live.cluster.delete(PERSISTENT_VOLUMES, "v1")
        await live.sleep(1)
        assert (await claim_of(live)).metadata.deletion_timestamp
        await live.cluster.delete(PODS, "web", namespace="shop", grace_period_s=0)
        await live.sleep(1)
        assert await live.list(CLAIMS) == []
        assert (await live.cluster.list(PERSISTENT_VOLUMES)).items == []

    play(body, "volumes", "scheduler")


def test_a_pod_waits_for_its_claims():
    """In kube-scheduler's words, and it is placed once they are bound."""

    async def body(live):
        await live.add_nodes("n1")
        await add_pod(live, "web", "data")
        await live.sleep(1)
        assert await waits_for(live, "web") == (
            '0/1 nodes are available: persistentvolumeclaim "data" not found. not found'
        )
        await add_claim(live, storageClassName="")
        await live.sleep(11)
        assert await waits_for(live, "web") == (
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
        )
        await live.cluster.create(PERSISTENT_VOLUMES, samples.volume(storageClassName=""))
        await live.sleep(11)
        assert await node_of(live, "web") == "n1"

    play(body, "volumes", "scheduler")


def test_a_pod_goes_where_its_volume_is():
    """Nodes of another zone do not do, however empty they are."""

    async def body(live):
        await live.add_nodes("a1", labels={ZONE: "a"}, cpu="1")
        await live.add_nodes("b1", "b2", labels={ZONE: "b"})
        await live.cluster.create(PERSISTENT_VOLUMES, local("v1", "a"))
        await live.cluster.create(STORAGE_CLASSES, samples.storage_class("local"))
        await add_claim(live, storageClassName="local")
        await live.sleep(1)
        await add_pod(live, "one", "data")
        await add_pod(live, "two", "data")
        for name in ("one", "two"):
            await live.sleep(1)
            assert await node_of(live, name) == "a1"

    play(body, "volumes", "scheduler")


def test_the_first_consumer_decides_where_a_volume_is_made():
    """The pod waits on its node until its claim is bound; the volume stays in that node's zone."""

    async def body(live):
        await live.add_nodes("a1", labels={ZONE: "a"})
        await live.cluster.create(STORAGE_CLASSES, samples.storage_class("late", **LATE))
        await add_claim(live, storageClassName="late")
        await live.sleep(1)
        assert (await claim_of(live)).status.phase == "Pending"
        await add_pod(live, "web", "data")
        await live.sleep(1)
        assert await node_of(live, "web") == "a1"
        volume = await live.cluster.get(PERSISTENT_VOLUMES, (await claim_of(live)).spec.volume_name)
        (term,) = volume.spec.node_affinity.required.node_selector_terms
        assert [(one.key, one.values) for one in term.match_expressions] == [(ZONE, ("a",))]
        await live.cluster.delete(PODS, "web", namespace="shop", grace_period_s=0)
        await live.cluster.delete(NODES, "a1")
        await live.add_nodes("b1", labels={ZONE: "b"})
        await add_pod(live, "next", "data")
        await live.sleep(1)
        assert await waits_for(live, "next") == (
            "0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity." + unhelped(1)
        )

    play(body, "volumes", "scheduler")


def test_a_pod_whose_volume_is_not_made():
    """While it waits it is nominated to its node; after ten minutes it is given up, with upstream's words, and tried again."""

    async def body(live):
        await live.add_nodes("n1")
        await live.cluster.create(STORAGE_CLASSES, samples.storage_class("late", **LATE))
        await add_claim(live, storageClassName="late")
        await add_pod(live, "web", "data")
        await live.sleep(60)
        assert (await live.get(PODS, "web")).status.nominated_node_name == "n1"
        assert await waits_for(live, "web") == ""
        await live.sleep(9 * 60 + 0.5)
        web = await live.get(PODS, "web")
        said = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
        assert pod_condition(web, "PodScheduled").reason == "SchedulerError"
        assert ("FailedScheduling", said) in await reported(live)
        assert (await waits_for(live, "web"), web.status.nominated_node_name) == (said, "")
        await live.sleep(5)
        assert (await live.get(PODS, "web")).status.nominated_node_name == "n1"

    play(body, "scheduler")


def test_two_pods_do_not_get_one_volume():
    """When two pods need the only volume of a zone, one goes to the other zone's volume, and the third waits."""

    async def body(live):
        await live.add_nodes("a1", labels={ZONE: "a"})
        await live.add_nodes("b1", labels={ZONE: "b"})
        given = {"provisioner": "kubernetes.io/no-provisioner", **LATE}
        await live.cluster.create(STORAGE_CLASSES, samples.storage_class("local", **given))
        await live.cluster.create(PERSISTENT_VOLUMES, local("va", "a"))
        await live.cluster.create(PERSISTENT_VOLUMES, local("vb", "b"))
        await live.sleep(1)
        for name in ("one", "two", "three"):
            await add_claim(live, f"c-{name}", storageClassName="local")
            await add_pod(live, name, f"c-{name}")
        await live.sleep(12)
        assert sorted([await node_of(live, "one"), await node_of(live, "two")]) == ["a1", "b1"]
        for name in ("one", "two"):
            volume = (await claim_of(live, f"c-{name}")).spec.volume_name
            assert volume == {"a1": "va", "b1": "vb"}[await node_of(live, name)]
        assert await waits_for(live, "three") == (
            "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind."
            + unhelped(2)
        )

    play(body, "volumes", "scheduler")


def test_a_node_attaches_only_so_many_volumes():
    """Beyond the count of its CSINode pods go elsewhere, or wait."""

    async def body(live):
        await live.add_nodes("n1")
        driver = {"name": "csi.test", "nodeID": "n1", "allocatable": {"count": 1}}
        await live.cluster.create(CSI_NODES, samples.csi_node("n1", drivers=[driver]))
        await live.cluster.create(STORAGE_CLASSES, samples.storage_class("late", **LATE))
        for name in ("one", "two"):
            await add_claim(live, name, storageClassName="late")
            await add_pod(live, name, name)
            await live.sleep(1)
        assert await node_of(live, "one") == "n1"
        assert await waits_for(live, "two") == (
            "0/1 nodes are available: 1 node(s) exceed max volume count."
            + unhelped(1, "No preemption victims found for incoming pod")
        )

    play(body, "volumes", "scheduler")


def test_ephemeral_volumes_come_and_go_with_their_pod():
    """The claim is made for the pod, and deleted with it."""

    async def body(live):
        await live.add_nodes("n1")
        await live.cluster.create(STORAGE_CLASSES, samples.storage_class("late", **LATE))
        template = {
            "metadata": {"labels": {"for": "web"}},
            "spec": samples.claim(storageClassName="late")["spec"],
        }
        volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
        await live.add(PODS, builders.pod("web", extra={"spec": {"volumes": [volume]}}))
        await live.sleep(12)
        assert await node_of(live, "web") == "n1"
        claim = await claim_of(live, "web-scratch")
        assert (claim.status.phase, claim.metadata.labels) == ("Bound", {"for": "web"})
        await live.cluster.delete(PODS, "web", namespace="shop", grace_period_s=0)
        await live.sleep(1)
        assert await live.list(CLAIMS) == []

    play(body, "volumes", "scheduler")
