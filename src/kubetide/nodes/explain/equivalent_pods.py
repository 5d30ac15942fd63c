"""One explanation for equivalent pods, in few words: its change helps all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kubetide.nodes.explain.answers import PodExplanation, explain_pod
from kubetide.nodes.explain.waiting.counterfactual import CopyOnDemand
from kubetide.nodes.explain.waiting.limit_changes import LIMITS
from kubetide.nodes.state import State
from kubetide.objects.meta import Key
from kubetide.units.time import Instant

_SHARED: Final = LIMITS | {"label"}
"""Kinds of changes after which equivalent pods share the group's new nodes, so that limits may not do for all."""

_MOST_REFUSALS: Final = 5
_MOST_NAMES: Final = 3
"""Refusals that are listed, and groups that are named of each; `kubetide explain pod` has them all."""


def refusals_text(found: PodExplanation) -> str:
    """Return what groups that exist say to a pod, first the one that a change would make take it."""
    best = "" if found.way_out is None else found.way_out.group
    refusing = [one for one in found.groups if one.why and not one.would_be]
    refusing.sort(key=lambda one: one.group != best)
    by_why: dict[str, list[str]] = {}
    for one in refusing:
        by_why.setdefault(one.why, []).append(one.group)
    said = [f"{_named(groups)}: {why}" for why, groups in list(by_why.items())[:_MOST_REFUSALS]]
    if (left := sum(map(len, list(by_why.values())[_MOST_REFUSALS:]))) > 0:
        said.append(f"and {left} more {'group' if left == 1 else 'groups'}")
    return "; ".join(said)


def _named(groups: Sequence[str]) -> str:
    left = len(groups) - _MOST_NAMES
    if left <= 0:
        return ", ".join(groups)
    return f"{', '.join(groups[:_MOST_NAMES])} and {left} more {'group' if left == 1 else 'groups'}"


def explain_equivalent_pods(
    state: State, keys: Sequence[Key], now: Instant, shared_copy: CopyOnDemand | None = None
) -> PodExplanation:
    """Return the explanation of the first of equivalent pods, with the smallest change that helps all of them.

    Args:
        state: What is decided on, which is only read.
        keys: Of pods of one workload that wait, in any order.
        now: The time of the decision.
        shared_copy: The copy of the same state and time that explanations of other pods use, too; None for one of its own.
    Raises: KeyError for an unknown pod.
    """
    shared_copy = shared_copy or CopyOnDemand(state, now)
    first, last = min(keys), max(keys)
    found = explain_pod(state, first, now, share_ways_out=True, shared_copy=shared_copy)
    way_out = found.way_out
    shares = (
        any(one.kind in _SHARED for one in way_out.changes)
        if way_out is not None
        else found.status in {"waits", "helped"}
    )
    if first == last or not shares:
        return found
    # One node more is enough for the first pod; the last one says how many all of them need.
    of_last = explain_pod(state, last, now, share_ways_out=True, shared_copy=shared_copy)
    if way_out is None:
        return of_last if of_last.status == "refused" else found
    if of_last.way_out is None or of_last.way_out.group != way_out.group:
        return found
    return replace(found, way_out=of_last.way_out, sentence=of_last.sentence)
