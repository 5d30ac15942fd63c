"""The recorded figures of a run are those of its timeline, which observes the run from outside."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace
from tests.simulate.worlds import small

from kubetide.runtime.figures.blocks import SeriesKey
from kubetide.runtime.figures.reading import FigureHistory
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import BurstSpec, DailySpec, LoadSpec
from kubetide.units.time import Instant


@pytest.fixture(scope="module", params=[1, 2, 3])
def run(request, tmp_path_factory):
    """A run whose pods and nodes become more and fewer: its timeline, and its figures."""
    folder = tmp_path_factory.mktemp("run")
    plain = small(duration="40m", nodes=1)
    load = LoadSpec(
        daily=DailySpec(
            low=30, peak=30, burst=BurstSpec(at="00:05", height=6, rise="2m", hold="10m", fall="2m")
        )
    )
    flags = {**plain.flags, "scale-down-unneeded-time": "3m", "scale-down-delay-after-add": "3m"}
    large = tuple(text.replace("cpu: 200m", "cpu: 500m") for text in plain.manifests)
    scenario = replace(plain, manifests=large, services=(replace(plain.services[0], load=load),), flags=flags)
    seed = request.param
    timeline = run_simulation(scenario, base=folder, out=folder, seed=seed, warn=pytest.fail).timeline
    history = FigureHistory(folder)
    history.follow()
    return timeline, history


def times_of(timeline):
    return [Instant(timeline.start + round(i * timeline.step_s * 1e9)) for i in range(len(timeline.pending))]


def between(history, key, timeline):
    """Return for each step all values that held from just before its time until the next one."""
    column = history.column(SeriesKey(*key))
    times = np.array(times_of(timeline))
    step = times[1] - times[0]
    first = np.maximum(np.searchsorted(column.times, times, side="left") - 1, 0)
    last = np.searchsorted(column.times, times + step, side="right")
    return [set(column.values[a:b].tolist()) for a, b in zip(first, last, strict=True)]


def test_replicas_are_those_of_the_timeline(run):
    """Desired replicas and ready pods are equal, tick by tick."""
    timeline, history = run
    web = timeline.services["web"]
    assert len(set(web.ready)) > 3
    for figure, expected in (("replicas", web.desired), ("ready", web.ready)):
        key = SeriesKey("hpa", "default/web", figure)
        found = [history.at(key, time) for time in times_of(timeline)]
        begun = next(i for i, one in enumerate(found) if one == one)  # noqa: PLR0124  # NaN before the first tick
        assert found[begun:] == expected[begun:], figure
        assert begun < 3


def test_pods_and_nodes_are_those_of_the_timeline(run):
    """Each number of the timeline held at its time; what loops do at the very same time comes before it or after it."""
    timeline, history = run
    pods = [on + off for on, off in zip(timeline.requested["pods"], timeline.pending, strict=True)]
    assert max(timeline.nodes["general"]) > min(timeline.nodes["general"])
    assert max(timeline.pending) > 0
    for key, expected in (
        (("nodegroup", "general", "ready"), timeline.nodes["general"]),
        (("cluster", "", "pending"), timeline.pending),
        (("cluster", "", "pods"), pods),
    ):
        held = between(history, key, timeline)
        assert [i for i, (one, some) in enumerate(zip(expected, held, strict=True)) if one not in some] == []
        peak = history.column(SeriesKey(*key)).values
        assert np.nanmax(peak) >= max(expected)


def test_the_cost_adds_up_to_what_was_spent(run):
    """The cost an hour, added up over the run, is the money of the timeline but for the moments of orders."""
    timeline, history = run
    column = history.column(SeriesKey("cluster", "", "cost"))
    first = timeline.start - round(timeline.step_s * 1e9)
    end = times_of(timeline)[-1]
    ends = [*column.times.tolist(), end]
    spans = [(max(a, first), max(b, first)) for a, b in pairwise(ends)]
    spent = sum(value * (b - a) / 3.6e12 for value, (a, b) in zip(column.values.tolist(), spans, strict=True))
    assert spent == pytest.approx(timeline.cost[-1], rel=0.01)
