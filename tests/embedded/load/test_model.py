from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.embedded.load.worlds import START, World, answer, make_node, make_pod, make_service

from kubetide.embedded.load import LoadError, Needs, SeriesTrace
from kubetide.objects.pod import (
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerWaiting,
    ResourceRequirements,
)
from kubetide.units.time import after, seconds

MI = 1 << 20


def usage(world):
    """Milli-CPU and bytes by pod, of the newest step."""
    found = world.model.usage(world.clock.time)
    return {
        name: (cpu / 1e6, memory)
        for name, cpu, memory in zip(found.layout.names, found.cpu_nano, found.memory, strict=True)
    }


def test_requests_are_shared_by_the_ready_pods():
    """20 requests/s of 20 ms on two ready pods are 200 milli-CPU each; one that is not ready has its base only."""
    service = make_service(20.0, base_cpu_milli=5.0)
    world = World(service).put(make_pod("a")).put(make_pod("b")).put(make_pod("c", ready=False))
    step = world.to(15)
    assert usage(world) == {"a": (205.0, 0.0), "b": (205.0, 0.0), "c": (5.0, 0.0)}
    assert (step.ready[0], step.existing[0]) == (2, 3)
    assert step.served[0] == pytest.approx(20.0)
    assert step.capacity[0] == pytest.approx(2 * 995 / 20)
    assert not step.violated[0]


def test_above_capacity_the_queue_grows_to_its_bound_and_the_rest_is_dropped():
    """One pod serves 50/s of 60/s: 10/s wait until 2 s of capacity wait, then 10/s are dropped."""
    world = World(make_service(60.0, max_queue_s=4.0)).put(make_pod())
    one = world.to(15)
    assert (one.served[0], one.queue[0], one.dropped[0]) == (pytest.approx(50), pytest.approx(150), 0)
    assert one.violated[0]
    assert one.latency[0] >= 150 / 50
    two = world.to(30)
    assert two.queue[0] == pytest.approx(200)
    assert two.dropped[0] == pytest.approx((150 + 150 - 200) / 15)
    assert usage(world)["p"][0] == 1000.0, "CPU does not pass the limit"
    three = world.to(45)
    assert (three.queue[0], three.dropped[0]) == (pytest.approx(200), pytest.approx(10))


def test_a_second_above_the_capacity_counts_at_the_loads_own_step():
    """A burst of one second that the mean of 15 s hides breaks the objective only at the trace's own step."""
    burst = SeriesTrace([10.0] * 14 + [60.0] + [10.0] * 15, step=seconds(1), start=START, name="burst")
    world = World(make_service(trace=burst)).put(make_pod())
    one, two = world.to(15), world.to(30)
    assert [(step.violated[0], step.violated_own_step[0]) for step in (one, two)] == [
        (False, True),
        (False, False),
    ]


def test_without_a_queue_what_is_not_served_is_dropped():
    """The unserved share is offered above capacity, as for scores without queue and retry."""
    step = World(make_service(60.0)).put(make_pod()).to(15)
    assert (step.queue[0], step.dropped[0]) == (0, pytest.approx(10))


def test_a_queue_is_worked_off_with_spare_capacity():
    """After a burst the pod works at its limit until the queue is empty."""
    trace = SeriesTrace([80.0, 20.0, 20.0], step=seconds(15), start=START, name="t")
    world = World(make_service(trace=trace, max_queue_s=60.0)).put(make_pod())
    assert world.to(15).queue[0] == pytest.approx(450)
    two = world.to(30)
    assert (two.served[0], two.queue[0]) == (pytest.approx(50), pytest.approx(0))
    three = world.to(45)
    assert three.served[0] == pytest.approx(20)
    assert usage(world)["p"][0] == 400.0


@given(
    rates=st.lists(st.floats(0, 500), min_size=1, max_size=8),
    pods=st.integers(0, 6),
    bound=st.sampled_from([0.0, 1.0, 30.0]),
)
def test_no_request_is_lost(rates, pods, bound):
    """Each offered request was served, dropped or waits."""
    trace = SeriesTrace(rates, step=seconds(15), start=START, name="t")
    world = World(make_service(trace=trace, max_queue_s=bound))
    for number in range(pods):
        world.put(make_pod(f"p{number}"))
    world.to(15 * len(rates))
    history = world.history
    offered = sum(step.offered[0] for step in history) * 15
    handled = sum(step.served[0] + step.dropped[0] for step in history) * 15
    assert offered == pytest.approx(handled + history[-1].queue[0], abs=1e-3)
    assert all(step.served[0] <= step.capacity[0] * (1 + 1e-9) for step in history)
    assert all(step.dropped[0] >= 0 for step in history)


def test_latency_grows_with_the_share_of_capacity_in_use():
    """Base + S / (1 - rho): 20 ms alone, 40 ms at half load, 200 ms at 90 %."""
    for rate, expected in ((0.0, 0.02), (25.0, 0.04), (45.0, 0.2)):
        step = World(make_service(rate, base_latency_s=0.005)).put(make_pod()).to(15)
        assert step.latency[0] == pytest.approx(0.005 + expected)


def test_a_request_takes_longer_on_a_pod_with_less_than_a_core():
    """20 ms of CPU take 80 ms behind a limit of a quarter core."""
    step = World(make_service(0.0)).put(make_pod(limit="250m", cpu="250m")).to(15)
    assert step.latency[0] == pytest.approx(0.08)


def test_the_latency_objective_can_be_broken_below_capacity():
    """With a latency objective a step breaks it before the capacity is used up."""
    pod = make_pod()
    assert not World(make_service(45.0)).put(pod).to(15).violated[0]
    assert World(make_service(45.0, slo_latency_s=0.1)).put(pod).to(15).violated[0]
    assert not World(make_service(0.0, slo_latency_s=0.001)).put(pod).to(15).violated[0]


def test_exactly_the_capacity_is_no_violation():
    """Offered = ready pods x capacity is served; rounding of the sum does not tip it over."""
    for pods in (1, 3, 7, 31):
        world = World(make_service(50.0 * pods))
        for number in range(pods):
            world.put(make_pod(f"p{number}"))
        step = world.to(15)
        assert not step.violated[0]
        assert step.dropped[0] == pytest.approx(0)


def test_without_ready_pods_everything_waits_or_is_dropped():
    """No capacity is a violation: nothing is served, and requests wait at most the longest wait."""
    step = World(make_service(10.0, max_queue_s=5.0)).to(15)
    assert (step.capacity[0], step.served[0], step.queue[0]) == (0, 0, pytest.approx(50))
    assert step.violated[0]
    assert step.latency[0] == 5.0


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


def test_pods_on_a_lost_node_serve_nobody():
    """A node that is deleted or not Ready takes its pods out of service before anybody has marked them."""
    world = World(make_service(10.0), nodes=("n1", "n2")).put(make_pod("a")).put(make_pod("b", node="n2"))
    assert world.to(15).ready[0] == 2
    world.nodes.put(("", "n1"), make_node("n1", ready="Unknown"))
    assert world.to(30).ready[0] == 1
    world.nodes.put(("", "n2"), None)
    assert world.to(45).ready[0] == 0


def test_pods_that_are_deleted_serve_nobody_and_do_not_count():
    """A pod that is being deleted takes no requests and is not among the existing ones."""
    step = World(make_service()).put(make_pod("a")).put(make_pod("b", deleting=True)).to(15)
    assert (step.ready[0], step.existing[0]) == (1, 1)


def test_pending_pods_exist_and_use_nothing():
    """A Pending pod counts as existing and has no sample."""
    pod = make_pod("b", phase="Pending", ready=False, started=None)
    world = World(make_service()).put(make_pod("a")).put(pod)
    step = world.to(15)
    assert (step.ready[0], step.existing[0]) == (1, 2)
    assert set(usage(world)) == {"a"}


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
    """Half of what is requested, by default."""
    world = World(make_service()).put(make_pod("x", app="other", cpu="300m"))
    world.to(15)
    assert usage(world) == {"x": (150.0, 50 * MI)}


def test_a_service_takes_pods_of_its_namespace_and_selector_only():
    """The same labels in another namespace are another workload."""
    world = World(make_service()).put(make_pod("a", namespace="other")).put(make_pod("b", app="other"))
    assert world.to(15).existing[0] == 0


def test_steps_do_not_depend_on_who_asks_or_how_often():
    """Asking each second, each step or once leads to the same history."""
    trace = SeriesTrace([5.0, 90.0, 20.0, 70.0], step=seconds(15), start=START, name="t")

    def run(seconds_of_asking):
        world = World(make_service(trace=trace, max_queue_s=9.0)).put(make_pod("a"))
        for second in seconds_of_asking:
            if second == 20:
                world.clock.time = after(START, seconds(20))
                world.put(make_pod("b"))
            world.to(second)
        return [np.concatenate([getattr(step, name) for name in ("offered", "served", "queue", "ready")]).tolist()
                for step in world.history]  # fmt: skip

    asked = run(range(1, 61))
    assert asked == run([20, 60])
    assert asked == run([15, 20, 30, 45, 60, 60])
    assert [step[3] for step in asked] == [1, 2, 2, 2]


def test_a_change_at_the_end_of_a_step_counts_for_the_next():
    """A pod that becomes ready at 15 s was not ready in the step that ended then."""
    world = World(make_service()).put(make_pod("a", ready=False))
    world.clock.time = after(START, seconds(15))
    world.put(make_pod("a"))
    assert [step.ready[0] for step in (world.to(15), world.to(30))] == [0, 1]


def test_a_row_of_a_deleted_pod_serves_another():
    """Pods come and go without leaving usage behind."""
    world = World(make_service(10.0))
    for number in range(200):
        world.put(make_pod(f"p{number}"))
        if number >= 3:
            world.remove(f"p{number - 3}")
    world.put(make_pod("x", app="other", cpu="100m"))
    step = world.to(15)
    assert (step.ready[0], step.existing[0]) == (3, 3)
    assert {name: cpu for name, (cpu, _) in usage(world).items()} == {
        "p197": pytest.approx(200 / 3, abs=1e-5),
        "p198": pytest.approx(200 / 3, abs=1e-5),
        "p199": pytest.approx(200 / 3, abs=1e-5),
        "x": 50.0,
    }


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


def test_bad_services_are_named():
    """A service that cannot be modelled names itself, the field and the fix."""
    with pytest.raises(
        LoadError, match="service default/web: cpu_seconds_per_request 0 must be greater than 0"
    ):
        make_service(cpu_seconds_per_request=0)
    with pytest.raises(
        LoadError, match="service default/web: max_queue_s -1 must be a finite number, 0 or more"
    ):
        make_service(max_queue_s=-1)


def test_one_bad_object_does_not_stop_the_others():
    """A pod or node whose quantities or times cannot be read is left out."""
    world = World(make_service(10.0), nodes=("n1", "n2")).put(make_pod("good"))
    world.put(make_pod("bad", cpu="much"))
    world.put(make_pod("odd", started="yesterday"))
    world.put(make_pod("lost", node="n2"))
    world.nodes.put(("", "n2"), make_node("n2", cpu="lots"))
    assert world.to(15).ready[0] == 1
    assert set(usage(world)) == {"good", "lost"}


def test_a_handler_that_asks_sees_its_own_step():
    """Steps are handed over one after another, also when a handler reads usage while several are due."""
    world = World(make_service()).put(make_pod())
    seen = []

    def follow(end, _step):
        found = world.model.usage(end)
        seen.append((end, found.end))

    world.model.on_step(follow)
    world.to(75)
    assert seen == [(after(START, seconds(t)), after(START, seconds(t))) for t in (15, 30, 45, 60, 75)]


def test_the_history_can_be_followed():
    """Each step is handed over with its end, in order."""
    world = World(make_service())
    ends = []
    world.model.on_step(lambda end, step: ends.append((end - START) // seconds(1)))
    world.to(44)
    assert ends == [15, 30]
    assert len(world.history) == 2
    assert world.history[0].offered.tolist() == [10.0]
    assert world.model.cpu_used_milli == 0.0
    assert answer(world.metrics.pod_samples()).names == ()


def running_since(pod, at, *, image="", state=None):
    """The pod with a status of its working container, and an image."""
    state = state or ContainerState(running=ContainerRunning(started_at=at))
    (main,) = pod.spec.containers
    spec = replace(pod.spec, containers=(replace(main, image=image),))
    statuses = (ContainerStatus(name="main", state=state),)
    status = replace(pod.status, container_statuses=statuses)
    return replace(pod, spec=spec, status=status)


def test_a_leak_grows_with_the_age_of_the_container():
    """From the container's start, not the pod's; a new image has a leak and a base of its own."""
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
    """While it waits for its restart; its memory is that of a new container afterwards."""
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
