"""Groups of which consolidation may buy a node, and how many more nodes it may buy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kubetide.nodes.consolidation.idle import upcoming_without_pods
from kubetide.nodes.registry.arrivals import longest_join
from kubetide.nodes.registry.backoff import is_backed_off
from kubetide.nodes.registry.failures import is_zero_or_max
from kubetide.nodes.registry.stock_outs import is_out_of_stock
from kubetide.nodes.registry.view import GroupView
from kubetide.nodes.scale_up.choosing.options import skip_reasons
from kubetide.nodes.scale_up.increase.balancing import are_similar
from kubetide.nodes.scale_up.increase.headroom import headroom_of
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.nodes.templates.template import Template
from kubetide.ports.cloud import NodeGroup
from kubetide.units.time import Duration, Instant, after, before, hours, minutes
from kubetide.units.vectors import BoolVector

_OVERLAP: Duration = minutes(5)
"""How long old and new nodes are both paid where no node of the group was seen to join; a drain is among it."""
_DRAIN: Duration = minutes(2)


@dataclass(frozen=True, slots=True)
class Target:
    """A group of which one node may be bought."""

    group: str
    template: Template
    price: float
    overlap: float


def equal_stocks(
    templates: Mapping[str, Template | None], groups: Iterable[str], targets: Sequence[Target]
) -> dict[str, BoolVector]:
    """Return, by group, which targets' new nodes have just as much of everything as its own."""
    stocks = [dict(target.template.stock) for target in targets]
    found = {}
    for group in groups:
        own = templates.get(group)
        stock = None if own is None else dict(own.stock)
        found[group] = np.array([one == stock for one in stocks], np.bool_)
    return found


class Purchases:
    """The nodes that one search buys, within the maximum of each group and the limits of the cluster.

    Made before the search changes the snapshot: nodes that are to go are there until they have gone.
    """

    def __init__(self, state: State, tick: Tick, now: Instant) -> None:
        self._state = state
        self._tick = tick
        self._now = now
        self._new: dict[str, int] = {}
        self._nodes = len(state.snapshot)
        self._headroom = headroom_of(state, tick)
        self._awaited = [
            move.buy for move in state.memory.consolidation.moves if move.buy and not move.arrived
        ]

    def take(self, target: Target) -> None:
        """Count one more node of the group."""
        self._new[target.group] = self._new.get(target.group, 0) + 1
        self._headroom.take(target.template.node, 1)

    def nodes_left(self) -> int:
        """Return how many more nodes may be bought, by the limit of the cluster and by that of an hour."""
        state, settings = self._state, self._state.settings
        new = sum(self._new.values())
        lately = sum(number for at, number in state.memory.increases if at > before(self._now, hours(1)))
        most = settings.max_node_increases_per_hour - lately - new
        if settings.max_nodes_total:
            most = min(most, settings.max_nodes_total - self._nodes - new)
        return most

    def may_grow(self, target: Target) -> bool:
        """Return whether one more node of the group is within its maximum and the limits of the cluster."""
        return self._may_grow(self._state.groups[target.group], target.template)

    def alike(self, chosen: Target, targets: Sequence[Target]) -> list[int]:
        """Return the numbers of the targets that are as good as the chosen one, those with fewest nodes first.

        That is itself alone, but with --balance-similar-node-groups all of its price that are similar to it.
        """
        settings = self._state.settings
        found = [
            at
            for at, one in enumerate(targets)
            if one is chosen
            or (
                settings.balance_similar_node_groups
                and one.price == chosen.price
                and are_similar(chosen.template, one.template, settings)
            )
        ]
        return sorted(found, key=lambda at: (self._size(targets[at]), targets[at].group))

    def _size(self, target: Target) -> int:
        return self._state.groups[target.group].target_size + self._new.get(target.group, 0)

    def targets(self) -> list[Target]:
        """Return the groups of which a node may be bought, cheapest first."""
        state, tick = self._state, self._tick
        if self.nodes_left() <= 0:
            return []
        idle_soon = upcoming_without_pods(state, tick)
        found = []
        for group_id, view in tick.view.groups.items():
            group, template = state.groups[group_id], tick.templates.get(group_id)
            if template is None or group.price_per_hour is None or is_zero_or_max(group) or group.stale:
                continue
            deleted = state.memory.scale_down.last_delete_of.get(group_id)
            idle = idle_soon.get(group_id, 0) > self._awaited.count(group_id)
            if idle or group_id in state.memory.consolidation.removed_at:
                continue
            if deleted is not None and after(deleted, state.settings.buy_back_price) > self._now:
                continue
            skipped = self._is_skipped(group, view, template)
            if skipped or not view.healthy or not self._may_grow(group, template):
                continue
            joins = longest_join(state.memory, group_id)
            overlap = ((_OVERLAP if joins is None else joins) + _DRAIN) / hours(1)
            found.append(Target(group_id, template, group.price_per_hour, overlap))
        return sorted(found, key=lambda one: (one.price, one.group))

    def _may_grow(self, group: NodeGroup, template: Template) -> bool:
        awaited = self._awaited.count(group.id)
        return (
            group.target_size + self._new.get(group.id, 0) < group.max_size
            and self._headroom.cap(template.node, 1 + awaited) > awaited
        )

    def _is_skipped(self, group: NodeGroup, view: GroupView, template: Template) -> bool:
        state = self._state
        return is_out_of_stock(state, group, self._now) or bool(
            skip_reasons(
                view,
                group,
                template,
                self._headroom,
                backed_off=is_backed_off(state.memory.backoff.get(group.id), self._now),
                nodes=self._nodes,
                max_nodes_total=state.settings.max_nodes_total,
            )
        )
