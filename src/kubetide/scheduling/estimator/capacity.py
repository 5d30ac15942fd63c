"""How many pods of a class fit on rows, condition by condition: the arithmetic of estimates on a fork."""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.columns.counting import DomainTable
from kubetide.scheduling.filters.base import UNLIMITED, Term
from kubetide.scheduling.filters.inter_pod_terms import NearTerm, SpreadTerm
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.pods.resources import PODS
from kubetide.scheduling.snapshot.verdicts import Known
from kubetide.units.vectors import BoolVector, Int64Vector


def terms_of(known: Known) -> list[Term] | None:
    """Return all conditions of a class, or None if a plugin has none to give."""
    found: list[Term] = []
    for judge in known.judges:
        if judge.terms is None:
            return None
        found.extend(judge.terms)
    return found


def is_shared(term: Term) -> bool:
    """Return whether the group's pods change the verdict for all new nodes alike."""
    return term.counted and term.topology_key not in {HOSTNAME, ""}


def may_loosen(term: Term) -> bool:
    """Return whether one placed pod may admit others elsewhere: the first of its kind decides."""
    return isinstance(term, NearTerm) and term.is_first()


def places_of(term: SpreadTerm, first: int, last: int) -> Int64Vector:
    """Return how many pods the rows from first to last admit while the minimum stays unchanged."""
    codes = term.label.codes[first:last]
    places = np.maximum(0, term.most() + 1 - term.table.counts.take(codes))
    places[codes == 0] = 0
    # Nodes that take no part are not counted: their verdict does not change.
    outside = (term.table.codes[first:last] == 0) & (places > 0)
    places[outside] = UNLIMITED
    return places


def lowest_of(table: DomainTable, first: int, last: int | None = None) -> BoolVector:
    """Return whether each of the rows is in one of the least-filled domains."""
    codes = table.codes[first:last]
    lowest: BoolVector = (codes != 0) & (table.counts.take(codes) == table.minimum())
    return lowest


def capacity_by_amounts(known: Known, pod_class: PodClass, first: int, last: int) -> Int64Vector:
    """Return how many pods fit on the rows from first to last."""
    capacity = np.full(last - first, UNLIMITED, np.int64)
    if known.impossible:
        capacity[:] = 0
        return capacity
    amounts = {PODS: 1, **pod_class.requests}
    for key, column, least in known.gates:
        free = column.free[first:last]
        if isinstance(key, str):
            np.minimum(capacity, free // amounts[key], out=capacity)
        else:
            capacity[free < least] = 0
    if pod_class.ports:
        np.minimum(capacity, 1, out=capacity)
    return np.maximum(capacity, 0, out=capacity)
