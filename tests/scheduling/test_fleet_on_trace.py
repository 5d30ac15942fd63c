"""The Alibaba GPU pods on 43 AWS types: our relaxation is the published figure, and the greedy choice beats first-fit."""

from __future__ import annotations

import pytest
from bench.packing import DATA, PEAK_S, PODS, TYPES, lower_bound, read_pods, read_types, run

pytestmark = pytest.mark.skipif(
    not all((DATA / name).exists() for name in (PODS, TYPES)), reason="the data is not beside the repository"
)

FIRST_FIT = 7425.03
"""First-fit decreasing, each new node of the type with the lowest price a pod: USD an hour."""


@pytest.mark.parametrize(
    ("at_s", "pods", "usd"), [(None, 8152, 6947.90), (PEAK_S, 56, 51.66)], ids=["all", "peak"]
)
def test_the_relaxation_is_the_known_one(at_s, pods, usd):
    """Pods, types and the price of the relaxation are those that other code has computed."""
    types, demand = read_types(DATA), read_pods(DATA, at_s)
    assert len(types) == 43
    assert sum(demand.values()) == pods
    assert lower_bound(types, demand) == pytest.approx(usd, abs=0.005)


def test_the_greedy_choice_alone_is_better_than_first_fit():
    """All pods are placed in one tick, for less than first-fit decreasing takes."""
    types, demand = read_types(DATA), read_pods(DATA, None)
    found = run(types, demand, "least-cost", 0)
    assert (found.ticks, found.left) == (1, 0)
    assert found.price < FIRST_FIT
    assert found.price >= lower_bound(types, demand)
