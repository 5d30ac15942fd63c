"""Nodes that come and go: short lives, and removals that were bought back."""

from __future__ import annotations

from bisect import bisect_left

from kubetide.simulate.outcome.timeline import Timeline
from kubetide.units.time import Duration, Instant, after, minutes

SOON: Duration = minutes(15)
"""Nodes that lived less, and removals that were bought back within it, are churn."""


def short_lived(timeline: Timeline) -> int:
    """Return how many nodes lived less than 15 minutes."""
    return sum(
        life.deleted is not None and life.deleted - life.created < SOON for life in timeline.node_lives
    )


def bought_back(timeline: Timeline) -> tuple[int, int]:
    """Return how many removals were followed within 15 minutes by an increase of the same group, and by how many nodes.

    An increase by one node counts for all removals before it, but it brings one node.
    """
    increases: dict[str, list[tuple[Instant, int]]] = {}
    for mark in timeline.marks:
        if mark.loop == "nodes" and mark.change > 0:
            increases.setdefault(mark.subject, []).append((mark.at, mark.change))
    removals: dict[str, list[Instant]] = {}
    for life in timeline.node_lives:
        if life.deleted is not None:
            removals.setdefault(life.group, []).append(life.deleted)
    followed = brought = 0
    for group, removed in removals.items():
        bought = [at for at, number in increases.get(group, ()) for _ in range(number)]
        taken = 0
        for at in sorted(removed):
            first = bisect_left(bought, at)
            followed += first < len(bought) and bought[first] <= after(at, SOON)
            taken = max(taken, first)
            if taken < len(bought) and bought[taken] <= after(at, SOON):
                brought += 1
                taken += 1
    return followed, brought
