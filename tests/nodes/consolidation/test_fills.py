"""The arithmetic of one new node for several old ones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.nodes.consolidation.fills import Candidates, Targets, best_fill


def nodes(*rows, calm=np.inf):
    """Price an hour, hours of stay, price of disruption, requested cores, allocatable cores."""
    columns = np.array(rows, np.float64).reshape(-1, 5)
    return Candidates(*columns[:, :3].T, columns[:, 3:4], columns[:, 4:5], np.full(len(rows), calm))


def groups(*rows):
    """Price an hour, cores, hours of overlap."""
    columns = np.array(rows, np.float64).reshape(-1, 3)
    return Targets(columns[:, 0], columns[:, 1:2], columns[:, 2])


def all_of(candidates, targets):
    return np.ones((len(candidates.prices), len(targets.prices)), np.bool_)


def best(candidates, targets):
    return best_fill(candidates, targets, all_of(candidates, targets))


def test_a_node_is_replaced_by_the_cheapest_that_holds_its_pods():
    """2 of 16 cores are in use: the node of 2 cores saves most."""
    found = best(nodes((0.8, 4, 0.05, 2, 16)), groups((0.4, 8, 0), (0.1, 2, 0), (0.05, 1, 0)))
    assert (found.target, found.nodes) == (1, (0,))
    assert found.value == pytest.approx(0.7 * 4 - 0.05)


def test_nodes_are_merged():
    """Three that are a third full become one."""
    found = best(nodes(*[(0.2, 4, 0.01, 1, 4)] * 3), groups((0.25, 4, 0)))
    assert (found.target, sorted(found.nodes)) == (0, [0, 1, 2])


def test_a_disruption_that_costs_more_than_it_saves_is_not_worth_it():
    """Nor is the time in which both nodes are paid."""
    assert best(nodes((0.2, 1, 0.11, 1, 4)), groups((0.1, 2, 0))) is None
    assert best(nodes((0.2, 1, 0.01, 1, 4)), groups((0.1, 2, 1))) is None
    assert best(nodes((0.2, 1, 0.01, 1, 4)), groups((0.1, 2, 0.5))) is not None


def test_free_capacity_that_is_needed_soon_saves_little():
    """As much capacity at the same price is only less capacity: what that saves ends with the calm."""
    half, smaller = (0.2, 4, 0.05, 1, 4), groups((0.1, 2, 0))
    assert best(nodes(half, calm=0.4), smaller) is None
    assert best(nodes(half, calm=0.6), smaller) is not None
    assert best(nodes(half, calm=0.0), groups((0.1, 4, 0))) is not None


prices = st.floats(0.01, 40)
few = st.integers(1, 8)


@given(
    st.lists(st.tuples(prices, st.floats(0, 24), st.floats(0, 1), few, few), min_size=1, max_size=12),
    st.lists(st.tuples(prices, few, st.floats(0, 1)), min_size=1, max_size=5),
    st.floats(0, 24),
    st.integers(1, 10),
    st.data(),
)
def test_every_fill_holds_the_pods_and_lowers_the_price(some, targets, calm, most, data):
    """Only allowed pairs, no more nodes than said, no more load than there is, always for less money."""
    candidates, offers = nodes(*some, calm=calm), groups(*targets)
    allowed = np.array(
        data.draw(
            st.lists(
                st.lists(st.booleans(), min_size=len(targets), max_size=len(targets)),
                min_size=len(some),
                max_size=len(some),
            )
        ),
        np.bool_,
    )
    found = best_fill(candidates, offers, allowed, most)
    if found is None:
        return
    chosen = list(found.nodes)
    assert 1 <= len(set(chosen)) == len(chosen) <= most
    assert allowed[chosen, found.target].all()
    assert candidates.loads[chosen].sum() <= offers.stocks[found.target, 0]
    assert candidates.prices[chosen].sum() > offers.prices[found.target]
    assert found.value > 0
