"""How many pods of a spread constraint each domain comes to have, when as many as can be are placed."""

from __future__ import annotations

from collections.abc import Sequence


def share_out(
    counts: Sequence[int],
    *,
    raised: Sequence[int],
    fixed: Sequence[int],
    pods: int,
    max_skew: int,
    min_domains: int,
) -> list[int]:
    """Return by domain how many pods it has in the end: the emptiest gets the next, as long as the skew allows.

    Args:
        counts: How many there are now, by domain.
        raised: Domains that more can be placed in, in order of preference among equals.
        fixed: Other domains, which count for the least.
        pods: How many are to be placed.
        max_skew: Most that a domain may have above the least, after one more is placed.
        min_domains: With fewer domains than this the least is taken for 0.
    """
    found = list(counts)
    floor = min((counts[one] for one in fixed), default=None)
    enough = len(raised) + len(fixed) >= min_domains
    for _ in range(pods if raised else 0):
        lowest = min(raised, key=found.__getitem__)
        least = found[lowest] if floor is None else min(floor, found[lowest])
        if found[lowest] + 1 - (least if enough else 0) > max_skew:
            break
        found[lowest] += 1
    return found
