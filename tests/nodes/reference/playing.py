"""Stories played by the reference, and what production makes of the same."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from tests.conformance import nodes
from tests.nodes.reference.drawn import START, Drawn
from tests.nodes.reference.lives import Life
from tests.nodes.reference.loop import Autoscaler
from tests.nodes.reference.world import Json, World

from kubetide.units.time import parse_duration, parse_rfc3339


def drawn(seed: int, steps: int) -> Json:
    """Return a random story; what it expects of each step is what the reference did."""
    cluster = Drawn(seed)
    life = Life(cluster)
    world = World.of(deepcopy(cluster.story), START)
    autoscaler = Autoscaler(world)
    for number in range(steps):
        now = life.next_time(world, number)
        autoscaler.let_run(now)
        step = life.next_step(world, autoscaler.actuator.evicted if number else None)
        done = autoscaler.step(now, step["changes"], parse_duration(step["settle"]))
        cluster.story["steps"].append({**step, "expect": deepcopy(done)})
    return cluster.story


def difference(story: Json) -> str | None:
    """Play a story with the controller of production and return where it first does otherwise."""
    return nodes.first_difference(story)


def outcomes(story: Json) -> Iterator[Json]:
    """Play a story with the reference and yield what it did in each step."""
    autoscaler = Autoscaler(World.of(deepcopy(story), START))
    for step in story["steps"]:
        settle = parse_duration(step.get("settle", "0s"))
        yield autoscaler.step(parse_rfc3339(step["now"]), step.get("changes") or [], settle)
