"""The steps of a load model: the same whoever asks, and handed over in order."""

from __future__ import annotations

import numpy as np
import pytest
from tests.embedded.load.worlds import START, World, answer, make_pod, make_service, usage

from kubetide.embedded.load import SeriesTrace
from kubetide.units.time import after, seconds


def test_steps_do_not_depend_on_how_often_they_are_asked_for():
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


def test_the_row_of_a_deleted_pod_is_used_again():
    """A pod that takes the row of a deleted one has only its own usage."""
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
