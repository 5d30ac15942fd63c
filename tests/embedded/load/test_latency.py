"""Latency: finite, monotone, bounded, and the same whichever way time is cut at low load."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.embedded.load.worlds import World, make_pod, make_service

from kubetide.embedded.load.service import ServiceFacts, ServingCapacity, settle

WORK = st.floats(0.001, 0.5)
STEPS = st.sampled_from([1.0, 5.0, 15.0, 60.0])
BOUNDS = st.sampled_from([0.0, 0.5, 5.0, 60.0])


def after_a_step(rate, *, work=0.02, cores=1.0, pods=1, queue=0.0, step_s=15.0, **fields):
    """The result of a step of ``rate``, with all the CPU that the pods may use."""
    facts = ServiceFacts.of([make_service(rate, cpu_seconds_per_request=work, **fields)])
    capacity = np.array([pods * cores / work])
    offered = np.array([float(rate)])
    return settle(
        facts,
        ServingCapacity.of(facts, capacity=capacity, cores=np.array([cores if pods else inf]), step_s=step_s),
        offered=offered,
        peak=offered,
        queue=np.array([queue]),
        granted=np.minimum(capacity, offered + queue / step_s),
        asked=capacity,
        ready=np.array([pods]),
        existing=np.array([pods]),
        step_s=step_s,
    )


def latency(rate, **fields):
    return after_a_step(rate, **fields).latency[0]


@settings(max_examples=100)
@given(
    rates=st.tuples(st.floats(0, 2000), st.floats(0, 2000)),
    work=WORK,
    cores=st.floats(0.1, 4),
    pods=st.integers(0, 20),
    step_s=STEPS,
    bound=BOUNDS,
)
def test_latency_is_finite_and_more_load_never_lowers_it(rates, work, cores, pods, step_s, bound):
    """From no load to far above capacity the latency is a finite number that does not fall."""
    less, more = (
        latency(rate, work=work, cores=cores, pods=pods, step_s=step_s, max_queue_s=bound)
        for rate in sorted(rates)
    )
    assert np.isfinite([less, more]).all()
    assert less <= more * (1 + 1e-9)


@settings(max_examples=100)
@given(
    rate=st.floats(0, 2000),
    work=WORK,
    cores=st.floats(0.1, 4),
    queue=st.floats(0, 1000),
    step_s=STEPS,
    bound=st.sampled_from([0.1, 5.0, 60.0]),
    base=st.floats(0, 1),
)
def test_latency_stays_below_what_a_request_may_wait(rate, work, cores, queue, step_s, bound, base):
    """Base, the request alone and the longest wait are the most that a request takes."""
    found = latency(
        rate, work=work, cores=cores, queue=queue, step_s=step_s, max_queue_s=bound, base_latency_s=base
    )
    alone = work / min(1.0, cores)
    assert base + alone <= found * (1 + 1e-9)
    assert found <= (base + alone + bound) * (1 + 1e-9)


@settings(max_examples=50)
@given(busy=st.floats(0, 0.5), work=st.floats(0.001, 0.1), bound=st.sampled_from([0.0, 5.0]))
def test_at_low_load_the_step_plays_no_part(busy, work, bound):
    """Up to half load latency is that of the steady state, S / (1 - rho), at any step length."""
    found = [latency(busy / work, work=work, max_queue_s=bound, step_s=step) for step in (1.0, 15.0, 60.0)]
    assert found == pytest.approx([work / (1 - busy)] * 3)


@pytest.mark.parametrize("bound", [0.0, 5.0])
def test_a_full_step_without_a_queue_is_not_a_lost_one(bound):
    """At exactly the capacity nothing waits at the end: the latency is a fraction of a second, not the step."""
    step = after_a_step(50.0, max_queue_s=bound, slo_latency_s=0.4)
    assert step.queue[0] == 0
    assert step.latency[0] == pytest.approx(0.02 + 2 / 3 * (2 * 0.02 * 15 / np.pi) ** 0.5)
    assert not step.violated[0]


def test_the_wait_behind_a_queue_counts_once():
    """Above capacity the latency is base, the request alone, and the queue over the capacity."""
    step = after_a_step(60.0, max_queue_s=60.0, base_latency_s=0.1)
    assert step.queue[0] == pytest.approx(150)
    assert step.latency[0] == pytest.approx(0.1 + 0.02 + 150 / 50)
    assert latency(500.0, max_queue_s=5.0) == pytest.approx(0.02 + 5.0)


def test_a_pod_within_its_request_on_a_crowded_node_is_not_at_full_load():
    """A neighbour that demands more than the node has does not slow a pod whose request is guaranteed."""
    services = (
        make_service(50.0),
        make_service(900.0, name="api", selector=make_service().selector.parse("app=api")),
    )
    world = World(*services, cpu="4")
    world.put(make_pod("web", app="web", cpu="2", limit="4")).put(
        make_pod("api", app="api", cpu="1", limit="4")
    )
    step = world.to(15)
    assert step.capacity.tolist() == pytest.approx([100.0, 150.0])
    assert step.latency[0] == pytest.approx(0.02 / (1 - 0.5))
    assert step.violated.tolist() == [False, True]
