"""Claims to devices in the node loop: what is bought for pods with claims, and which nodes may go."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace
from tests.nodes import live
from tests.nodes.frozen import START, World, group, node, pod, replica_set, template
from tests.nodes.test_volumes import Refusing
from tests.objects import samples

from kubetide.nodes.core import decode_delta, encode_delta
from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.explain.waiting.node_fit import explain_on_nodes
from kubetide.nodes.facts.devices import DeviceChanges
from kubetide.nodes.records.delta import Delta, Gone
from kubetide.nodes.records.export import copy_state, export_state
from kubetide.objects.kinds import DEVICE_KINDS, PODS, RESOURCE_CLAIMS
from kubetide.objects.resource import DeviceClass, DeviceTaint, ResourceClaim, ResourceSlice
from kubetide.ports.cloud import Instance
from kubetide.runtime.permissions import with_hint
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import after, format_rfc3339, minutes, seconds

CLASS = msgspec.convert(samples.device_class(), DeviceClass)
SHORT = {"scale_down_unneeded_time": minutes(1)}


def slice_of(name, count, **spec):
    """The slice that a driver publishes for a node with that many devices."""
    body = samples.resource_slice(
        f"{name}-gpu",
        nodeName=name,
        pool={"name": name, "generation": 1, "resourceSliceCount": 1},
        devices=[{"name": f"gpu-{number}"} for number in range(count)],
        **spec,
    )
    return msgspec.convert(body, ResourceSlice)


def claim(name, *, count=1, device="", on="", user=""):
    """A claim; with ``device`` the allocated one, on a node."""
    body = samples.resource_claim(
        name,
        {
            "name": "one",
            "exactly": {"deviceClassName": "gpu.test", "allocationMode": "ExactCount", "count": count},
        },
    )
    body["metadata"] = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if device:
        here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}
        result = {"request": "one", "driver": "gpu.test", "pool": on, "device": device}
        body["status"] = {
            "allocation": {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [here]}},
            "reservedFor": [{"resource": "pods", "name": user, "uid": f"uid-{user}"}],
        }
    return msgspec.convert(body, ResourceClaim)


def using(name, *, of=None, **fields):
    """A pod that uses a claim of the same name."""
    spec = {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": of or name}]}}
    return pod(name, **spec, **fields)


def at(since):
    return format_rfc3339(after(START, since))


def devices(*, slices=(), claims=(), classes=(CLASS,)):
    return DeviceChanges(slices=tuple(slices), claims=tuple(claims), classes=tuple(classes))


def with_devices(name, count, **fields):
    """A group whose new nodes bring devices, as its cloud says."""
    return group(name, made=replace(template(), slices=(slice_of("template", count),)), **fields)


@pytest.mark.parametrize(("each", "expected"), [(1, 4), (2, 2), (3, 2), (4, 1), (8, 1)])
def test_as_many_nodes_are_bought_as_have_the_devices(each, expected):
    """Four pods with a device each: new nodes bring theirs in pools of their own; others are of no use."""
    world = World(
        pods=[using(f"p{number}") for number in range(4)],
        groups=[group("plain"), with_devices("gpu", each)],
        devices=devices(claims=[claim(f"p{number}") for number in range(4)]),
    )
    assert world.increases() == {"gpu": expected}


@pytest.mark.parametrize(
    "known",
    [
        devices(),
        devices(claims=[claim("p", count=5)]),
        devices(claims=[claim("p")], classes=()),
    ],
    ids=["no claim", "more than a node has", "no class"],
)
def test_nothing_is_bought_that_would_not_help(known):
    """New nodes do not help a missing claim or class, or a request for more devices than any new node has."""
    assert World(pods=[using("p")], groups=[with_devices("gpu", 4)], devices=known).increases() == {}


def test_devices_that_are_free_are_used_first():
    """A pod that a device waits for buys nothing; the second one does."""
    one = with_devices("gpu", 1, nodes=("n1",))
    known = devices(slices=[slice_of("n1", 1)], claims=[claim("a"), claim("b")])
    assert World(nodes=[node("n1")], pods=[using("a")], groups=[one], devices=known).increases() == {}
    world = World(nodes=[node("n1")], pods=[using("a"), using("b")], groups=[one], devices=known)
    assert world.increases() == {"gpu": 1}


def test_a_live_node_says_what_new_ones_bring():
    """The devices of a good node of the group count, not what the cloud promised."""
    one = with_devices("gpu", 4, nodes=("n1",))
    taken = [claim(f"old{n}", device=f"gpu-{n}", on="n1", user=f"old{n}") for n in range(2)]
    old = [using(f"old{n}", node="n1") for n in range(2)]
    fresh = [using(f"p{n}") for n in range(4)]
    known = devices(slices=[slice_of("n1", 2)], claims=[*taken, *(claim(f"p{n}") for n in range(4))])
    world = World(nodes=[node("n1")], pods=[*old, *fresh], groups=[one], devices=known)
    assert world.increases() == {"gpu": 2}
    assert world.state.memory.templates["gpu"].slices == (slice_of("n1", 2),)


def test_what_pods_of_every_node_have_is_not_promised():
    """A DaemonSet's pod has a device on each node: a new node has one less for others."""
    agent = using("agent", kind="DaemonSet", of="agent", node="n1")
    one = group("gpu", nodes=("n1",))
    known = devices(
        slices=[slice_of("n1", 2)],
        claims=[claim("agent", device="gpu-0", on="n1", user="agent"), claim("p", count=2)],
    )
    world = World(nodes=[node("n1")], pods=[agent, using("p")], groups=[one], devices=known)
    assert world.increases() == {}
    (left,) = world.state.memory.templates["gpu"].slices
    assert [one.name for one in left.spec.devices] == ["gpu-1"]


def test_a_node_whose_driver_is_late_is_not_ready():
    """Until the node has its slices it is on its way: it is not bought for again."""
    world = World(pods=[using("p")], groups=[with_devices("gpu", 1)], devices=devices(claims=[claim("p")]))
    assert world.increases() == {"gpu": 1}
    world.change("gpu", instances=(Instance(provider_id="cloud:///n1"),))
    assert world.increases(at=minutes(1), nodes=(node("n1", created=at(minutes(1))),)) == {}
    assert world.state.health("n1").unready == "ResourceUnready"
    assert world.increases(at=minutes(2), devices=DeviceChanges(slices=(slice_of("n1", 1),))) == {}
    assert world.state.health("n1").unready == ""


def piece_of(name, number, *, of):
    """One of that many slices of a pool, with a device of its own."""
    body = samples.resource_slice(
        f"{name}-gpu-{number}",
        nodeName=name,
        pool={"name": name, "generation": 1, "resourceSliceCount": of},
        devices=[{"name": f"gpu-{number}"}],
    )
    return msgspec.convert(body, ResourceSlice)


def test_a_node_with_a_part_of_its_pool_is_not_ready():
    """The scheduler gives no device of a pool before all its slices are there: nothing is bought in the meantime."""
    pieces = tuple(piece_of("template", number, of=2) for number in range(2))
    gpu = group("gpu", made=replace(template(), slices=pieces))
    known = devices(claims=[claim("p"), claim("q")])
    world = World(pods=[using("p"), using("q")], groups=[gpu], devices=known)
    assert world.increases() == {"gpu": 1}
    world.change("gpu", instances=(Instance(provider_id="cloud:///n1"),))
    first, second = (DeviceChanges(slices=(piece_of("n1", number, of=2),)) for number in range(2))
    came = (node("n1", created=at(minutes(1))),)
    assert world.increases(at=minutes(1), nodes=came, devices=first) == {}
    assert world.state.health("n1").unready == "ResourceUnready"
    assert world.increases(at=minutes(2), devices=second) == {}
    assert world.state.health("n1").unready == ""


def test_a_node_without_one_of_two_pools_is_not_ready():
    """A driver with a pool for each of its devices has published one of two."""
    pools = tuple(
        replace(one, spec=replace(one.spec, pool=replace(one.spec.pool, name=f"pool-{number}")))
        for number, one in enumerate(piece_of("n1", number, of=1) for number in range(2))
    )
    gpu = group("gpu", made=replace(template(), slices=pools), nodes=("n1",))
    world = World(nodes=[node("n1")], pods=[using("p")], groups=[gpu], devices=devices(slices=pools[:1]))
    assert world.state.health("n1").unready == "ResourceUnready"
    world.state.apply(Delta(devices=DeviceChanges(slices=pools[1:])))
    assert world.state.health("n1").unready == ""


def test_a_driver_that_is_taken_away_makes_no_node_unready():
    """Once nobody publishes slices of a driver, nodes are no longer expected to have any."""
    one = group("gpu", nodes=("n1",))
    known = devices(slices=[slice_of("n1", 2)], claims=[claim("p")])
    world = World(nodes=[node("n1")], pods=[using("p")], groups=[one], devices=known)
    world.tick()
    deleted = Gone(devices=(("resourceslices", "", "n1-gpu"),))
    world.state.apply(Delta(gone=deleted, devices=DeviceChanges()))
    assert world.state.health("n1").unready == ""
    world.tick(at=minutes(1))
    assert world.state.memory.templates["gpu"].slices == ()


def test_devices_are_expected_of_a_group_that_had_them_before():
    """After the last node and its driver are deleted the next node counts as on its way until it has its slices."""
    one = group("gpu", nodes=("n1",))
    known = devices(slices=[slice_of("n1", 1)], claims=[claim("p")])
    world = World(nodes=[node("n1")], groups=[one], devices=known)
    world.tick()
    world.change("gpu", instances=(), target_size=0)
    deleted = Gone(nodes=("n1",), devices=(("resourceslices", "", "n1-gpu"),))
    world.state.apply(Delta(gone=deleted, devices=DeviceChanges()))
    assert world.increases(at=minutes(1), pods=(using("p"),)) == {"gpu": 1}
    world.change("gpu", instances=(Instance(provider_id="cloud:///n2"),))
    assert world.increases(at=minutes(2), nodes=(node("n2", created=at(minutes(2))),)) == {}
    assert world.state.health("n2").unready == "ResourceUnready"
    assert world.increases(at=minutes(4), devices=DeviceChanges(slices=(slice_of("n2", 1),))) == {}
    assert world.state.health("n2").unready == ""


def test_a_group_is_explained_with_its_devices():
    """How many devices a new node would bring, by driver."""
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
def test_it_is_reported_what_devices_are_short(claims, slices, why):
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
    """The claim of a pod p, for the first of some counts that can be had."""
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
def test_it_is_reported_what_is_free_of_a_live_node(requested, tainted, why):
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


STAYS = {"metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}}


def two_nodes(*, others=(), claims=(), stays=None, **settings):
    """Two nodes with a device each; the pod on the first has its device."""
    placed = [using("p", node="n1"), *others]
    return World(
        nodes=[node("n1"), node("n2", **(stays or {}))],
        pods=placed,
        groups=[group("g", nodes=("n1", "n2"))],
        replica_sets=(replica_set("web", len(placed)),),
        devices=devices(
            slices=[slice_of("n1", 1), slice_of("n2", 1)],
            claims=[claim("p", device="gpu-0", on="n1", user="p"), *claims],
        ),
        settings={**SHORT, **settings},
    )


def test_the_fullest_pool_is_a_nodes_utilization():
    """A node whose only device is in use is full, however idle its processors; one with none in use is empty."""
    world = two_nodes()
    world.tick()
    assert [*world.state.memory.scale_down.unneeded] == ["n2"]
    refused = next(one for one in world.state.memory.scale_down.status.unremovable if one.node == "n1")
    assert (refused.reason, refused.utilization) == ("NotUnderutilized", 1.0)
    assert refused.detail == "gpu.test/n1 utilization 1 is above the threshold 0.5"


@pytest.mark.parametrize("taken", [False, True])
def test_a_pod_with_a_claim_moves_where_its_devices_are_free(taken):
    """Its claim is given back with it, as nobody else uses it, and can be had where a device is free."""
    other = {"others": [using("q", node="n2")], "claims": [claim("q", device="gpu-0", on="n2", user="q")]}
    world = two_nodes(**(other if taken else {}), stays=STAYS, scale_down_utilization_threshold=1.0)
    world.tick()
    assert ("n1" in world.state.memory.scale_down.unneeded) is not taken


def test_two_pods_do_not_move_to_one_device():
    """A device that one pod of a node would have elsewhere is not there for the next."""
    known = devices(
        slices=[slice_of("n1", 2), slice_of("n2", 1)],
        claims=[claim(name, device=f"gpu-{at}", on="n1", user=name) for at, name in enumerate("pq")],
    )
    world = World(
        nodes=[node("n1"), node("n2", **STAYS)],
        pods=[using("p", node="n1"), using("q", node="n1")],
        groups=[group("g", nodes=("n1", "n2"))],
        replica_sets=(replica_set("web", 2),),
        devices=known,
        settings={**SHORT, "scale_down_utilization_threshold": 1.0},
    )
    world.tick()
    assert not world.state.memory.scale_down.unneeded


def test_a_full_delta_says_as_much_as_the_state():
    """A state made of the bytes of another one evaluates claims alike, and knows what cannot be read."""
    known = devices(slices=[slice_of("n1", 2)], claims=[claim("p", device="gpu-0", on="n1", user="p")])
    world = World(
        pods=[using("q")],
        groups=[with_devices("gpu", 1)],
        devices=known,
        unread=("deviceclasses", "csinodes"),
    )
    delta = decode_delta(encode_delta(export_state(world.state)))
    assert delta.devices == known
    assert delta.unread == ("csinodes", "deviceclasses")
    again = copy_state(world.state)
    assert export_state(again) == export_state(world.state)


def test_claims_that_cannot_be_read_are_passed_over():
    """Without the right to read claims pods are evaluated as if they had none."""
    world = World(pods=[using("p")], groups=[group("plain")], devices=devices())
    world.tick(unread=(RESOURCE_CLAIMS.plural,))
    assert world.groups["plain"].target_size == 1


# ── on a cluster ──


def on_a_cluster(main, **options):
    async def run(clock):
        world = live.World(clock, **options)
        async with world.running():
            return await main(world, clock)

    return run_virtual(run, start=live.START)


async def add_pod_with_claim(world):
    spec = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}
    await world.cluster.create(PODS, builders.pod("train", extra={"spec": spec}), namespace="default")


def test_devices_are_read_once_a_pod_may_have_some():
    """Until then no devices are read; an extended resource is reason enough to read them."""

    async def main(world, clock):
        caches = world.caches
        await world.deploy(replicas=1)
        await clock.sleep(seconds(30))
        assert not {one.kind for one in caches.all} & {*DEVICE_KINDS}
        asks = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
        containers = {"containers": [{"name": "main", "image": "train", "resources": asks}]}
        await world.cluster.create(
            PODS, builders.pod("train", extra={"spec": containers}), namespace="default"
        )
        await clock.sleep(seconds(30))
        return {one.kind for one in caches.all} >= {*DEVICE_KINDS}

    assert on_a_cluster(main)


def test_the_flag_switches_them_off():
    """Without dynamic resource allocation no devices are read."""

    async def main(world, clock):
        await add_pod_with_claim(world)
        await clock.sleep(seconds(30))
        return {one.kind for one in world.caches.all} & {*DEVICE_KINDS}

    assert on_a_cluster(main, enable_dynamic_resource_allocation=False) == set()


def test_a_cluster_that_refuses_devices_is_served_without_them():
    """The loop goes on, the refusal leads to the role, and nodes are bought as if there were no claims."""

    async def main(world, clock):
        await add_pod_with_claim(world)
        await clock.sleep(minutes(3))
        caches = world.caches
        reported = {with_hint(caches.of(kind).last_error, ("nodes",)) for kind in DEVICE_KINDS}
        assert all(one.endswith("; ClusterRole kubetide-nodes of deploy/ grants it") for one in reported)
        assert world.controller.state.devices.unread == tuple(kind.plural for kind in DEVICE_KINDS)
        return len(world.nodes)

    assert on_a_cluster(main, wrap=lambda inner: Refusing(inner, DEVICE_KINDS)) == 1
