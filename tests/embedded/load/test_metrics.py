from __future__ import annotations

import asyncio

import pytest
from tests.embedded.load.worlds import START, World, answer, make_pod, make_service

from kubetide.testing.metrics_battery import CASES, SourceUnderTest
from kubetide.units.quantity import milli
from kubetide.units.time import after, minutes, seconds


def samples_of(world, *args):
    """Milli-units by pod and container."""
    samples = answer(world.metrics.pod_samples(*args))
    return {
        (samples.names[pod], samples.containers[c]): {
            name: int(usage.milli[c]) for name, usage in samples.usage.items()
        }
        for pod in range(len(samples.names))
        for c in range(samples.first[pod], samples.first[pod + 1])
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_embedded_source_passes_the_battery(case):
    """The embedded metrics do what the MetricSource port promises."""
    pods = [
        make_pod("a"),
        make_pod("b", sidecar=True),
        make_pod("c", app="other"),
        make_pod("d", namespace="far", app=""),
        make_pod("e", namespace="far", sidecar=True),
    ]
    world = World(make_service())
    for pod in pods:
        world.put(pod)
    world.put(make_pod("pending", phase="Pending", ready=False, started=None))
    world.to(30)
    asyncio.run(case(SourceUnderTest(world.metrics, pods)))


def test_cpu_is_rounded_up_to_milli_units():
    """A tenth of a milli-CPU counts as a whole one; 700.0 stays 700 whatever floats made of it."""
    world = World(make_service(10.005, cpu_seconds_per_request=0.02)).put(make_pod())
    world.to(15)
    assert samples_of(world)["p", "main"]["cpu"] == 201
    for rate in (35.0, 7.0, 0.7, 49.0):
        world = World(make_service(rate)).put(make_pod())
        world.to(15)
        assert samples_of(world)["p", "main"]["cpu"] == round(rate * 20)


def test_columns_and_objects_hold_the_same_numbers():
    """Reading the metrics objects as the API's clients do gives the columns' numbers."""
    world = World(
        make_service(33.3333, base_memory_bytes=12345, memory_per_request_bytes=999), idle_share=1 / 3
    )
    for number in range(7):
        world.put(make_pod(f"p{number}", sidecar=number % 2 == 0))
    world.put(make_pod("x", app="other", cpu="7m"))
    world.to(45)
    objects = {
        (pod.metadata.name, c.name): {name: milli(value) for name, value in c.usage.items()}
        for pod in world.metrics.pod_metrics()
        for c in pod.containers
    }
    assert objects == samples_of(world)
    (node,) = world.metrics.node_metrics()
    total = sum(milli(c.usage["memory"]) for pod in world.metrics.pod_metrics() for c in pod.containers)
    assert milli(node.usage["memory"]) == total
    assert {pod.timestamp for pod in world.metrics.pod_metrics()} == {"2026-03-02T00:00:45Z"}
    assert {pod.window for pod in world.metrics.pod_metrics()} == {"15s"}


def test_the_work_is_done_by_the_named_container():
    """A sidecar uses its constant share; the service's container does the work."""
    world = World(make_service(10.0)).put(make_pod(sidecar=True))
    world.to(15)
    assert samples_of(world) == {
        ("p", "main"): {"cpu": 200, "memory": 0},
        ("p", "side"): {"cpu": 50, "memory": 5 * (1 << 20) * 1000},
    }
    world = World(make_service(10.0, container="side")).put(make_pod(sidecar=True))
    world.to(15)
    assert samples_of(world)["p", "side"]["cpu"] == 200
    assert samples_of(world)["p", "main"]["cpu"] == 500


def test_a_young_pod_has_no_sample_yet():
    """A pod appears with the first step that it ran through."""
    world = World(make_service())
    world.clock.time = after(START, seconds(20))
    world.put(make_pod("young", started=after(START, seconds(20))))
    world.to(30)
    assert samples_of(world) == {}
    world.to(45)
    assert set(samples_of(world)) == {("young", "main")}


def test_a_deleted_pod_stays_until_the_next_step():
    """Samples are those of the step, as a scraping server stores them."""
    world = World(make_service()).put(make_pod("a")).put(make_pod("b"))
    world.to(20)
    world.remove("a")
    assert {name for name, _ in samples_of(world)} == {"a", "b"}
    world.to(30)
    assert {name for name, _ in samples_of(world)} == {"b"}


def test_a_scrape_delay_shows_older_steps():
    """With a delay of 30 s the samples of 60 s are those that ended at 30 s."""
    world = World(make_service(), scrape_delay=seconds(30)).put(make_pod())
    world.to(29)
    assert samples_of(world) == {}
    world.to(60)
    samples = answer(world.metrics.pod_samples())
    assert samples.timestamp_ns.tolist() == [after(START, seconds(30))]
    assert samples.window_ns.tolist() == [seconds(15)]


def test_names_are_the_same_objects_until_the_pods_change():
    """Steps, readiness and usage leave the tuples as they are; a pod more makes new ones."""
    world = World(make_service()).put(make_pod("a")).put(make_pod("b"))
    world.to(15)
    first = answer(world.metrics.pod_samples())
    world.put(make_pod("b", ready=False))
    world.put(make_pod("c", phase="Pending", ready=False, started=None))
    world.to(30)
    second = answer(world.metrics.pod_samples())
    assert second.names is first.names
    assert second.namespaces is first.namespaces
    assert second.timestamp_ns[0] != first.timestamp_ns[0]
    world.put(make_pod("c"))
    world.to(45)
    assert answer(world.metrics.pod_samples()).names == ("a", "b", "c")


def test_labels_that_change_change_the_answer():
    """A selector is matched against the labels of now."""
    world = World(make_service()).put(make_pod("a", app="x"))
    world.to(15)
    assert set(samples_of(world, "", "app=x")) == {("a", "main")}
    pod = make_pod("a", app="y")
    world.put(pod)
    world.to(30)
    assert samples_of(world, "", "app=x") == {}


def test_reading_brings_the_model_up_to_date():
    """Nobody has to advance the model before its metrics are read."""
    world = World(make_service()).put(make_pod())
    world.clock.time = after(START, minutes(1))
    assert answer(world.metrics.pod_samples()).timestamp_ns.tolist() == [after(START, minutes(1))]
    assert len(world.history) == 4
