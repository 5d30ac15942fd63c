"""CPU and memory of containers: base, leaks, starts, restarts and limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.embedded.load.worlds import MI, World, make_pod, make_service, running_since, usage

from kubetide.embedded.load import Needs
from kubetide.objects.pod import (
    ContainerState,
    ContainerStatus,
    ContainerWaiting,
    ResourceRequirements,
)


def test_pods_of_a_crowded_node_get_at_least_their_requests():
    """Where limits exceed the node, requests are guaranteed and the rest is divided by the demand beyond them."""
    services = (
        make_service(200.0),
        make_service(200.0, name="api", selector=make_service().selector.parse("app=api")),
    )
    world = World(*services, cpu="4")
    world.put(make_pod("web", app="web", cpu="1", limit="4"))
    world.put(make_pod("api", app="api", cpu="2", limit="4"))
    step = world.to(15)
    # Each demands 4 cores of 4: 1 and 2 are guaranteed, and the last one is shared 3 : 2.
    assert usage(world) == {"web": (1600.0, 0.0), "api": (2400.0, 0.0)}
    assert step.capacity.tolist() == pytest.approx([80.0, 120.0])
    assert step.violated.tolist() == [True, True]


def test_a_pod_without_limit_may_use_its_node():
    """The node bounds what has no limit of its own."""
    world = World(make_service(1000.0), cpu="4").put(make_pod(limit=None))
    assert world.to(15).capacity[0] == pytest.approx(200)
    assert usage(world)["p"][0] == 4000.0


def test_memory_is_base_and_requests_in_flight():
    """Requests in flight are rate x latency, shared by the ready pods."""
    service = make_service(50.0, base_memory_bytes=64 * MI, memory_per_request_bytes=MI, base_latency_s=0.96)
    world = World(service).put(make_pod("a")).put(make_pod("b")).put(make_pod("c", ready=False))
    world.to(15)
    # Half load: 0.96 + 0.02 / 0.5 = 1 s, so 50 requests in flight, 25 each.
    memory = {name: value for name, (_, value) in usage(world).items()}
    assert memory == {"a": pytest.approx(89 * MI), "b": pytest.approx(89 * MI), "c": 64 * MI}


def test_memory_above_the_limit_is_an_oom():
    """The pod is named to the handlers in every such step, and its usage ends at the limit."""
    world = (
        World(make_service(base_memory_bytes=100 * MI))
        .put(make_pod("a", memory_limit="64Mi"))
        .put(make_pod("b"))
    )
    killed = []
    world.model.on_oom(lambda *what: killed.append(what))
    world.to(30)
    assert killed == [(("default", "a"), "main")] * 2
    assert usage(world)["a"][1] == 64 * MI


def test_pods_without_a_service_use_a_constant_share_of_their_request():
    """By default that is half of the request."""
    world = World(make_service()).put(make_pod("x", app="other", cpu="300m"))
    world.to(15)
    assert usage(world) == {"x": (150.0, 50 * MI)}


def test_a_resized_pod_has_its_new_limit():
    """Requests and limits are read again when they change."""
    world = World(make_service(100.0)).put(make_pod("a"))
    assert world.to(15).capacity[0] == pytest.approx(50)
    world.put(make_pod("a", limit="2"))
    assert world.to(30).capacity[0] == pytest.approx(100)


def test_a_pod_whose_resize_waits_has_its_old_limit():
    """The resources in a container's status count, not those in its spec."""
    pod = make_pod("a", limit="2")
    old = ContainerStatus(name="main", resources=ResourceRequirements(limits={"cpu": "1"}))
    waiting = replace(pod, status=replace(pod.status, container_statuses=(old,)))
    world = World(make_service(100.0)).put(waiting)
    assert world.to(15).capacity[0] == pytest.approx(50)
    world.put(pod)
    assert world.to(30).capacity[0] == pytest.approx(100)


def test_a_leak_grows_with_the_age_of_the_container():
    """The leak counts from the container's start, not the pod's; a new image has a leak and a base of its own."""
    service = make_service(
        base_memory_bytes=100 * MI, leak_bytes_per_hour=3600 * MI, images={"web:2": Needs(50 * MI, 0)}
    )
    world = World(service).put(running_since(make_pod("a"), "2026-03-02T00:00:00Z"))
    world.put(running_since(make_pod("b"), "2026-03-01T23:59:30Z"))
    world.put(running_since(make_pod("c"), "2026-03-02T00:00:00Z", image="web:2"))
    world.to(15)
    assert {name: memory for name, (_, memory) in usage(world).items()} == {
        "a": 115 * MI,
        "b": 145 * MI,
        "c": 50 * MI,
    }


def test_a_container_that_does_not_run_uses_nothing_and_has_no_metrics():
    """While it waits for its restart it has no usage and cannot be killed."""
    waits = ContainerState(waiting=ContainerWaiting(reason="CrashLoopBackOff"))
    world = World(make_service(base_memory_bytes=100 * MI)).put(
        running_since(make_pod("a", memory_limit="64Mi", ready=False), "", state=waits)
    )
    killed = []
    world.model.on_oom(lambda *what: killed.append(what))
    world.to(15)
    assert usage(world) == {}
    assert killed == []


def test_the_start_of_a_container_takes_cpu_before_requests_and_is_throttled():
    """30 CPU seconds at up to 4 cores, limited to 1: for 30 s nothing is left for requests."""
    service = make_service(rate=25.0, startup_cpu_seconds=30.0, startup_cpu_milli=4000.0)
    world = World(service).put(running_since(make_pod("a"), "2026-03-02T00:00:00Z"))
    steps = [world.to(second) for second in (15, 30, 45, 60)]
    assert [step.served[0] for step in steps] == [0.0, 0.0, 25.0, 25.0]
    demanded = [float(step.resources.demanded_cpu[0]) for step in steps]
    withheld = [float(step.resources.withheld_cpu[0]) for step in steps]
    assert demanded == [2500.0, 1500.0, 500.0, 500.0]
    assert withheld == [1500.0, 500.0, 0.0, 0.0]
    assert [float(step.resources.unused_cpu[0]) for step in steps] == [0.0, 0.0, 500.0, 500.0]


@given(
    leak=st.integers(0, 10**9),
    base=st.integers(0, 10**9),
    limit=st.integers(1, 2000),
    seconds_on=st.integers(1, 40),
)
def test_nothing_uses_more_than_its_limits(leak, base, limit, seconds_on):
    """Whatever a service leaks or needs at its start, memory and CPU end at the limits, and nothing is negative."""
    service = make_service(
        rate=80.0,
        base_memory_bytes=base,
        leak_bytes_per_hour=leak,
        startup_cpu_seconds=99.0,
        startup_cpu_milli=8e3,
    )
    world = World(service).put(
        running_since(make_pod("a", memory_limit=f"{limit}Mi"), "2026-03-02T00:00:00Z")
    )
    world.to(15 * seconds_on)
    cpu, memory = usage(world)["a"]
    assert 0 <= cpu <= 1000
    assert 0 <= memory <= limit * MI
    for step in world.history:
        assert 0 <= step.resources.withheld_cpu[0] <= step.resources.demanded_cpu[0]
        assert 0 <= step.resources.unused_memory[0] <= step.resources.requested_memory[0]
