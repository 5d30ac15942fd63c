"""What amounts are worth, and how pods are shared out over domains: against the relaxation and against trying."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling.test_fleet import CLOSE, problems

from kubetide.nodes.expander.least_cost.solver import Budget, rates_of, relax, solve
from kubetide.nodes.expander.least_cost.solver.sharing import share_out
from kubetide.objects.meta import LabelSelector
from kubetide.objects.pod import TopologySpreadConstraint
from kubetide.scheduling.pods.terms import compile_spread


def patterns_of(problem):
    numbers = {}
    return [numbers.setdefault(row.tobytes(), len(numbers)) for row in problem.allowed]


@settings(max_examples=100, deadline=None)
@given(problems())
def test_rates_bound_every_choice(problem):
    """The price by resource is not above that of the relaxation where all can be placed; no node holds more than is promised."""
    found = rates_of(problem, patterns_of(problem), may_leave_out=False)
    relaxed = relax(problem, may_leave_out=False)
    if np.isfinite(relaxed.price):
        assert found.price <= relaxed.price * CLOSE + 1e-6
    fleet = solve(problem, Budget(0))
    for pattern, _ in fleet.purchases:
        worth = float(found.worth @ np.array(pattern.pods, np.float64))
        assert worth <= found.promise[pattern.offer] * max(problem.prices[pattern.offer], 1e-9) * CLOSE + 1e-6


COUNTS = st.lists(st.integers(0, 6), min_size=2, max_size=6)


@given(
    counts=COUNTS,
    raised=st.integers(0, 5),
    pods=st.integers(0, 25),
    max_skew=st.integers(1, 3),
    min_domains=st.integers(1, 6),
)
def test_shares_are_what_placing_one_by_one_on_the_emptiest_comes_to(
    counts, raised, pods, max_skew, min_domains
):
    """Each step obeys the skew as the filter computes it; a pod that is not placed fits nowhere."""
    domains = range(1, len(counts))
    open_ones, fixed = list(domains)[:raised], list(domains)[raised:]
    given = TopologySpreadConstraint(
        label_selector=LabelSelector(),
        max_skew=max_skew,
        min_domains=min_domains,
        topology_key="zone",
        when_unsatisfiable="DoNotSchedule",
    )
    (rule,) = compile_spread([given], {})
    found = share_out(counts, raised=open_ones, fixed=fixed, pods=pods, rule=rule)
    assert found[0] == counts[0]
    assert all(found[one] == counts[one] for one in fixed)

    def takes(now, domain):
        least = min(now[one] for one in domains) if len(domains) >= min_domains else 0
        return now[domain] + 1 - least <= max_skew

    now = list(counts)
    while now != found:
        domain = min((one for one in domains if now[one] < found[one]), key=now.__getitem__)
        assert takes(now, domain)
        now[domain] += 1
    placed = sum(found) - sum(counts)
    assert placed <= pods
    if placed < pods:
        assert not any(takes(found, one) for one in open_ones)
