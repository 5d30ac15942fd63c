"""The figures of a run, against a plain recomputation and against a plain scan of the cluster."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.cloud import GROUP_LABEL
from kubetide.objects.node import node_condition
from kubetide.objects.pod import is_finished
from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_virtual
from kubetide.scheduling import pod_requests
from kubetide.simulate.outcome.summary import minutes_lost, summarize
from kubetide.simulate.outcome.timeline import GroupPrice, ServiceSeries, Timeline
from kubetide.simulate.scenarios.scenario import load_scenario, start_of
from kubetide.simulate.world import World
from kubetide.units.quantity import milli
from kubetide.units.time import Instant, before, minutes, parse_duration

EXAMPLES = Path(__file__).parents[2] / "examples"

LOADS = st.integers(0, 4000).map(lambda quarters: quarters / 4)
COUNTS = st.integers(0, 50)
ROWS = st.lists(st.tuples(LOADS, LOADS, COUNTS, COUNTS, st.booleans()), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, step_s=st.sampled_from([5.0, 15.0, 60.0, 90.0]), price=st.floats(0, 10))
def test_the_summary_is_what_the_definitions_say(rows, step_s, price):
    """Pod-minutes, lost minutes, unserved share, slack, node hours and cost equal a sum done step by step."""
    series = ServiceSeries(
        "web",
        offered=[row[0] for row in rows],
        capacity=[row[1] for row in rows],
        asked=[row[1] / 2 for row in rows],
        existing=[row[2] for row in rows],
        desired=[row[3] for row in rows],
        violated=[row[4] for row in rows],
        violated_own_step=[row[4] or row[2] > 40 for row in rows],
    )
    timeline = Timeline(
        start=Instant(0),
        step_s=step_s,
        services={"web": series},
        pending=[row[3] for row in rows],
        nodes={"general": [row[2] for row in rows]},
        cost=[price * index for index in range(len(rows))],
        cpu_requested=[row[1] for row in rows],
        prices={
            "general": GroupPrice(per_hour=price, offers={"cpu": 4.0}),
            "dear": GroupPrice(per_hour=99.0, offers={"cpu": 1.0}),
        },
    )
    summary = summarize("run", timeline)
    (service,), (group,) = summary.services, summary.groups

    pod_s = unmet = requests = idle = served_capacity = node_s = waiting_s = 0.0
    lost, lost_own = set(), set()
    for index, (offered, capacity, existing, pending, violated) in enumerate(rows):
        pod_s += existing * step_s
        node_s += existing * step_s
        waiting_s += pending * step_s
        requests += offered
        served_capacity += capacity
        unmet += max(0.0, offered - capacity)
        idle += max(0.0, capacity / 2 - offered)
        if violated:
            lost.add(math.floor(index * step_s / 60))
        if violated or existing > 40:
            lost_own.add(math.floor(index * step_s / 60))
    assert service.pod_minutes == pytest.approx(pod_s / 60, abs=0.0051)
    assert service.slo_minutes_lost == len(lost)
    assert service.slo_minutes_own_step == len(lost_own)
    assert service.requests == pytest.approx(requests * step_s, abs=0.0051)
    assert service.unserved_share == pytest.approx(unmet / requests if requests else 0, abs=1e-5)
    assert service.slack == pytest.approx(2 * idle / served_capacity if served_capacity else 0, abs=1e-3)
    assert service.rescales == sum(rows[i][3] != rows[i + 1][3] for i in range(len(rows) - 1))
    assert group.node_hours == pytest.approx(node_s / 3600, abs=1e-4)
    assert (group.nodes_min, group.nodes_max) == (min(r[2] for r in rows), max(r[2] for r in rows))
    assert summary.cost == pytest.approx(price * (len(rows) - 1), abs=1e-4)
    hours = len(rows) * step_s / 3600
    assert summary.cost_unscaled == pytest.approx(max(r[2] for r in rows) * price * hours, abs=1e-3)
    assert summary.cost_bound == pytest.approx(served_capacity * step_s / 3600 * price / 4, abs=1e-3)
    assert summary.pending_pod_minutes == pytest.approx(waiting_s / 60, abs=0.0051)
    assert summary.hours == pytest.approx(len(rows) * step_s / 3600, abs=1e-4)


def test_no_packing_costs_less_than_the_most_expensive_resource():
    """Each step counts its most expensive resource, at the cheapest price of any group; a resource that no group has counts for nothing."""
    prices = {
        "cores": GroupPrice(per_hour=4.0, offers={"cpu": 4.0, "memory": 8.0, "pods": 100}),
        "memory": GroupPrice(per_hour=6.0, offers={"cpu": 4.0, "memory": 60.0, "pods": 100}),
    }
    timeline = Timeline(
        start=Instant(0),
        step_s=3600,
        pending=[0, 0, 0],
        cpu_requested=[8.0, 1.0, 0.5],
        requested={"memory": [10, 50, 1], "pods": [10, 10, 75], "gpu": [9, 9, 9]},
        prices=prices,
    )
    assert summarize("run", timeline).cost_bound == pytest.approx(8.0 + 5.0 + 3.0)
    assert summarize("run", timeline).cost_over_bound == 0.0, "nothing was spent"
    timeline.cost = [8.0, 16.0, 20.0]
    assert summarize("run", timeline).cost_over_bound == pytest.approx(1.25)


def test_an_empty_run_has_a_summary():
    """A run that was stopped before its first step is summed up as nothing."""
    empty = Timeline(start=Instant(0), step_s=15.0, services={"web": ServiceSeries("web")}, nodes={"a": []})
    summary = summarize("run", empty)
    assert summary.hours == summary.cost == summary.pending_max == 0
    assert summary.cost_over_bound is None
    assert summary.services[0].pod_minutes == summary.services[0].unserved_share == 0


@pytest.mark.parametrize(
    ("bad", "step_s", "lost"),
    [([], 15, 0), ([0], 15, 1), ([0, 3], 15, 1), ([3, 4], 15, 2), ([0, 1], 60, 2), ([1, 2], 90, 2)],
)
def test_a_minute_with_one_bad_step_is_lost_once(bad, step_s, lost):
    """Minutes are counted from the start of the run."""
    assert minutes_lost([index in bad for index in range(8)], step_s) == lost


def test_the_observer_counts_what_a_scan_finds():
    """At each sample of a day with churn, its counters equal a scan of all pods and nodes in its caches."""
    scenario = load_scenario(EXAMPLES / "bad-day.yaml")
    scenario = msgspec.structs.replace(scenario, duration="90m")
    steps = []

    async def main(clock):
        end = Instant(start_of(scenario) + minutes(90))

        def scan(line):
            steps.append(None)
            pods, nodes = list(world.pods.objects.values()), list(world.nodes.objects.values())
            ready = [n for n in nodes if (c := node_condition(n, "Ready")) and c.status == "True"]
            bound = [p for p in pods if p.spec.node_name and not is_finished(p)]
            waiting = [
                p
                for p in pods
                if not p.spec.node_name and not is_finished(p) and not p.metadata.deletion_timestamp
            ]
            assert line.pending[-1] == len(waiting)
            assert line.cpu_requested[-1] * 1000 == pytest.approx(
                sum(pod_requests(p).get("cpu", 0) for p in bound)
            )
            assert line.requested["memory"][-1] == sum(pod_requests(p).get("memory", 0) for p in bound)
            assert line.requested["pods"][-1] == len(bound)
            assert line.cpu_allocatable[-1] * 1000 == pytest.approx(
                sum(milli(str(n.status.allocatable["cpu"])) for n in ready)
            )
            for group, counts in line.nodes.items():
                assert counts[-1] == sum((n.metadata.labels or {}).get(GROUP_LABEL) == group for n in ready)

        world = World(
            scenario, clock, base=EXAMPLES, end=end, seed=3, recorder=NullRecorder(), on_sample=scan
        )
        await world.run()
        return world.timeline

    timeline = run_virtual(main, start=before(start_of(scenario), parse_duration(scenario.warm_up)))
    assert len(steps) == len(timeline.pending) == 90 * 4
    assert max(timeline.pending) > 0
    assert len(set(timeline.nodes["general"])) > 2
    assert timeline.cost == sorted(timeline.cost)
    assert timeline.cost[-1] > 0
