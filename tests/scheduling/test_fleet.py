"""Fleets: a purchase obeys all limits, costs no less than the bound, and little more than the best there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.nodes.expander.least_cost.solver import Budget, FleetProblem, Meter, narrowed, solve
from kubetide.nodes.expander.least_cost.solver.problem import check, no_limits, placed_by, price_of

CLOSE = 1 + 1e-6


def problem(demand, requests, stock, prices, *, most=None, allowed=None, uses=None, left=None):
    offers = len(prices)
    limits = no_limits(offers)
    if uses is not None:
        limits = {"uses": np.array(uses, np.int64), "left": np.array(left, np.int64)}
    return FleetProblem(
        demand=np.array(demand, np.int64),
        requests=np.array(requests, np.int64),
        stock=np.array(stock, np.int64),
        prices=np.array(prices, np.float64),
        most=np.array(most or [1000] * offers, np.int64),
        allowed=np.ones((len(demand), offers), np.bool_) if allowed is None else np.array(allowed, np.bool_),
        **limits,
    )


@st.composite
def problems(draw, most_pods=30, most_nodes=8):
    classes, offers = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    row = lambda low, high, count: st.lists(st.integers(low, high), min_size=count, max_size=count)  # noqa: E731
    limited = draw(st.booleans())
    return problem(
        draw(row(1, most_pods, classes)),
        [[1, *one] for one in draw(st.lists(row(0, 9, 2), min_size=classes, max_size=classes))],
        [[8, *one] for one in draw(st.lists(row(0, 20, 2), min_size=offers, max_size=offers))],
        draw(row(0, 9, offers)),
        most=draw(st.lists(st.integers(0, most_nodes), min_size=offers, max_size=offers)),
        allowed=draw(
            st.lists(
                st.lists(st.booleans(), min_size=offers, max_size=offers), min_size=classes, max_size=classes
            )
        ),
        uses=[[1] * offers] if limited else None,
        left=[draw(st.integers(0, 12))] if limited else None,
    )


@settings(max_examples=100, deadline=None)
@given(problems(), st.sampled_from([Budget(0), Budget(3, 2, 5), Budget()]))
def test_a_fleet_obeys_stock_and_limits_and_is_above_its_bound(given_problem, budget):
    """No node holds more than it has, nothing passes a limit, and the price is not below the proven bound."""
    fleet = solve(given_problem, budget)
    assert check(given_problem, fleet.purchases) == ""
    placed = placed_by(given_problem, fleet.purchases)
    assert (fleet.unplaced == given_problem.demand - placed).all()
    assert fleet.price == pytest.approx(price_of(given_problem, fleet.purchases))
    assert fleet.bound <= fleet.price * CLOSE + 1e-9
    assert fleet.rounds <= budget.rounds


@settings(max_examples=40, deadline=None)
@given(problems())
def test_pods_are_left_out_only_where_no_node_may_be_added_for_them(given_problem):
    """A class that is left out fits no node that may still be bought, nor what is free on those bought."""
    fleet = solve(given_problem)
    nodes = np.zeros(len(given_problem.prices), np.int64)
    for one in fleet.purchases:
        nodes[one.pattern.offer] += one.nodes
        free = given_problem.stock[one.pattern.offer] - np.array(one.pattern.pods) @ given_problem.requests
        for index in np.flatnonzero(fleet.unplaced):
            allowed = given_problem.allowed[index, one.pattern.offer]
            assert not (allowed and (given_problem.requests[index] <= free).all())
    spare = given_problem.left - given_problem.uses @ nodes
    for index, offer in itertools.product(np.flatnonzero(fleet.unplaced), range(len(nodes))):
        may_add = nodes[offer] < given_problem.most[offer] and (given_problem.uses[:, offer] <= spare).all()
        assert not (may_add and given_problem.capacity[index, offer] > 0)


def least_price(one):
    """The least price for all pods by trying everything; None when they cannot all be placed."""
    best = None
    counts = [range(int(most) + 1) for most in one.most]
    for numbers in itertools.product(*counts):
        price = float(np.dot(one.prices, numbers))
        if (best is None or price < best) and fits(one, numbers):
            best = price
    return best


def fits(one, numbers):
    nodes = [(offer, tuple(one.stock[offer])) for offer, number in enumerate(numbers) for _ in range(number)]
    pods = [index for index, number in enumerate(one.demand) for _ in range(int(number))]
    seen = set()

    def rest_fits(at, free):
        if at == len(pods):
            return True
        state = (at, tuple(sorted(free)))
        if state in seen:
            return False
        seen.add(state)
        request = one.requests[pods[at]]
        for number, (offer, stock) in enumerate(free):
            if free.index((offer, stock)) < number or not one.allowed[pods[at], offer]:
                continue
            left = tuple(int(x) for x in np.array(stock) - request)
            if min(left) >= 0 and rest_fits(at + 1, [*free[:number], (offer, left), *free[number + 1 :]]):
                return True
        return False

    return rest_fits(0, nodes)


@settings(max_examples=60, deadline=None)
@given(problems(most_pods=3, most_nodes=3))
def test_the_bound_is_below_the_best_choice_there_is(given_problem):
    """The best of all choices, found by trying everything, is not below the bound; all are placed if they can be."""
    if given_problem.demand.sum() > 6 or len(given_problem.left):
        return
    least = least_price(given_problem)
    fleet = solve(given_problem)
    if least is not None and not fleet.unplaced.any():
        assert fleet.bound <= least * CLOSE + 1e-9
        assert fleet.price >= least - 1e-9


@given(problems(most_pods=3, most_nodes=3))
def test_offers_that_are_left_out_make_no_choice_more_expensive(given_problem):
    """The best of all choices costs the same without the offers that another makes useless."""
    if given_problem.demand.sum() > 6 or len(given_problem.left):
        return
    fewer, useful = narrowed(given_problem)
    assert len(useful)
    assert least_price(fewer) == pytest.approx(least_price(given_problem))


def test_only_an_offer_that_does_as_much_for_no_more_makes_another_useless():
    """The smaller, more expensive offer goes, and the second of two equals; another taker, a scarce one and a cheaper one stay."""
    stock = [[110, 8], [110, 4], [110, 8], [110, 4], [110, 4]]
    prices = [1.0, 1.1, 1.0, 0.9, 1.0]
    made = problem([3, 2], [[1, 2], [1, 1]], stock, prices, allowed=[[1, 1, 1, 1, 1], [1, 1, 1, 0, 1]])
    assert narrowed(made)[1].tolist() == [0, 3]
    scarce = problem([3, 2], [[1, 2], [1, 1]], stock[:2], prices[:2], most=[4, 9])
    assert narrowed(scarce)[1].tolist() == [0, 1]


def test_the_same_problem_gives_the_same_fleet():
    """Same problem and budget, same purchases."""
    draws = np.random.default_rng(7)
    made = problem(
        draws.integers(1, 30, 10),
        np.concatenate([np.ones((10, 1)), draws.integers(1, 40, (10, 2))], axis=1),
        [[110, 64, 64], [110, 64, 128], [110, 128, 64], [58, 32, 32]],
        [1.0, 1.3, 1.2, 0.55],
    )
    first, again = solve(made), solve(made)
    assert first.purchases == again.purchases
    assert (first.price, first.bound) == (again.price, again.bound)
    assert first.price < first.greedy_price
    assert first.gap < 0.05


def test_several_offers_are_cheaper_together():
    """Pods of memory go to the memory nodes, pods of cpu to the cpu nodes, in one choice, at the least price."""
    fleet = solve(problem([8, 8], [[1, 1, 8], [1, 4, 1]], [[110, 16, 16], [110, 4, 32]], [1.0, 0.7]))
    bought = {one.pattern.offer for one in fleet.purchases}
    assert bought == {0, 1}
    assert fleet.price <= fleet.greedy_price
    assert fleet.bound <= fleet.price


def test_columns_prove_more_than_the_relaxation():
    """Three pods of two thirds of a node need three nodes; the relaxation says two, the columns three."""
    made = problem([3], [[1, 2]], [[110, 3]], [1.0])
    assert solve(made, Budget(0)).bound == pytest.approx(2.0)
    fleet = solve(made)
    assert fleet.price == pytest.approx(3.0)
    assert fleet.bound == pytest.approx(3.0)
    assert fleet.bound_by == "column generation"


def test_one_node_that_is_needed_in_any_case_is_the_best_choice():
    """A demand that fits on the cheapest node for the largest pod needs no column generation to be proved best."""
    fleet = solve(problem([1, 2], [[1, 3], [1, 1]], [[110, 2], [110, 5], [110, 50]], [0.5, 1.0, 5.0]))
    assert [(one.pattern.offer, one.nodes) for one in fleet.purchases] == [(1, 1)]
    assert (fleet.price, fleet.bound, fleet.bound_by, fleet.rounds) == (1.0, 1.0, "one whole node", 0)


def many_classes():
    """Twenty classes of one to three pods on three offers: rounding off is an integer program of many columns."""
    draws = np.random.default_rng(7)
    requests = np.concatenate([np.ones((20, 1), np.int64), draws.integers(150, 2600, (20, 2))], axis=1)
    return problem(
        draws.integers(1, 9, 20),
        requests,
        [[110, 1930, 6900], [110, 3920, 14800], [58, 7910, 30500]],
        [0.107, 0.201, 0.437],
    )


@pytest.mark.parametrize("work", [0, 300, 1500])
def test_work_is_bounded_and_the_best_so_far_counts(work):
    """A search that is cut says so, costs no more than the greedy choice, and ends at the same place each time."""
    given_problem = many_classes()
    meter = Meter(work)
    fleet = solve(given_problem, Budget(), meter)
    assert fleet.cut
    assert meter.used <= work + 500
    assert fleet.price <= fleet.greedy_price
    assert check(given_problem, fleet.purchases) == ""
    again = solve(given_problem, Budget(work=work))
    assert (again.purchases, again.price, again.bound) == (fleet.purchases, fleet.price, fleet.bound)


def test_with_all_the_work_that_it_needs_nothing_is_cut():
    """With more work than is needed a search ends by itself, and finds nothing more expensive than with the usual budget."""
    given_problem = many_classes()
    meter = Meter(100_000)
    fleet = solve(given_problem, Budget(), meter)
    assert not fleet.cut
    assert meter.used < 20_000
    usual = solve(given_problem)
    assert usual.cut
    assert fleet.price <= usual.price < fleet.greedy_price
