"""The order in which removals of candidates are tried.

Source: Cluster Autoscaler, scale-down candidates sorting: empty nodes, then those whose pods must end by themselves,
then the others; of equals those first that were unneeded the last time. Its sort is not stable: of more than twelve
nodes equals change places, by how all nodes above their groups' minima compare, so these are all sorted here.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.nodes.scale_down.drain_rules import DrainContext
from kubetide.nodes.scale_down.facts import Cache, NodeFacts
from kubetide.nodes.scale_down.unneeded.candidates import Candidates
from kubetide.nodes.scale_down.unneeded.eligibility import ignores_daemon_sets, left_out
from kubetide.nodes.state import State
from kubetide.scheduling.estimator.unstable_sort import descending_order
from kubetide.units.time import Instant


def candidate_order(
    state: State, now: Instant, known: Candidates, cache: Cache, context: DrainContext
) -> list[str]:
    """Return the candidates' names in the order in which they are tried; nodes that cannot go are among them.

    They are sorted anew only when a rank has changed, or which nodes were unneeded the last time.
    """
    if len(known.open) < 2:
        return list(known.open)
    others = _facts_of_others(state, now, cache, context)
    found_last = frozenset(state.memory.scale_down.last_found)
    rests_on = found_last, {name: facts.rank for name, facts in others.items()}
    if known.order is None or known.order[0] != rests_on:
        known.order = rests_on, _sorted({**known.facts, **others}, found_last, known)
    return known.order[1]


def _sorted(facts: Mapping[str, NodeFacts], found_last: frozenset[str], known: Candidates) -> list[str]:
    names = sorted(facts)
    scores = [-2 * facts[name].rank - (name not in found_last) for name in names]
    return [name for name in map(names.__getitem__, descending_order(scores)) if name in known.facts]


def _facts_of_others(state: State, now: Instant, cache: Cache, context: DrainContext) -> dict[str, NodeFacts]:
    """Return the facts of the nodes that upstream sorts with the candidates and drops afterwards."""
    return {
        name: cache.facts(
            state.snapshot, name, context, ignore_daemon_sets=ignores_daemon_sets(group, state.settings)
        )
        for name, group in left_out(state, now).items()
    }
