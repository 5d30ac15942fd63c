"""``least-cost``: the group whose new nodes cost least per pod.

The name is kubetide's own. Later in a chain it is a filter like the others; as the first of the
chain it does more: what is bought is then planned over all groups at once (``nodes/expander/least_cost/buy.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.nodes.expander.base import Context, Option

LEAST_COST = "least-cost"


def least_cost(options: Sequence[Option], context: Context) -> list[Option]:
    """Return the options with the lowest price per pod; a group without a price counts as the most expensive."""
    del context
    least = min(_price_of_a_pod(option) for option in options)
    return [option for option in options if _price_of_a_pod(option) == least]


def _price_of_a_pod(option: Option) -> float:
    price = option.group.price_per_hour
    return float("inf") if price is None else price * option.nodes / len(option.pods)
