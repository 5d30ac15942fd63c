"""The cheapest new nodes for many pods over several offers, and the gap to the lower bound of the price.

``solve`` takes a ``FleetProblem`` and returns a ``Fleet``. Only pods without inter-pod rules can be planned for so;
``diverse.Diverse`` chooses for pods with inter-pod rules too.
"""

from __future__ import annotations

from kubetide.nodes.expander.least_cost.solver.dominance import narrowed
from kubetide.nodes.expander.least_cost.solver.linear import has_solver
from kubetide.nodes.expander.least_cost.solver.problem import (
    Budget,
    Fleet,
    FleetProblem,
    Meter,
    Pattern,
    Purchase,
    with_smaller_first,
)
from kubetide.nodes.expander.least_cost.solver.rates import rates_of
from kubetide.nodes.expander.least_cost.solver.relaxation import relax
from kubetide.nodes.expander.least_cost.solver.solve import RELAXATION, solve

__all__ = [
    "RELAXATION",
    "Budget",
    "Fleet",
    "FleetProblem",
    "Meter",
    "Pattern",
    "Purchase",
    "has_solver",
    "narrowed",
    "rates_of",
    "relax",
    "solve",
    "with_smaller_first",
]
