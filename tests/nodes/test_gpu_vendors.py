"""GPUs of all vendors count alike: for readiness, totals, utilization, and the wait for more pods."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import START, World, group, node, pod, pods
from tests.nodes.requests import quota

from kubetide.nodes.decision import IncreaseSize
from kubetide.nodes.facts.capacity import CapacityChanges
from kubetide.nodes.facts.node_capacity import gpus_of
from kubetide.nodes.facts.nodes import readiness
from kubetide.nodes.scale_down.unneeded.utilization import has_gpu, utilization_of
from kubetide.nodes.settings import Settings
from kubetide.ports.cloud import GPU_RESOURCES, NodeTemplate
from kubetide.units.time import format_rfc3339, seconds

LABEL = "cloud.google.com/gke-accelerator"
every_vendor = pytest.mark.parametrize("resource", GPU_RESOURCES)


def machine(name, resource, *, offered="2", labels=None):
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110", resource: offered}
    return node(name, labels=labels, status={"capacity": amounts, "allocatable": amounts})


def asking(resource):
    requests = {"requests": {"cpu": "1", resource: "1"}, "limits": {resource: "1"}}
    return {"containers": [{"name": "main", "image": "x", "resources": requests}]}


@every_vendor
def test_a_node_with_the_label_is_ready_once_it_offers_gpus(resource):
    settings = Settings(gpu_label=LABEL)
    assert readiness(machine("n", resource, labels={LABEL: "big"}), settings) == ""
    starting = machine("n", resource, offered="0", labels={LABEL: "big"})
    assert readiness(starting, settings) == "ResourceUnready"


@every_vendor
def test_a_node_that_offers_gpus_is_as_full_as_these(resource):
    found = machine("n", resource)
    assert has_gpu(found, LABEL)
    used = utilization_of(found, [pod("p", node="n", spec=asking(resource))], START, gpu_label=LABEL)
    assert (used.resource, used.value) == (resource, 0.5)


def test_gpus_of_intels_older_driver_say_nothing_of_how_full_a_node_is():
    """As upstream, which knows those of the newer one alone: a busy node whose graphics nobody asked for is not free."""
    found = machine("n", "gpu.intel.com/i915")
    used = utilization_of(found, [pod("p", cpu="6", node="n")], START, gpu_label=LABEL)
    assert (has_gpu(found, LABEL), used.resource, used.value) == (False, "cpu", 0.75)


@every_vendor
def test_gpus_of_all_nodes_count_for_the_total(resource):
    """With --gpu-total=big:0:4 and a node of two there is room for one more."""
    there = machine("n", resource, labels={LABEL: "big"})
    made = NodeTemplate(node=machine("template", resource, labels={LABEL: "big"}), source="catalogue")
    world = World(
        groups=[group("g", made=made, nodes=("n",))],
        nodes=[there],
        pods=pods("p", 6, spec=asking(resource)),
        settings={"gpu_total": ("big:0:4",), "gpu_label": LABEL},
    )
    assert sum(one.delta for one in world.tick() if isinstance(one, IncreaseSize)) == 1


@every_vendor
def test_gpus_that_a_driver_has_not_reported_count_for_a_quota(resource):
    """With 4 GPUs allowed, a node that will have two leaves capacity for one more such node, also without --gpu-total."""
    starting = machine("n", resource, offered="0", labels={LABEL: "big"})
    made = NodeTemplate(node=machine("template", resource, labels={LABEL: "big"}), source="catalogue")
    world = World(
        groups=[group("g", made=made, nodes=("n",))],
        nodes=[starting],
        pods=pods("p", 6, spec=asking(resource)),
        settings={"gpu_label": LABEL, "capacity_quotas_enabled": True},
        capacity=CapacityChanges(capacity_quotas=(quota("gpus", {"big": "4"}),)),
    )
    assert world.increases() == {"g": 1}


def test_gpus_that_pods_claim_as_devices_are_never_waited_for():
    """GKE says so by a label: the node is ready without any, adds none to the total, and is as full as its CPU."""
    found = machine(
        "n", "example.com/x", labels={LABEL: "big", "cloud.google.com/gke-gpu-dra-driver": "true"}
    )
    assert readiness(found, Settings(gpu_label=LABEL)) == ""
    assert gpus_of(found, LABEL) == {}
    assert has_gpu(found, LABEL)
    used = utilization_of(found, [pod("p", node="n", spec=asking("example.com/x"))], START, gpu_label=LABEL)
    assert used.resource == "cpu"
    assert readiness(found, Settings(gpu_label="cloud.google.com/gke-gpu-dra-driver")) == "ResourceUnready"


@pytest.mark.parametrize(
    ("resource", "bought"),
    [*((name, 0) for name in GPU_RESOURCES), ("example.com/gpu", 1), ("gpu.intel.com/i915", 1)],
)
def test_pods_that_ask_for_gpus_are_waited_for(resource, bought):
    """The loop waits half a minute for more pods of GPUs, and not for pods of other devices."""
    made = NodeTemplate(node=machine("template", resource), source="catalogue")
    young = pod("p", created=format_rfc3339(START), spec=asking(resource))
    world = World(groups=[group("g", made=made)], pods=[young])
    grown = [one for one in world.tick(at=seconds(10)) if isinstance(one, IncreaseSize)]
    assert len(grown) == bought
