"""The cheapest new nodes for many pods: several offers at once, and how far from the least possible price.

``solve`` takes a ``FleetProblem`` and gives a ``Fleet``. Only pods that mind nothing but their own node can be reckoned so;
``diverse.Diverse`` chooses for pods that mind others too.
"""

from __future__ import annotations

from kubetide.scheduling.fleet.dominance import narrowed
from kubetide.scheduling.fleet.linear import has_solver
from kubetide.scheduling.fleet.problem import Budget, Fleet, FleetProblem, Meter, Pattern, Purchase
from kubetide.scheduling.fleet.rates import rates_of
from kubetide.scheduling.fleet.relaxation import relax
from kubetide.scheduling.fleet.solve import RELAXATION, solve

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
]
