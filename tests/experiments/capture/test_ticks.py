"""Demand of one tick from the samples of its pods."""

from __future__ import annotations

import numpy as np
import pytest

from kubetide.experiments.capture.demand import Demand
from kubetide.experiments.capture.groups import said_of, span_of
from kubetide.experiments.capture.ticks import Tick, Ticks
from kubetide.horizontal.facts.samples import Answer, SampleColumn
from kubetide.horizontal.facts.views import HpaView, PodView, ScaleView
from kubetide.horizontal.state import Delta, State
from kubetide.objects.hpa import HpaSpec

NOW = 1_000_000_000_000
SECOND = 1_000_000_000


def state_of(ready_since, sampled):
    """One HPA's pods by the seconds that they have been Ready for, and the samples of some, 15 s to 30 s old.

    One whose name begins with x is being deleted.
    """
    pods = [
        PodView(
            "default",
            name,
            labels={"app": "web"},
            phase="Running",
            ready="True",
            deleting=name.startswith("x"),
            ready_since=NOW - age * SECOND,
        )
        for name, age in ready_since.items()
    ]
    answer = Answer(
        pods=(["default"] * len(sampled), list(sampled)),
        times=np.array([NOW - 15 * SECOND]),
        windows=np.array([15 * SECOND]),
        columns=(SampleColumn("cpu", "", np.array(list(sampled.values()))),),
    )
    scale = ScaleView("default", "web", spec_replicas=len(pods), selector="app=web")
    return State.from_full(
        Delta(hpas=[HpaView("default", "web", "1", HpaSpec())], pods=pods, scales=[scale], answers=[answer])
    )


@pytest.mark.parametrize(
    ("ready_since", "sampled", "used"),
    [
        ({"a": 99, "b": 99}, {"a": 300, "b": 100}, 400),
        ({"a": 99, "b": 99, "c": 5}, {"a": 300, "b": 100}, 400),
        ({"a": 99, "b": 99, "c": 99}, {"a": 300, "b": 100}, 600),
        ({"a": 99, "b": 5}, {"a": 300, "b": 20}, 320),
        ({"a": 99, "x": 99}, {"a": 300}, 300),
        ({"a": 99, "x": 99}, {"a": 300, "x": 100}, 400),
        ({"a": 99, "b": 99}, {}, None),
    ],
    ids=[
        "all",
        "new without a sample",
        "old without a sample",
        "new with a sample",
        "deleted without a sample",
        "deleted with a sample",
        "none",
    ],
)
def test_demand(ready_since, sampled, used):
    """The sum of the samples, and their mean for each pod that served then and has none; new pods add nothing."""
    (tick,) = Demand().ticks(state_of(ready_since, sampled), NOW)
    assert (tick.replicas, tick.serving) == (len(ready_since), len(ready_since))
    assert tick.used == (None if used is None else pytest.approx(used))
    if sampled:
        assert tick.middle == NOW - 22.5 * SECOND


def test_samples_of_several_times():
    """Each HPA has the median of its own samples' times, also where they were taken one by one."""
    pods = {"a1": 10, "a2": 20, "a3": 60, "b1": 30, "b2": 50}
    views = [
        PodView("default", name, {"app": name[0]}, "Running", ready="True", ready_since=0) for name in pods
    ]
    scales = [ScaleView("default", name, 3, selector=f"app={name}") for name in "ab"]
    answer = Answer(
        pods=(["default"] * len(pods), list(pods)),
        times=np.array([NOW - age * SECOND for age in pods.values()]),
        windows=np.array([10 * SECOND]),
        columns=(SampleColumn("cpu", "", np.full(len(pods), 100)),),
    )
    hpas = [HpaView("default", name, name, HpaSpec()) for name in "ab"]
    state = State.from_full(Delta(hpas=hpas, pods=views, scales=scales, answers=[answer]))
    one, other = Demand().ticks(state, NOW)
    assert (one.middle, other.middle) == (NOW - 25 * SECOND, NOW - 45 * SECOND)
    assert (one.used, other.used) == (300.0, 200.0)


def test_columns_of_ticks():
    """Ticks are read back as they were put in, what is not known as None."""
    put = [Tick(NOW, 3, 2, 250.5, NOW - SECOND), Tick(NOW + SECOND, None, 0, None, NOW)]
    ticks = Ticks()
    for tick in put:
        ticks.append(tick)
    assert list(ticks) == put
    assert [ticks[-1], ticks[0]] == [put[1], put[0]]
    assert ticks[1:] == put[1:]


def test_times_that_are_all_the_same_are_one_time():
    """A range from a time to itself reads as a mistake."""
    assert said_of(span_of([64.2])) == "64s"
    assert said_of(span_of([78.0, 832.0])) == "78s to 832s"
