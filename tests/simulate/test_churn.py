"""Nodes that come and go: what is counted as churn, and how long pods wait."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from kubetide.nodes.facts.pods import is_daemon_set_pod
from kubetide.objects.pod import is_finished
from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.outcome.churn import bought_back, short_lived
from kubetide.simulate.outcome.summary import summarize
from kubetide.simulate.outcome.timeline import GroupPrice, Mark, NodeLife, Timeline
from kubetide.simulate.scenarios.scenario import load_scenario, start_of
from kubetide.simulate.world import World
from kubetide.units.time import Instant, before, minutes, parse_duration, seconds, to_seconds

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_one_node_bought_back_counts_once_beside_all_removals_that_it_follows():
    """Three nodes go, one of their group is bought soon after; a fourth goes long before, another group's node is no matter."""
    lives = [
        NodeLife(name=f"a-{minute}", group=group, created=Instant(0), deleted=Instant(minutes(minute)))
        for group, minute in (("a", 10), ("a", 50), ("a", 51), ("a", 52), ("b", 52))
    ]
    mark = Mark(at=Instant(minutes(60)), loop="nodes", subject="a", title="", change=1)
    timeline = Timeline(start=Instant(0), step_s=30.0, node_lives=lives, marks=[mark])
    assert bought_back(timeline) == (3, 1)
    timeline.marks = [replace(mark, change=2)]
    assert bought_back(timeline) == (3, 2)
    timeline.marks = [replace(mark, loop="horizontal"), replace(mark, change=-1)]
    assert bought_back(timeline) == (0, 0)


def test_a_short_life_ends_within_a_quarter_of_an_hour():
    """A node that is still there has not lived short, however young it is."""
    ends = (Instant(minutes(15) - 1), Instant(minutes(15)), None)
    lives = [NodeLife("n", "a", Instant(0), end) for end in ends]
    assert short_lived(Timeline(start=Instant(0), step_s=30.0, node_lives=lives)) == 1


def test_what_a_run_could_not_save_are_nodes_up_to_the_minimum_size():
    """Nodes above it are the loop's, and a group that has fewer costs only those."""
    timeline = Timeline(
        start=Instant(0),
        step_s=3600,
        pending=[0, 0, 0],
        nodes={"a": [1, 2, 3], "b": [1, 1, 1]},
        prices={
            "a": GroupPrice(per_hour=0.5, offers={}, min_size=2),
            "b": GroupPrice(per_hour=9.0, offers={}),
        },
    )
    assert summarize("run", timeline).cost_of_minimums == pytest.approx(0.5 * (1 + 2 + 2))


def test_waits_are_the_times_from_creation_to_binding():
    """On a day with churn they are what all changes of pods say since the start; who waits at the end counts until then."""
    scenario = msgspec.structs.replace(load_scenario(EXAMPLES / "bad-day.yaml"), duration="50m")
    created, waits = {}, []

    async def main(clock):
        end = Instant(start_of(scenario) + minutes(50))
        world = World(scenario, clock, base=EXAMPLES, end=end, seed=3, recorder=NullRecorder())

        def follow(key, old, new):
            if old is None and not new.spec.node_name and not is_daemon_set_pod(new):
                created[key] = clock.now()
            if key in created and (new is None or new.spec.node_name or is_finished(new)):
                since = max(created.pop(key), start_of(scenario))
                if new is not None and new.spec.node_name and clock.now() > start_of(scenario):
                    waits.append(to_seconds(clock.now() - since))

        world.pods.on_change(follow)
        await world.run()
        return world.timeline

    timeline = run_virtual(main, start=before(start_of(scenario), parse_duration(scenario.warm_up)))
    assert timeline.waits == waits
    assert max(waits) > 60
    assert {tuple(name.split("/")): since for name, since in timeline.waiting_since.items()} == created
    end = timeline.start + round((len(timeline.pending) - 1) * seconds(timeline.step_s))
    still = [to_seconds(end - since) for since in created.values()]
    summary = summarize("run", timeline)
    assert summary.wait_max_s == pytest.approx(max(*waits, *still), abs=1e-3)
    assert summary.left_pending == len(still)
