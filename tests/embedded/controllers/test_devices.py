"""Claims for devices are made, given devices with the pod that needs them, and taken back after it."""

from __future__ import annotations

import pytest
from tests.embedded.controllers.live import play
from tests.objects import samples

from kubetide.embedded.cloud.device_slices import slices_json
from kubetide.objects.kinds import (
    DEVICE_CLASSES,
    EVENTS,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from kubetide.objects.pod import pod_condition
from kubetide.testing import builders

PARTS = ("scheduler", "claims")
FREE = "example.com/gpu"


async def add_node(live, name, devices):
    await live.add(NODES, builders.node(name, cpu="8"))
    for body in slices_json({"gpu.test": devices} if devices else {}, node=name):
        await live.add(RESOURCE_SLICES, body)


async def begin(live, *, devices=(2,), **spec):
    """Nodes with that many devices each, a class, and a template of claims for one device."""
    for number, count in enumerate(devices):
        await add_node(live, f"n{number}", count)
    await live.add(DEVICE_CLASSES, samples.device_class(**spec))
    template = samples.resource_claim_template()
    await live.add(RESOURCE_CLAIM_TEMPLATES, {**template, "metadata": {"name": "gpu"}})


async def add_claim(live, name="shared", count=1, **fields):
    asked = {"name": "one", "exactly": {"deviceClassName": "gpu.test", "count": count, **fields}}
    await live.add(RESOURCE_CLAIMS, {**samples.resource_claim(name, asked), "metadata": {"name": name}})


async def add_pod(live, name, claim="", **spec):
    """A pod with a claim of that name, or with one out of the template."""
    of = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": "gpu"}
    await live.add(
        PODS, builders.pod(name, extra={"spec": {"resourceClaims": [{"name": "gpu", **of}], **spec}})
    )


async def node_of(live, name):
    return (await live.get(PODS, name)).spec.node_name


async def waits_for(live, name):
    condition = pod_condition(await live.get(PODS, name), "PodScheduled")
    return "" if condition is None else condition.message


async def given(live):
    """The devices of each claim that has any, and its users."""
    found = {}
    for claim in await live.list(RESOURCE_CLAIMS):
        if claim.status.allocation is not None:
            results = claim.status.allocation.devices.results
            users = tuple(one.name for one in claim.status.reserved_for or ())
            found[claim.metadata.name] = ([(one.pool, one.device) for one in results], users)
    return found


async def end(live, name):
    await live.patch(PODS, name, {"status": {"phase": "Succeeded"}}, subresource="status")


def test_a_claim_is_made_from_its_template_and_given_a_device():
    """It is named after pod and claim, belongs to the pod, and is in the pod's status; then the pod is bound."""

    async def body(live):
        await begin(live)
        await add_pod(live, "train")
        await live.sleep(2)
        (claim,) = await live.list(RESOURCE_CLAIMS)
        pod = await live.get(PODS, "train")
        assert claim.metadata.name.startswith("train-gpu-")
        assert claim.metadata.annotations == {"resource.kubernetes.io/pod-claim-name": "gpu"}
        (owner,) = claim.metadata.owner_references
        assert (owner.uid, owner.controller, owner.block_owner_deletion) == (pod.metadata.uid, True, True)
        (reported,) = pod.status.resource_claim_statuses
        assert (reported.name, reported.resource_claim_name) == ("gpu", claim.metadata.name)
        (result,) = claim.status.allocation.devices.results
        assert (result.request, result.driver, result.pool, result.device) == (
            "one",
            "gpu.test",
            "n0",
            "device-0",
        )
        (term,) = claim.status.allocation.node_selector.node_selector_terms
        (field,) = term.match_fields
        assert (field.key, field.operator, field.values) == ("metadata.name", "In", ("n0",))
        (user,) = claim.status.reserved_for
        assert (user.resource, user.name, user.uid) == ("pods", "train", pod.metadata.uid)
        assert claim.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
        assert pod.spec.node_name == "n0"

    play(body, *PARTS)


def test_no_device_is_given_twice():
    """Pods that come at once get different devices; a pod without a device has upstream's reason."""

    async def body(live):
        await begin(live, devices=(2, 1))
        for number in range(4):
            await add_pod(live, f"p{number}")
        await live.sleep(3)
        devices = [device for devices, _ in (await given(live)).values() for device in devices]
        assert sorted(devices) == [("n0", "device-0"), ("n0", "device-1"), ("n1", "device-0")]
        (left,) = [f"p{number}" for number in range(4) if not await node_of(live, f"p{number}")]
        assert await waits_for(live, left) == (
            "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: "
            "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        )

    play(body, *PARTS)


@pytest.mark.parametrize("how", ["ends", "is deleted"])
def test_devices_are_taken_back(how):
    """A claim out of a template goes with its pod, or when that has finished, and the next pod gets the device."""

    async def body(live):
        await begin(live, devices=(1,))
        await add_pod(live, "first")
        await live.sleep(2)
        await add_pod(live, "second")
        await live.sleep(2)
        assert await node_of(live, "second") == ""
        if how == "ends":
            await end(live, "first")
        else:
            await live.cluster.delete(PODS, "first", namespace="shop", grace_period_s=0)
        await live.sleep(15)
        assert await node_of(live, "second") == "n0"
        (claim,) = await live.list(RESOURCE_CLAIMS)
        assert claim.metadata.name.startswith("second-gpu-")

    play(body, *PARTS)


def test_a_shared_claim_binds_its_users_to_one_node():
    """The second pod goes where the first one's devices are; the claim stays, without devices, after both."""

    async def body(live):
        await begin(live, devices=(1, 1))
        await add_claim(live)
        for name in ("a", "b"):
            await add_pod(live, name, "shared")
        await live.sleep(8)
        assert await node_of(live, "a") == await node_of(live, "b") != ""
        assert (await given(live))["shared"][1] == ("a", "b")
        await end(live, "a")
        await live.sleep(1)
        assert (await given(live))["shared"][1] == ("b",)
        await end(live, "b")
        await live.sleep(1)
        assert await given(live) == {}
        claim = await live.get(RESOURCE_CLAIMS, "shared")
        assert claim.metadata.finalizers is None

    play(body, *PARTS)


def test_a_claim_in_use_remains_until_its_user_is_deleted():
    """Its deletion is requested at once, and done when no pod has its devices."""

    async def body(live):
        await begin(live)
        await add_claim(live)
        await add_pod(live, "a", "shared")
        await live.sleep(2)
        await live.cluster.delete(RESOURCE_CLAIMS, "shared", namespace="shop")
        await live.sleep(1)
        assert (await live.get(RESOURCE_CLAIMS, "shared")).metadata.deletion_timestamp
        await live.cluster.delete(PODS, "a", namespace="shop", grace_period_s=0)
        await live.sleep(1)
        assert await live.list(RESOURCE_CLAIMS) == []

    play(body, *PARTS)


def test_extended_resources_get_a_claim_of_their_own():
    """A class gives a resource: the scheduler makes the claim, and the pod's status maps requests to containers."""

    async def body(live):
        await begin(live, devices=(2,), extendedResourceName=FREE)
        asks = {"resources": {"requests": {"cpu": "100m", FREE: "2"}, "limits": {FREE: "2"}}}
        for name in ("a", "b"):
            containers = [{"name": "main", "image": "train", **asks}]
            await live.add(PODS, builders.pod(name, extra={"spec": {"containers": containers}}))
            await live.sleep(2)
        (claim,) = await live.list(RESOURCE_CLAIMS)
        assert claim.metadata.name.startswith("a-extended-resources-")
        assert len(claim.status.allocation.devices.results) == 2
        raw = await live.get(PODS.untyped, "a")
        assert raw["status"]["extendedResourceClaimStatus"] == {
            "resourceClaimName": claim.metadata.name,
            "requestMappings": [
                {"containerName": "main", "resourceName": FREE, "requestName": "container-0-request-1"}
            ],
        }
        assert await node_of(live, "b") == ""
        await end(live, "a")
        await live.sleep(15)
        assert await node_of(live, "b") == "n0"

    play(body, *PARTS)


def test_a_pod_waits_for_what_is_not_there():
    """Without its claim or its template nothing is written of it, without the class upstream's words; it goes on at once later."""

    async def body(live):
        await add_node(live, "n0", 1)
        await add_pod(live, "a", "shared")
        await add_pod(live, "b")
        await live.sleep(1)
        assert await waits_for(live, "a") == await waits_for(live, "b") == ""
        assert "FailedScheduling" not in {one.reason for one in await live.list(EVENTS)}
        events = {(one.reason, one.message) for one in await live.list(EVENTS)}
        missing = 'resourceclaimtemplate.resource.k8s.io "gpu" not found'
        why = f'PodResourceClaim gpu: resource claim template "gpu": {missing}'
        assert ("FailedResourceClaimCreation", why) in events
        await add_claim(live)
        await live.sleep(2)
        assert "could not retrieve device class gpu.test" in await waits_for(live, "a")
        await live.add(DEVICE_CLASSES, samples.device_class())
        await live.sleep(15)
        assert await node_of(live, "a") == "n0"

    play(body, *PARTS)


def test_slices_that_come_later_help():
    """A driver that publishes its devices wakes the pods that waited for them."""

    async def body(live):
        await begin(live, devices=(0,))
        await add_pod(live, "a")
        await live.sleep(2)
        assert await node_of(live, "a") == ""
        for piece in slices_json({"gpu.test": 1}, node="n0"):
            await live.add(RESOURCE_SLICES, piece)
        await live.sleep(15)
        assert await node_of(live, "a") == "n0"

    play(body, *PARTS)
