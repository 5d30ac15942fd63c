"""What explain and events say of devices: what a new node brings, what is short, and what is free."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.nodes.claims import claim, devices, piece_of, slice_of, using, with_devices
from tests.nodes.frozen import World, group, node, pod, template
from tests.objects import samples

from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.explain.waiting.node_fit import explain_on_nodes
from kubetide.objects.resource import DeviceTaint, ResourceClaim


def test_a_group_is_explained_with_its_devices():
    """Explain says how many devices a new node would bring, by driver."""
    world = World(pods=[using("p")], groups=[with_devices("gpu", 4)], devices=devices(claims=[claim("p")]))
    world.tick()
    assert explain_group(world.state, "gpu", world.now).allocatable["devices of gpu.test"] == "4"


LACKS = "claim default/p, request one: wants 1 device, 0 match"
POOL = "gpu.test/template-template-node-for-gpu"


@pytest.mark.parametrize(
    ("claims", "slices", "why"),
    [
        (
            [claim("p", count=5)],
            None,
            "claim default/p, request one: wants 5 devices, 2 match, 2 of them free",
        ),
        ([claim("p")], (), LACKS),
        ([claim("p")], (piece_of("template", 0, of=2),), f"{LACKS}; slices of pool {POOL} are missing"),
        (
            [claim("p"), claim("q", count=2)],
            None,
            "each request can be met by itself, all of them together cannot",
        ),
    ],
    ids=["too many", "none", "an incomplete pool", "only together"],
)
def test_the_reason_names_the_devices_that_are_short(claims, slices, why):
    """Beside upstream's words the message names what each request needs, and what a new node has of it."""
    names = [{"name": one.metadata.name, "resourceClaimName": one.metadata.name} for one in claims]
    waiting = pod("p", spec={"resourceClaims": names})
    made = replace(template(), slices=(slice_of("template", 2),) if slices is None else slices)
    known = devices(claims=claims)
    world = World(pods=[waiting], groups=[group("gpu", made=made)], devices=known)
    world.tick()
    (reported,) = explain_pod(world.state, ("default", "p"), world.now).groups
    assert reported.why == f"cannot allocate all claims ({why})"
    assert world.messages("NotTriggerScaleUp") == [
        "pod didn't trigger scale-up: 1 cannot allocate all claims"
    ]


def asking(*alternatives):
    """Return the claim of a pod p for the first of some counts that is free."""
    names = [
        {"name": f"a{count}", "deviceClassName": "gpu.test", "allocationMode": "ExactCount", "count": count}
        for count in alternatives
    ]
    body = samples.resource_claim("p", {"name": "one", "firstAvailable": names})
    body["metadata"] = {"name": "p", "namespace": "default", "uid": "uid-p"}
    return msgspec.convert(body, ResourceClaim)


@pytest.mark.parametrize(
    ("requested", "tainted", "why"),
    [
        (
            claim("p", count=2),
            False,
            "claim default/p, request one: wants 2 devices, 2 match, 1 of them free",
        ),
        (claim("p"), True, "claim default/p, request one: wants 1 device, 2 match, 0 of them free"),
        (
            asking(3, 2),
            False,
            (
                "claim default/p, request a3: wants 3 devices, 2 match, 1 of them free; "
                "claim default/p, request a2: wants 2 devices, 2 match, 1 of them free"
            ),
        ),
    ],
    ids=["in use", "a taint", "alternatives"],
)
def test_the_reason_names_the_free_devices_of_a_live_node(requested, tainted, why):
    """A device that another pod has counts as present and not as free; so does a tainted device."""
    offered = slice_of("n1", 2)
    if tainted:
        broken = DeviceTaint(key="broken", effect="NoSchedule")
        each = tuple(replace(one, taints=(broken,)) for one in offered.spec.devices)
        offered = replace(offered, spec=replace(offered.spec, devices=each))
    taken = claim("old", device="gpu-0", on="n1", user="old")
    world = World(
        nodes=[node("n1")],
        pods=[using("p"), using("old", node="n1")],
        groups=[group("plain", nodes=("n1",))],
        devices=devices(slices=[offered], claims=[requested, taken]),
    )
    world.tick()
    (reported,) = explain_on_nodes(world.state, ("default", "p")).verdicts
    assert reported.why == f"cannot allocate all claims ({why})"
