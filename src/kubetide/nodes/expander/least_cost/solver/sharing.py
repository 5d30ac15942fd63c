"""How many pods of a spread constraint each domain gets, when as many as possible are placed."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.scheduling.pods.terms import SpreadConstraint


def share_out(
    counts: Sequence[int],
    *,
    raised: Sequence[int],
    fixed: Sequence[int],
    pods: int,
    rule: SpreadConstraint,
) -> list[int]:
    """Return the final number of pods per domain: the emptiest gets the next one, as long as the skew allows.

    Args:
        counts: How many there are now, by domain.
        raised: Domains that more can be placed in, in order of preference among equals.
        fixed: Other domains, which count for the least.
        pods: How many are to be placed.
        rule: The constraint, which counts the pods themselves.
    """
    found = list(counts)
    floor = min((counts[one] for one in fixed), default=None)
    domains = len(raised) + len(fixed)
    for _ in range(pods if raised else 0):
        lowest = min(raised, key=found.__getitem__)
        least = found[lowest] if floor is None else min(floor, found[lowest])
        if found[lowest] > rule.most(least, domains):
            break
        found[lowest] += 1
    return found
