"""The reference against upstream's recorded loops, and production against the reference."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from tests.conformance import nodes
from tests.conformance.cases import Selection, selected_cases
from tests.conformance.test_nodes import DATA
from tests.nodes.reference.playing import COMPARED, difference, drawn, outcomes
from tests.nodes.reference.world import DEFAULTS, Json

PLAYED = 361
ELSEWHERE = (
    '"podAffinity"',
    '"topologySpreadConstraints"',
    '"nodeAffinity"',
    "nvidia.com/gpu",
    '"comparator"',
    '"pricing"',
    '"evictionError"',
    "delay-deletion",
    "startup-taint",
    "status-taint",
    '"priority,',
    '"expander": "priority',
    "node-delete-delay-after-taint",
)
"""What the reference knows nothing of, as it shows in a story."""
WITHOUT_EFFECT = {
    "scale-down-candidates-pool-min-count",
    "scale-down-candidates-pool-ratio",
    "scale-down-non-empty-candidates-count",
}
"""Flags that upstream reads and does nothing with."""


def knows(story: Json) -> bool:
    """Return whether the reference knows all flags and rules of a recorded story."""
    text = json.dumps(story)
    known = set(story["options"]) <= DEFAULTS.keys() | WITHOUT_EFFECT
    return "steps" in story and known and not any(one in text for one in ELSEWHERE)


@pytest.mark.slow
def test_the_reference_does_what_upstream_did():
    """In all recorded stories of its rules it does what upstream does, or one of the ways upstream went."""
    stories = [one for one in selected_cases(nodes, [DATA], Selection()) if knows(one)]
    assert len(stories) == PLAYED
    assert {story["id"]: wrong for story in stories if (wrong := _differs(story))} == {}


def _differs(story: Json) -> str | None:
    for number, (step, found) in enumerate(zip(story["steps"], outcomes(story), strict=False)):
        wrong = nodes.first_of(f"step {number}", step["expect"], found, COMPARED)
        if wrong is None:
            continue
        others = step.get("expectAlternatives", ())
        return None if any(nodes.first_of("", one, found, COMPARED) is None for one in others) else wrong
    return None


@pytest.mark.slow
@pytest.mark.parametrize(("first", "count", "steps"), [(0, 150, 8), (150, 150, 8), (10_000, 40, 30)])
def test_production_decides_as_the_reference(first, count, steps):
    """In random lives of clusters both do the same; and enough happens in them."""
    stories = [drawn(seed, steps) for seed in range(first, first + count)]
    assert {story["id"]: wrong for story in stories if (wrong := difference(story))} == {}
    happened = Counter(
        name
        for story in stories
        for step in story["steps"]
        for name in ("scaleUps", "failedScaleUps", "deletedNodes", "evictedPods", "cordoned", "uncordoned")
        if step["expect"][name]
    )
    assert min(happened.values()) > 0
    assert happened["scaleUps"] > count / 2
    assert happened["deletedNodes"] > count / 2


@pytest.mark.parametrize("seed", [371, 742, 764, 995, 1546, 1682, 2349, 41020, 41182])
def test_stories_that_once_differed(seed):
    """As drawn now these need hints of nodes on their way, refused repairs, soft taints found at the start, Go's sort, salvos."""
    assert difference(drawn(seed, 8)) is None


def test_a_seed_draws_one_story():
    """The same seed draws the same story, byte for byte."""
    assert json.dumps(drawn(3, 6)) == json.dumps(drawn(3, 6))


def test_a_changed_answer_is_found():
    """A story that expects a node more than the reference bought differs in production."""
    story = drawn(5, 8)
    assert difference(story) is None
    step = next(one for one in story["steps"] if one["expect"]["scaleUps"])
    step["expect"]["scaleUps"][0]["delta"] += 1
    assert difference(story) is not None
