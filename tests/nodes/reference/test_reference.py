"""The reference against upstream's recorded loops, and production against the reference."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count

import pytest
from tests.conformance import nodes
from tests.conformance.cases import Selection, selected_cases
from tests.conformance.nodes_outcomes import first_of
from tests.conformance.test_nodes import DATA
from tests.nodes.reference.playing import difference, drawn, outcomes
from tests.nodes.reference.world import DEFAULTS, Json

PLAYED = 472
WITHOUT_EFFECT = {
    "balancing-label",
    "scale-down-candidates-pool-min-count",
    "scale-down-candidates-pool-ratio",
    "scale-down-non-empty-candidates-count",
}
"""Flags that upstream reads and does nothing with."""


def knows(story: Json) -> bool:
    """Return whether the reference knows all flags of a recorded story."""
    return "steps" in story and set(story["options"]) <= DEFAULTS.keys() | WITHOUT_EFFECT


@pytest.mark.slow
def test_the_reference_does_what_upstream_did():
    """In all recorded stories of its rules it does what upstream does, or one of the ways upstream went."""
    stories = [one for one in selected_cases(nodes, [DATA], Selection()) if knows(one)]
    assert len(stories) == PLAYED
    assert {story["id"]: wrong for story in stories if (wrong := _differs(story))} == {}


def _differs(story: Json) -> str | None:
    for number, (step, found) in enumerate(zip(story["steps"], outcomes(story), strict=False)):
        wrong = first_of(f"step {number}", step["expect"], found)
        if wrong is None:
            continue
        others = step.get("expectAlternatives", ())
        return None if any(first_of("", one, found) is None for one in others) else wrong
    return None


@pytest.mark.slow
@pytest.mark.parametrize(("first", "end", "steps"), [(0, 150, 8), (150, 300, 8), (10_000, 10_040, 30)])
def test_production_decides_as_the_reference(first, end, steps):
    """In random lives of clusters both do the same; and enough happens in them."""
    stories = [drawn(seed, steps) for seed in range(first, end)]
    assert {story["id"]: wrong for story in stories if (wrong := difference(story))} == {}
    happened = Counter(
        name
        for story in stories
        for step in story["steps"]
        for name in ("scaleUps", "failedScaleUps", "deletedNodes", "evictedPods", "cordoned", "uncordoned")
        if step["expect"][name]
    )
    assert min(happened.values()) > 0
    assert happened["scaleUps"] > len(stories) / 2
    assert happened["deletedNodes"] > len(stories) / 2


def test_a_seed_draws_one_story():
    """The same seed draws the same story, byte for byte."""
    assert json.dumps(drawn(3, 6)) == json.dumps(drawn(3, 6))


def test_a_changed_answer_is_found():
    """A story that expects a node more than the reference bought differs in production."""
    stories = (drawn(seed, 4) for seed in count())
    story, step = next((one, step) for one in stories for step in one["steps"] if step["expect"]["scaleUps"])
    assert difference(story) is None
    step["expect"]["scaleUps"][0]["delta"] += 1
    assert difference(story) is not None
