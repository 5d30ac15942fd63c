"""Objects that contradict themselves, cannot be read or are far too large, through whole ticks of the node loop."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.nodes import live
from tests.nodes.frozen import LONG_AGO, World, group, owner, pod
from tests.scheduling import nonsense

from kubetide.nodes.facts.devices import DeviceChanges
from kubetide.nodes.facts.volumes import VolumeChanges
from kubetide.nodes.records.export import copy_state, export_state
from kubetide.objects.kinds import EVENTS, NODES, PDBS, PODS, RESOURCE_SLICES
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from kubetide.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubetide.objects.workload import DaemonSet, ReplicaSet
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import minutes

READY = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}]}
WAITING = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
}
DEVICES = {"resourceSlices": ResourceSlice, "resourceClaims": ResourceClaim, "deviceClasses": DeviceClass}
VOLUMES = {"pvs": PersistentVolume, "pvcs": PersistentVolumeClaim, "storageClasses": StorageClass}

meta = st.fixed_dictionaries(
    {"name": st.sampled_from(["web", "other"])},
    optional={"namespace": st.sampled_from(["default", "shop"]), "labels": nonsense.labels},
)
templates = nonsense.some(
    metadata=nonsense.some(labels=nonsense.labels), spec=nonsense.pods.map(lambda pod: pod["spec"])
)


def owned(**spec):
    return st.lists(
        st.fixed_dictionaries({"metadata": meta}, optional={"spec": nonsense.some(**spec)}), max_size=2
    )


budgets = owned(
    selector=nonsense.selectors,
    minAvailable=st.sampled_from([1, "50%", "x", -1, 10**30]),
    maxUnavailable=st.sampled_from([1, "x%", -1]),
)
replica_sets = owned(replicas=st.integers(-5, 2**31), selector=nonsense.selectors, template=templates)
daemon_sets = owned(selector=nonsense.selectors, template=templates)
flags = st.sampled_from(
    [
        {},
        {"force_ds": True},
        {"fastpath_binpacking_enabled": True},
        {"balance_similar_node_groups": True},
        {"cores_total": "0:100"},
    ]
)


def read(bodies, model):
    return tuple(msgspec.convert(body, model) for body in bodies)


def node_of(number, body, created):
    name = f"n{number}"
    ready = {**READY["conditions"][0], "lastTransitionTime": created}
    return {
        "metadata": {**body["metadata"], "name": name, "creationTimestamp": created},
        "spec": {**body.get("spec", {}), "providerID": f"cloud:///{name}"},
        "status": {**body.get("status", {}), "conditions": [ready]},
    }


def pod_of(number, body, created, deleted, *, placed):
    identity = {
        "name": f"p{number}",
        "namespace": "default",
        "uid": f"u{number}",
        "creationTimestamp": created,
        "deletionTimestamp": deleted,
    }
    owners = [owner()] if number % 2 else []
    return {
        "metadata": {**body["metadata"], **identity, "ownerReferences": owners},
        "spec": {**body["spec"], **({"nodeName": "n0"} if placed else {})},
        "status": {"phase": "Running"} if placed else WAITING,
    }


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(nonsense.nodes, nonsense.times), max_size=3),
    st.lists(
        st.tuples(nonsense.pods, nonsense.times, st.none() | nonsense.times, st.booleans()),
        min_size=1,
        max_size=3,
    ),
    nonsense.objects,
    budgets,
    replica_sets,
    daemon_sets,
    flags,
)
def test_whatever_the_objects_say_ticks_go_on(nodes, pods, objects, pdbs, sets, daemons, options):
    """Scale-up and scale-down go on with any nonsense in any object; the resulting state reads back."""
    parts = {name: read(objects.get(name, ()), model) for name, model in {**DEVICES, **VOLUMES}.items()}
    known = read([node_of(number, *given) for number, given in enumerate(nodes)], Node)
    world = World(
        nodes=known,
        pods=read([pod_of(at, *given, placed=placed) for at, (*given, placed) in enumerate(pods)], Pod),
        groups=[group("odd", nodes=[one.metadata.name for one in known]), group("plain")],
        pdbs=read(pdbs, PodDisruptionBudget),
        replica_sets=read(sets, ReplicaSet),
        daemon_sets=read(daemons, DaemonSet),
        volumes=VolumeChanges(
            persistent_volumes=parts["pvs"], claims=parts["pvcs"], storage_classes=parts["storageClasses"]
        ),
        devices=DeviceChanges(
            slices=parts["resourceSlices"], claims=parts["resourceClaims"], classes=parts["deviceClasses"]
        ),
        settings={"scale_down_unneeded_time": minutes(1), **options},
    )
    for at in (0, 2, 14):
        world.tick(at=minutes(at))
    assert export_state(copy_state(world.state)) == export_state(world.state)


CIRCLE = {"spec": {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "c0"}}]}}
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
ODD_AFFINITY = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Bogus", "values": ["x"]}]}]
    }
}
NOT_BOTH = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "a", "operator": "Exists"},
                    {"key": "a", "operator": "DoesNotExist"},
                ]
            }
        ]
    }
}
ODD_TERM = {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}, "topologyKey": "zone"}
ODD_PODS = {
    "an unknown operator": {"spec": {"affinity": {"nodeAffinity": ODD_AFFINITY}}},
    "terms that contradict each other": {"spec": {"affinity": {"nodeAffinity": NOT_BOTH}}},
    "an unknown operator about pods": {
        "spec": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ODD_TERM]}}}
    },
    "all of an int64": {
        "spec": {"containers": [{"name": "a", "resources": {"requests": {"memory": "8Ei"}}}]}
    },
    "no amount": {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "lots"}}}]}},
    "megabytes": {"spec": {"nodeSelector": {"a": "v" * (4 << 20)}}},
    "a claim that is not there": {
        "spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "nowhere"}]}
    },
}


def in_a_circle():
    """Two claims and two volumes, each bound to the other's."""
    claims = [
        {
            "metadata": {"name": f"c{n}", "namespace": "default", "annotations": BOUND},
            "spec": {"volumeName": f"v{1 - n}"},
        }
        for n in range(2)
    ]
    volumes = [
        {"metadata": {"name": f"v{n}"}, "spec": {"claimRef": {"namespace": "default", "name": f"c{n}"}}}
        for n in range(2)
    ]
    return VolumeChanges(
        claims=read(claims, PersistentVolumeClaim), persistent_volumes=read(volumes, PersistentVolume)
    )


@pytest.mark.parametrize("what", sorted(ODD_PODS))
def test_other_pods_are_served(what):
    """One node is bought for the good pod, and none for the odd one, which gets the reason."""
    world = World(
        pods=[pod("odd", of="odd", **ODD_PODS[what]), pod("good")],
        groups=[group("g")],
        volumes=in_a_circle(),
        devices=DeviceChanges(),
    )
    assert world.increases() == {"g": 1}
    assert not [event for event in world.events if event.name == "odd" and event.reason == "TriggeredScaleUp"]
    assert [event.reason for event in world.events if event.name == "good"] == ["TriggeredScaleUp"]
    world.tick(at=minutes(1))
    (reported,) = [event for event in world.events if event.name == "odd"]
    assert reported.reason == "NotTriggerScaleUp"
    assert reported.message.startswith("pod didn't trigger scale-up: 1 ")


def test_a_request_beyond_an_int64_counts_as_none():
    """It is 0 for the scheduler, which takes the pod on any node with capacity, so do we."""
    vast = {"containers": [{"name": "a", "resources": {"requests": {"memory": "1e30"}}}]}
    assert World(pods=[pod("odd", spec=vast)], groups=[group("g")]).increases() == {"g": 1}


def test_a_circle_of_volumes_ends():
    """A claim bound to a volume that another claim is bound to, and back: the scheduler takes the pod, so do we."""
    world = World(pods=[pod("odd", **CIRCLE)], groups=[group("g")], volumes=in_a_circle())
    assert world.increases() == {"g": 1}


def test_ten_thousand_classes():
    """Ten thousand pods whose requests all differ are placed in one decision."""
    asking = [
        pod(f"p{number}", kind="", cpu=f"{number % 1000 + 1}m", memory=f"{number + 1}Ki")
        for number in range(10_000)
    ]
    many = {"max_nodes_per_scaleup": 5000}
    world = World(pods=asking, groups=[group("g", maximum=5000)], settings=many)
    assert world.increases()["g"] >= 1252  # 5,005 CPUs, four a node


# ── on a cluster ──


def played(main):
    async def run(clock):
        world = live.World(clock)
        async with world.running():
            return await main(world, clock)

    return run_virtual(run, start=live.START)


def test_what_is_passed_over_is_reported_on_the_object():
    """A node, a slice and a budget that cannot be read get one event each; nodes are still bought."""

    async def main(world, clock):
        store = world.cluster._store
        odd = builders.node("odd", extra={"status": {"allocatable": {"cpu": "5Gi5", "memory": "1Gi"}}})
        spec = {
            "driver": "gpu.test",
            "pool": {"name": "odd", "generation": 1, "resourceSliceCount": 1},
            "nodeName": "odd",
            "devices": [{"name": "a", "capacity": {"memory": {"value": "big"}}}],
        }
        budget = {"selector": {"matchExpressions": [{"key": "a", "operator": "Bogus"}]}}
        put = {
            NODES: {**odd, "metadata": {**odd["metadata"], "uid": "u-n"}},
            RESOURCE_SLICES: {"metadata": {"name": "odd-gpu", "uid": "u-s"}, "spec": spec},
            PDBS: {"metadata": {"name": "odd", "namespace": "default", "uid": "u-b"}, "spec": budget},
        }
        for kind, body in put.items():
            named = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
            store.put(kind, ("default" if kind.namespaced else "", body["metadata"]["name"]), named)
        claims = [{"name": "gpu", "resourceClaimName": "nowhere"}]
        await world.cluster.create(
            PODS, builders.pod("asks", extra={"spec": {"resourceClaims": claims}}), namespace="default"
        )
        await world.deploy(replicas=3, cpu="900m")
        await clock.sleep(minutes(5))
        events = [one for one in (await world.cluster.list(EVENTS)).items if one.reason == "NotUnderstood"]
        reported = {
            (one.involved_object.kind, one.involved_object.name): (one.message, one.count) for one in events
        }
        return reported, world.controller.not_understood, len(world.nodes)

    reported, counted, nodes = played(main)
    of_node = (
        'status.allocatable[cpu]: "5Gi5" is not a quantity: unable to parse quantity\'s suffix; '
        "it counts as none until a quantity such as 500m or 2Gi is reported"
    )
    of_slice = (
        'its devices are left out: "big" is not a quantity: quantities must match the regular expression '
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'; the driver must publish quantities such as 2Gi"
    )
    of_budget = (
        'spec.selector: "Bogus" is not a valid label selector operator; until it is fixed the budget '
        "holds for all pods of its namespace"
    )
    assert reported == {
        ("Node", "odd"): (of_node, 1),
        ("ResourceSlice", "odd-gpu"): (of_slice, 1),
        ("PodDisruptionBudget", "odd"): (of_budget, 1),
    }
    assert counted == {
        "nodes": 1,
        "resourceslices.resource.k8s.io": 1,
        "poddisruptionbudgets.policy": 1,
    }
    assert nodes >= 3


@pytest.mark.parametrize(("resource", "amount"), [("cpu", "9.2e18"), ("memory", "1e30")])
def test_a_node_of_absurd_size_holds_nothing_back(resource, amount):
    """A node in no group that says more than any machine has is reported, and others are bought as without it."""

    async def story(world):
        await world.cluster.create(
            NODES, {"metadata": {"name": "odd"}, "status": {"capacity": {resource: amount}}}
        )
        await world.deploy(replicas=2, cpu="1500m")
        await world.after(minutes(5))
        assert world.pending == []
        (said,) = await world.events("NotUnderstood")
        assert said == (
            f"status.capacity[{resource}]: {amount} is more than any machine has; it counts as none against "
            "cluster-wide limits until its kubelet reports less"
        )

    live.play(story)
