"""The requests of pods, as the scheduler counts them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.scheduling.plain import make_container, make_node, make_pod

from kubetide.objects.meta import Condition
from kubetide.objects.pod import (
    ContainerStatus,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from kubetide.scheduling import node_allocatable, pod_requests, pod_requests_on_node
from kubetide.scheduling.pods.resources import is_resized
from kubetide.units.quantity import QuantityError


def cpu(text):
    return make_container({"cpu": text})


def sidecar(text):
    return make_container({"cpu": text}, restart_policy="Always")


@pytest.mark.parametrize(
    ("containers", "init", "expected"),
    [
        (["1", "2"], [], 3000),
        (["1"], [cpu("4")], 4000),
        (["1"], [sidecar("4")], 5000),
        (["1"], [sidecar("2"), cpu("4")], 6000),
        (["1"], [cpu("4"), sidecar("2")], 4000),
        (["1"], [sidecar("2"), sidecar("3"), cpu("1")], 6000),
        (["0.5m", "0.5m"], [], 1),
        (["1n"], [], 1),
    ],
)
def test_containers_and_init_containers(containers, init, expected):
    """Sidecars add to what runs; an init container needs its own and that of the sidecars before it; sums are exact."""
    pod = make_pod(containers=tuple(map(cpu, containers)), init_containers=tuple(init))
    assert pod_requests(pod) == {"cpu": expected}


def test_pod_level_requests_replace_and_overhead_adds():
    """Pod-level cpu, memory and huge pages replace the containers' sum even when lower; overhead comes on top."""
    pod = make_pod(
        containers=(make_container({"cpu": "3", "ephemeral-storage": "5"}),),
        resources=ResourceRequirements(
            requests={"cpu": "1", "hugepages-2Mi": "2Mi", "ephemeral-storage": "9"}, limits={"memory": "9"}
        ),
        overhead={"cpu": "250m", "memory": "10"},
    )
    assert pod_requests(pod) == {"cpu": 1250, "memory": 10, "ephemeral-storage": 5, "hugepages-2Mi": 2 << 20}


def test_only_some_names_are_resources():
    """Names without a domain that are no core resource, and quota names, are ignored; order is core, then by name."""
    requests = {
        "z.io/b": "1",
        "a.io/c": "2",
        "unknown": "1",
        "requests.example.com/x": "1",
        "memory": "1",
        "cpu": "1",
    }
    assert list(pod_requests(make_pod(requests=requests)).items()) == [
        ("cpu", 1000),
        ("memory", 1),
        ("a.io/c", 2),
        ("z.io/b", 1),
    ]
    assert node_allocatable(make_node("n", pods="1500m", odd="3")) == {"cpu": 4000, "memory": 1000, "pods": 2}


@pytest.mark.parametrize(
    ("reason", "actual", "allocated", "expected"),
    [
        (None, "1", "1", 2000),
        (None, "3", "1", 3000),
        (None, "1", "4", 4000),
        ("Deferred", "1", "1", 2000),
        ("Infeasible", "1", "1", 1000),
        (None, None, "4", 2000),
    ],
)
def test_a_resize_in_flight_counts_what_is_held(reason, actual, allocated, expected):
    """On a node the largest of spec, actual and allocated counts; an infeasible spec does not."""
    status = PodStatus(
        conditions=(Condition(type="PodResizePending", reason=reason),) if reason else None,
        container_statuses=(
            ContainerStatus(
                name="c",
                resources=ResourceRequirements(requests={"cpu": actual}) if actual else None,
                allocated_resources={"cpu": allocated},
            ),
        ),
    )
    pod = replace(make_pod(requests={"cpu": "2"}), status=status)
    assert pod_requests_on_node(pod, 36) == {"cpu": expected}
    assert pod_requests(pod) == {"cpu": 2000}


NAMES = st.sampled_from(("a", "b"))
AMOUNTS = st.sampled_from((None, {"cpu": "1"}, {"cpu": "2"}, {"cpu": "1", "memory": "1"}))
AT_POD_LEVEL = st.none() | st.builds(ResourceRequirements, requests=AMOUNTS)
CONTAINERS = st.lists(
    st.builds(make_container, AMOUNTS, name=NAMES, restart_policy=st.sampled_from((None, "Always"))),
    max_size=2,
).map(tuple)
STATUSES = st.lists(
    st.builds(ContainerStatus, name=NAMES, resources=AT_POD_LEVEL, allocated_resources=AMOUNTS), max_size=3
).map(tuple)


@given(
    spec=st.builds(PodSpec, containers=CONTAINERS, init_containers=CONTAINERS, resources=AT_POD_LEVEL),
    status=st.builds(
        PodStatus,
        conditions=st.sampled_from((None, (Condition(type="PodResizePending", reason="Infeasible"),))),
        container_statuses=STATUSES,
        init_container_statuses=STATUSES,
        resources=AT_POD_LEVEL,
        allocated_resources=AMOUNTS,
    ),
)
def test_where_statuses_repeat_the_spec_the_spec_is_what_counts(spec, status):
    """A pod that is not being resized takes its requests from its node."""
    pod = replace(make_pod(), spec=spec, status=status)
    if not is_resized(pod):
        assert pod_requests_on_node(pod, 36) == pod_requests(pod)
        if status.conditions is None:
            assert pod_requests_on_node(pod, 37) == pod_requests(pod)


def _resized_pod(asked, actual, allocated, **status):
    """A pod of containers a, b, …, each with the CPU that it asks for, has and is allocated; None for not said."""
    names = "abc"[: len(asked)]
    return replace(
        make_pod(),
        spec=PodSpec(
            containers=tuple(
                make_container({"cpu": one}, name=name) for name, one in zip(names, asked, strict=True)
            )
        ),
        status=PodStatus(
            container_statuses=tuple(
                ContainerStatus(
                    name=name,
                    resources=ResourceRequirements(requests={"cpu": has}) if has else None,
                    allocated_resources={"cpu": may} if may else None,
                )
                for name, has, may in zip(names, actual, allocated, strict=True)
            ),
            **status,
        ),
    )


INFEASIBLE = {"conditions": (Condition(type="PodResizePending", reason="Infeasible"),)}
OF_POD = {"resources": ResourceRequirements(requests={"cpu": "3"}), "allocated_resources": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("pod", "by_containers", "by_sums"),
    [
        (_resized_pod(("2", "1"), ("1", "2"), ("1", "2")), 4000, 3000),
        (_resized_pod(("1",), (None,), ("3",)), 1000, 3000),
        (_resized_pod(("3",), ("1",), ("1",), **INFEASIBLE), 1000, 1000),
        (_resized_pod(("3", "1"), ("1", None), ("1", None), **INFEASIBLE), 2000, 1000),
        (_resized_pod(("1", "1"), ("1", "1"), ("1", "1"), **OF_POD), 2000, 3000),
    ],
    ids=["crossed", "allocated only", "infeasible", "infeasible, not said of b", "said of the pod"],
)
def test_resizes_count_by_container_or_by_sum(pod, by_containers, by_sums):
    """With v1.36 each container counts the most that is said of it, with v1.37 the pod counts the largest sum."""
    assert pod_requests_on_node(pod, 36) == {"cpu": by_containers}
    assert pod_requests_on_node(pod, 37) == {"cpu": by_sums}


@pytest.mark.parametrize(
    ("asked", "actual", "older", "newer"),
    [
        ({"cpu": "2"}, {"cpu": "4", "memory": "1"}, {"cpu": 4000}, {"cpu": 4000, "memory": 1}),
        ({}, {"cpu": "4"}, {"cpu": 1000}, {"cpu": 1000}),
        (None, {"cpu": "4"}, {"cpu": 1000}, {"cpu": 1000}),
    ],
)
def test_a_resize_of_the_pod_counts_where_the_pod_asks(asked, actual, older, newer):
    """What the status says of the whole pod counts where the spec asks for something there; v1.36 counts what it asks for."""
    pod = make_pod(requests={"cpu": "1"})
    resources = None if asked is None else ResourceRequirements(requests=asked)
    pod = replace(
        pod,
        spec=replace(pod.spec, resources=resources),
        status=PodStatus(resources=ResourceRequirements(requests=actual)),
    )
    assert pod_requests_on_node(pod, 36) == older
    assert pod_requests_on_node(pod, 37) == newer


@pytest.mark.parametrize("minor", [36, 37])
def test_statuses_of_init_containers(minor):
    """A resize of a sidecar counts; what the status says of an init container that ends counts with v1.37 only."""
    status = ContainerStatus(
        name="i", allocated_resources={"cpu": "3"}, resources=ResourceRequirements(requests={"cpu": "3"})
    )
    for restart_policy, expected in (("Always", 4000), (None, 1000 if minor == 36 else 3000)):
        init = make_container({"cpu": "1"}, name="i", restart_policy=restart_policy)
        pod = make_pod(requests={"cpu": "1"})
        pod = replace(
            pod,
            spec=replace(pod.spec, init_containers=(init,)),
            status=PodStatus(init_container_statuses=(status,)),
        )
        assert pod_requests_on_node(pod, minor) == {"cpu": expected}


@pytest.mark.parametrize(("allocated", "resized"), [("2", False), (None, False), ("1", True)])
def test_a_status_that_repeats_the_spec_is_no_resize(allocated, resized):
    """Kubelets report resources of each container, mostly those of the spec."""
    reported = ContainerStatus(
        name="c",
        resources=ResourceRequirements(requests={"cpu": "2"}),
        allocated_resources={"cpu": allocated} if allocated else None,
    )
    pod = replace(make_pod(requests={"cpu": "2"}), status=PodStatus(container_statuses=(reported,)))
    assert is_resized(pod) is resized


def test_an_unreadable_amount_names_the_pod():
    """The error says which pod and which text."""
    with pytest.raises(QuantityError, match=r'pod default/p: .*"1x" is not a quantity'):
        pod_requests(make_pod(requests={"cpu": "1x"}))
