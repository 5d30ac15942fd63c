"""Spare nodes: empty nodes that stay longer than --scale-down-unneeded-time because expected pods would need them.

What goes and is bought again soon costs a pod its wait and wins a few minutes of a node. A node is kept for as long as
buying it back counts for (--buy-back-price), and no longer: so a guess that fails costs no more than the purchase that it
would have saved. All of them together are bounded by the price of the fleet: where a node is a large part of it, the guess
is not worth its price.
"""

from __future__ import annotations

from kubetide.nodes.consolidation.keeping import EXPECTED
from kubetide.nodes.registry.failures import is_zero_or_max
from kubetide.nodes.scale_down.plan import Plan
from kubetide.nodes.scale_down.unneeded.eligibility import unneeded_time
from kubetide.nodes.state import State
from kubetide.units.time import Duration, Instant, after, format_duration, format_rfc3339

MOST_SHARE = 0.02
"""How much of the price of all nodes these nodes may cost together."""


def keep_spares(state: State, plan: Plan, now: Instant) -> None:
    """Take the empty nodes that expected pods would need out of scale-down's plan, cheap ones first."""
    if not state.settings.consolidation_enabled:
        return
    needed = dict.fromkeys(state.memory.consolidation.needed)
    some = [
        (_price(state, one.group), one)
        for one in plan.empty
        if one.node in needed
        and not state.health(one.node).unready
        and not is_zero_or_max(state.groups[one.group])
    ]
    if not some:
        return
    left = MOST_SHARE * sum(_price(state, state.group_of(name)) for name in state.nodes)
    for price, one in sorted(some, key=lambda pair: (pair[0], pair[1].node)):
        longest = Duration(
            unneeded_time(state.groups[one.group], state.settings) + state.settings.buy_back_price
        )
        until = after(state.memory.scale_down.unneeded[one.node], longest)
        if price > left:
            break
        if until < now or price <= 0:
            continue
        left -= price
        plan.empty.remove(one)
        hold = format_duration(state.settings.buy_back_price)
        detail = (
            "as many pods as usually come within that time would need it: it is kept for "
            f"{hold} more (--buy-back-price), until {format_rfc3339(until)}"
        )
        plan.waiting[one.node] = EXPECTED, detail


def _price(state: State, group: str | None) -> float:
    known = state.groups.get(group or "")
    return (known.price_per_hour or 0.0) if known is not None else 0.0
