"""The load on ready pods: what is served, what waits or is dropped, and how long a request takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.embedded.load.worlds import START, World, make_node, make_pod, make_service, usage

from kubetide.embedded.load import LoadError, SeriesTrace
from kubetide.units.time import seconds


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


@pytest.mark.parametrize("amount", ["1e400", "9223372036854775807Ei"])
def test_amounts_and_times_that_nothing_has_stop_no_load(amount):
    """A pod, a service's pod and a node may state any quantity and time; the other pods serve as before."""
    world = World(make_service(20.0), nodes=("n1", "n2"))
    world.nodes.put(("", "n2"), make_node("n2", amount))
    world.put(make_pod("a")).put(make_pod("b", app="other", cpu=amount, memory=amount, limit=amount))
    world.put(make_pod("c", node="n2", cpu=amount, memory=amount, limit=None, memory_limit=amount))
    world.put(make_pod("d", started="9999-12-31T23:59:59Z"))
    assert world.to(15).served[0] == pytest.approx(20.0)
    assert usage(world)["a"][0] > 0


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


def test_a_service_takes_pods_of_its_namespace_and_selector_only():
    """The same labels in another namespace are another workload."""
    world = World(make_service()).put(make_pod("a", namespace="other")).put(make_pod("b", app="other"))
    assert world.to(15).existing[0] == 0


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
