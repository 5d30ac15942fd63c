"""Stories played by the reference, and what production makes of the same."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from tests.conformance import nodes
from tests.nodes.reference.drawn import START, Drawn
from tests.nodes.reference.lives import Life
from tests.nodes.reference.loop import Autoscaler
from tests.nodes.reference.world import Json, World

from kubetide.units.time import parse_rfc3339

COMPARED = tuple(one for one in nodes.COMPARED if one not in ("events", "statusConfigMapAnnotations"))
"""What the reference says of a step."""


def drawn(seed: int, steps: int) -> Json:
    """Return a random story; what it expects of each step is what the reference did."""
    cluster = Drawn(seed)
    life = Life(cluster)
    world = World.of(deepcopy(cluster.story), START)
    autoscaler = Autoscaler(world)
    last = None
    for number in range(steps):
        step, now = life.next_step(world, number, last)
        last = autoscaler.step(now, step["changes"])
        cluster.story["steps"].append({**step, "expect": deepcopy(last)})
    return cluster.story


def difference(story: Json) -> str | None:
    """Play a story with the controller of production and return where it first does otherwise."""
    return nodes.first_difference(story, COMPARED)


def outcomes(story: Json) -> Iterator[Json]:
    """Play a story with the reference and yield what it did in each step."""
    autoscaler = Autoscaler(World.of(deepcopy(story), START))
    for step in story["steps"]:
        yield autoscaler.step(parse_rfc3339(step["now"]), step.get("changes") or [])
