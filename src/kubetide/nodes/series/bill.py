"""``kubetide_nodes_cost_total`` and its bound: what the nodes of groups cost, and the least that their pods cost.

Both are integrals from the process's beginning; the rise of one divided by that of the other is the cost ratio of a stretch of time.
The bound is that of a run's summary: of what the pods on the nodes ask for, the most expensive resource at its cheapest price.
"""

from __future__ import annotations

from kubetide.nodes.state import State
from kubetide.nodes.templates.build import all_templates
from kubetide.scheduling import node_allocatable
from kubetide.units.exposition import Registry
from kubetide.units.time import Duration, Instant, after, hours, minutes, to_seconds

_EVERY = minutes(5)
"""How often the bound is worked out, as that looks at every node."""
_GAP = hours(1)
"""Time without a tick that is longer counts for nothing: nobody knows what was there."""


class BillSeries:
    """The two counters; both leave groups without a price out."""

    def __init__(self, registry: Registry) -> None:
        self._cost = registry.counter(
            "kubetide_nodes_cost_total", "What the nodes of groups with a price have cost since the start."
        )
        self._bound = registry.counter(
            "kubetide_nodes_cost_bound_total",
            "What the pods on these nodes cost at least, on any nodes of the groups.",
        )
        self._last: Instant | None = None
        self._due: Instant | None = None
        self._rates = (0.0, 0.0)
        """Cost and bound an hour, as they have been since the last tick."""

    def update(self, state: State, now: Instant) -> None:
        """Count a tick that has observed nodes and groups."""
        prices = {
            name: group.price_per_hour
            for name, group in state.groups.items()
            if group.price_per_hour is not None
        }
        if not prices:
            self._last = None
            return
        if self._last is not None and 0 < now - self._last <= _GAP:
            share = to_seconds(Duration(now - self._last)) / 3600
            self._cost.add(self._rates[0] * share)
            self._bound.add(self._rates[1] * share)
        self._last = now
        bound = self._rates[1]
        if self._due is None or now >= self._due:
            bound, self._due = bound_per_hour(state, prices), after(now, _EVERY)
        self._rates = sum(state.groups[name].target_size * price for name, price in prices.items()), bound


def bound_per_hour(state: State, prices: dict[str, float]) -> float:
    """Return the least hourly price of the pods on nodes of these groups."""
    least = 0.0
    snapshot = state.snapshot
    rows = [row for row, name in enumerate(snapshot.node_names) if state.group_of(name) in prices]
    offers = {
        name: node_allocatable(template.node)
        for name, template in all_templates(state).items()
        if template is not None and name in prices
    }
    for resource in {resource for offered in offers.values() for resource in offered}:
        column = snapshot.column(resource)
        per_unit = [
            prices[name] / offered[resource] for name, offered in offers.items() if offered.get(resource)
        ]
        if column is not None and per_unit:
            allocatable, free = column
            least = max(least, float((allocatable[rows] - free[rows]).sum()) * min(per_unit))
    return least
