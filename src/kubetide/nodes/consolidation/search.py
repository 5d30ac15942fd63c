"""Which nodes to remove: removals without a new node, and sets of nodes that one cheaper new node replaces.

All of it is tried on a fork of the tick's snapshot, one after another, so that later moves know of earlier ones, and
the filters have the last word. Work is counted and not timed, so that a replay finds the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kubetide.nodes.consolidation.candidates import Candidate, candidates, load_of
from kubetide.nodes.consolidation.expected_pods import expected, place_expected
from kubetide.nodes.consolidation.feasible_groups import FeasibleGroups
from kubetide.nodes.consolidation.fills import (
    BoolMatrix,
    Candidates,
    Fill,
    Targets,
    best_fill,
    equivalents,
    fill_of,
)
from kubetide.nodes.consolidation.idle import idle_node_of
from kubetide.nodes.consolidation.keeping import kept_nodes
from kubetide.nodes.consolidation.limits import limits_beside_moves
from kubetide.nodes.consolidation.memory import Move
from kubetide.nodes.consolidation.overpriced import overpriced_nodes
from kubetide.nodes.consolidation.purchases import Purchases, Target, equal_stocks
from kubetide.nodes.facts.new_pods import as_new
from kubetide.nodes.scale_down.unneeded.removal import DoesNotFit, Simulation
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.objects.pod import Pod
from kubetide.scheduling import PodClass, classify_unbound
from kubetide.scheduling.pods.resources import PODS
from kubetide.units.time import Instant, between, hours

MOST_CANDIDATES = 1000
"""Most nodes that are looked at in one search: those whose removal is worth most for each eviction."""
_MOST_REMOVALS = 100
"""Most removals without a new node that are tried at a time: of overpriced nodes, and then of all."""
_MOST_FILLS = 20
"""Most new nodes that are tried in one search."""


@dataclass(slots=True)
class Search:
    """Results of one search; ``tried`` counts the simulations."""

    moves: list[Move] = field(default_factory=list)
    tried: int = 0


def find_moves(state: State, tick: Tick, now: Instant, most_nodes: int) -> Search:
    """Return the moves worth their disruption, over at most ``most_nodes``. Leaves the snapshot unchanged."""
    found = Search()
    if most_nodes <= 0:
        return found
    memory = state.memory.consolidation
    turns = memory.turns()
    some = candidates(state, now, MOST_CANDIDATES)
    some.sort(key=lambda one: (turns.get(one.name, 0), *_by_disruption(one)))
    if not some:
        return found
    state.snapshot.fork()
    feasible = FeasibleGroups(state.snapshot, tick.templates)
    try:
        searching = _Searching(state, tick, now, some, most_nodes, found, feasible)
        searching.run()
    finally:
        state.snapshot.revert()
        feasible.forget()
    # What never moves must not keep others from being tried.
    if searching.has_untried_removals:
        memory.note_tried(searching.in_vain)
    elif len(some) >= MOST_CANDIDATES:
        memory.note_tried([one.name for one in some])
    else:
        memory.tried = ()
    memory.refused = tuple(searching.refused) if searching.has_untried_fills else ()
    return found


def _by_disruption(one: Candidate) -> tuple[float, str]:
    return -one.value / (1 + one.evictions), one.name


class _Searching:
    def __init__(
        self,
        state: State,
        tick: Tick,
        now: Instant,
        some: Sequence[Candidate],
        most_nodes: int,
        found: Search,
        feasible: FeasibleGroups,
    ) -> None:
        self._state = state
        self._tick = tick
        self._now = now
        self._some = {one.name: one for one in some}
        self._left = most_nodes
        self._purchases = Purchases(state, tick, now)
        self._found = found
        self._snapshot = state.snapshot
        in_flight = state.memory.scale_down.deletions
        self._limits = limits_beside_moves(state, now)
        self._simulation = Simulation(
            state.snapshot,
            list(state.nodes),
            state.memory.scale_down.hints,
            state.memory.rotation,
            state.memory.new_pods,
        )
        moving = (name for move in state.memory.consolidation.moves for name in (*move.nodes, move.into))
        self._closed: dict[str, None] = dict.fromkeys((*in_flight, *moving))
        # Nodes that are to go themselves are no place for others' pods.
        for name in (*self._closed, *state.memory.scale_down.unneeded):
            self._simulation.close(name)
        # Scale-down removes unneeded nodes for nothing: limits that keep some nodes are reached by these first.
        for name in state.memory.scale_down.unneeded:
            if name in state.nodes and name not in self._closed:
                self._limits.take(name, ())
        last = state.memory.last_scale_up or state.memory.started or now
        # So long nothing has been bought for pods: so long, it is expected, nothing will be.
        self._calm = between(last, now) / hours(1)
        self._visited: dict[str, None] = {}
        """Nodes that have pods only in this search: expected ones, and such as moves have put there."""
        self._overpriced: dict[str, None] = {}
        self._feasible = feasible
        self._classes: dict[str, dict[PodClass, None]] = {}
        """By node, of the pods that are on it."""
        self.refused = dict.fromkeys(state.memory.consolidation.refused)
        """Nodes and groups whose new node does not take the node's pods, as the filters have it."""
        self.in_vain: dict[str, None] = {}
        self.has_untried_removals = self.has_untried_fills = False
        """Whether some were not tried, as enough others were."""

    def run(self) -> None:
        """Overpriced nodes first. Removals come before purchases: what fits on nodes that are there needs no new one."""
        targets = self._purchases.targets()
        self._keep_for_expected()
        self._removals(targets, [one for one in self._some.values() if one.name in self._overpriced])
        self._fills(targets, 0.0)
        self._removals(targets, list(self._some.values()))
        self._fills(targets, self._calm)

    def _removals(self, targets: Sequence[Target], some: Sequence[Candidate]) -> None:
        """Take the nodes that are worth removing and whose pods fit on nodes that are there."""
        if not some:
            return
        tried = 0
        for one, worth in zip(some, self._worth_removing(some, targets), strict=True):
            if worth and self._left > 0 and self._may_go(one):
                if tried == _MOST_REMOVALS:
                    self.has_untried_removals = True
                    break
                tried += 1
                self._remove(one)

    def _fills(self, targets: Sequence[Target], calm: float) -> None:
        """Take new nodes as long as there are good ones; with no calm those that cost less for the same capacity."""
        for _ in range(_MOST_FILLS):
            if self._left <= 0 or self._purchases.nodes_left() <= 0 or not targets or not self._some:
                break
            if not self._fill(targets, calm):
                break
        else:
            self.has_untried_fills = True

    def _keep_for_expected(self) -> None:
        """Close overpriced nodes to the pods of others, and put expected pods onto the nodes that are open."""
        templates = self._tick.templates
        self._overpriced = dict.fromkeys(overpriced_nodes(self._state, templates, self._feasible))
        for name in self._overpriced:
            self._simulation.close(name)
        pods = expected(self._state, templates, self._now)
        self._visited.update(
            dict.fromkeys(place_expected(self._snapshot, pods, self._simulation.open_rows()))
        )

    def _load(self, one: Candidate) -> tuple[Pod, ...]:
        """Return the pods that need another place when the node goes, with those that are on it only in this search."""
        new_pods = self._state.memory.new_pods
        own = tuple(as_new(pod, new_pods) for pod in (*one.moves.pods, *one.ending))
        if one.name not in self._visited:
            return own
        known = self._state.pods
        visitors = (
            pod
            for pod in self._snapshot.pods_on(one.name)
            if (there := known.get(key_of(pod))) is None or there.spec.node_name != one.name
        )
        return (*own, *visitors)

    def _worth_removing(self, some: Sequence[Candidate], targets: Sequence[Target]) -> list[bool]:
        """Return which of the candidates are worth removing without a new node.

        After the calm their capacity is expected to be bought back, as cheaply as it is had, and pods to wait for it.
        """
        columns, stocks = self._columns(some, targets)
        again = equivalents(columns, stocks).min(axis=1, initial=np.inf)
        again = np.minimum(again, columns.prices)
        missing = np.maximum(columns.stays - columns.calms, 0.0)
        back = np.where(missing > 0, missing + self._state.settings.buy_back_price / hours(1), 0.0)
        worth = columns.values - again * back > 0
        return [
            bool(good) and not kept_nodes(self._state, one.group)
            for one, good in zip(some, worth, strict=True)
        ]

    def _may_go(self, one: Candidate) -> bool:
        return not self._limits.refusal(one.name, one.moves.pods)

    def _take(self, some: Sequence[Candidate], target: Target | None, saving: float, into: str = "") -> None:
        for one in some:
            del self._some[one.name]
            self._limits.take(one.name, one.moves.pods)
            self._closed[one.name] = None
            self._simulation.close(one.name)
            self._left -= 1
        if target is not None:
            self._purchases.take(target)
        self._found.moves.append(
            Move(
                nodes=tuple(one.name for one in some),
                since=self._now,
                buy="" if target is None else target.group,
                into=into,
                saving=round(saving, 6),
                evictions=sum(one.evictions for one in some),
                removed=tuple(dict.fromkeys(one.group for one in some)),
            )
        )

    def _remove(self, one: Candidate) -> None:
        self._found.tried += 1
        try:
            moved = self._simulation.move(one.name, self._load(one))
        except DoesNotFit:
            self.in_vain[one.name] = None
            return
        self._visited.update(dict.fromkeys(moved.values()))
        self._simulation.remove(one.name)
        self._take([one], None, one.price)

    # ── new nodes ──

    def _fill(self, targets: Sequence[Target], calm: float) -> bool:
        """Find the best new node for some of the candidates, and take it if the filters agree; False at the end."""
        some = [one for one in self._some.values() if self._may_go(one)]
        targets = [one for one in targets if self._purchases.may_grow(one)]
        if not some or not targets:
            return False
        columns, stocks = self._columns(some, targets)
        columns = columns._replace(calms=np.minimum(columns.calms, calm))
        allowed = self._allowed(some, targets, columns, stocks)
        fill = best_fill(columns, stocks, allowed, self._left)
        if fill is None:
            return False
        fill = self._balanced(fill, targets, columns, stocks, allowed)
        self._found.tried += 1
        target = targets[fill.target]
        idle = idle_node_of(self._state, target.group, self._closed)
        self._snapshot.fork()
        placed = self._place(fill, some, target, idle)
        # Where not all of them fit together, some of them may still be worth a new node.
        taken: Fill | None = fill
        if len(placed) < len(fill.nodes):
            same = equivalents(columns, stocks)[:, fill.target]
            taken = fill_of(columns, stocks, fill.target, placed, same)
        if taken is None:
            self._snapshot.revert()
            # What arithmetic takes and the filters refuse is not tried again in this search.
            self.refused.update(
                dict.fromkeys((some[at].name, target.group) for at in fill.nodes if at not in placed)
            )
            return True
        self._snapshot.commit()
        chosen = [some[at] for at in taken.nodes]
        saving = sum(one.price for one in chosen) - target.price
        if idle is not None:
            self._closed[idle] = None
        self._take(chosen, target if idle is None else None, saving, idle or "")
        return True

    def _balanced(
        self,
        fill: Fill,
        targets: Sequence[Target],
        columns: Candidates,
        stocks: Targets,
        allowed: BoolMatrix,
    ) -> Fill:
        """Return the fill with a node of the group that has the fewest among those that are as good.

        A group that has an empty node comes first: its node costs nothing more.
        """
        alike = self._purchases.alike(targets[fill.target], targets)
        if len(alike) == 1:
            return fill
        alike.sort(key=lambda at: idle_node_of(self._state, targets[at].group, self._closed) is None)
        same, nodes = equivalents(columns, stocks), list(fill.nodes)
        load = columns.loads[nodes].sum(axis=0)
        for at in alike:
            # The nodes of similar groups may be a little smaller.
            if not allowed[nodes, at].all() or (load > stocks.stocks[at]).any():
                continue
            found = fill_of(columns, stocks, at, nodes, same[:, at])
            if found is not None:
                return found
        return fill

    def _place(self, fill: Fill, some: Sequence[Candidate], target: Target, idle: str | None) -> list[int]:
        """Put the pods of the fill's nodes on a new node of the group, or on an idle one; return the nodes that all limits and filters let go."""
        name = idle or f"{target.template.node.metadata.name}-consolidated-{len(self._found.moves):04d}"
        if idle is None:
            self._snapshot.add_template(target.template.node, target.template.pods, name)
        limits = self._limits.copy()
        placed = []
        for at in fill.nodes:
            one = some[at]
            if not limits.refusal(one.name, one.moves.pods) and self._put(self._load(one), name):
                limits.take(one.name, one.moves.pods)
                placed.append(at)
        return placed

    def _put(self, pods: Sequence[Pod], name: str) -> bool:
        """Put pods that are on other nodes on this one; where it does not take all of them they stay."""
        self._snapshot.fork()
        for pod in pods:
            self._snapshot.remove_pod(key_of(pod))
        for pod in pods:
            pod_class = classify_unbound(pod)
            if not self._snapshot.fits(pod_class, name):
                self._snapshot.revert()
                return False
            self._snapshot.add_pod(pod, name, pod_class)
        self._snapshot.commit()
        return True

    def _columns(self, some: Sequence[Candidate], targets: Sequence[Target]) -> tuple[Candidates, Targets]:
        loads = [load_of(self._load(one)) if one.name in self._visited else one.load for one in some]
        names = list(dict.fromkeys(name for load in loads for name in load))
        columns = Candidates(
            prices=np.array([one.price for one in some]),
            stays=np.array([one.stay for one in some]),
            disruptions=np.array([one.disruption for one in some]),
            loads=np.array([[load.get(name, 0) for name in names] for load in loads], np.float64),
            capacities=np.array(
                [[0 if name == PODS else one.capacity.get(name, 0) for name in names] for one in some],
                np.float64,
            ),
            # Waiting for pods keeps a node's free capacity from all others: that must be for a cheaper machine.
            calms=np.array([0.0 if one.ending else self._calm for one in some]),
        )
        stocks = Targets(
            prices=np.array([one.price for one in targets], np.float64),
            stocks=np.array(
                [[one.template.stock.get(name, 0) for name in names] for one in targets], np.float64
            ).reshape(len(targets), len(names)),
            overlaps=np.array([one.overlap for one in targets], np.float64),
        )
        return columns, stocks

    def _allowed(
        self, some: Sequence[Candidate], targets: Sequence[Target], columns: Candidates, stocks: Targets
    ) -> BoolMatrix:
        """Return (nodes, groups) where the pods of a node may run on a new one that is not its equal."""
        fits = (columns.loads[:, None, :] <= stocks.stocks[None]).all(axis=2)
        fits &= columns.values[:, None] > 0
        groups = {target.group: at for at, target in enumerate(targets)}
        numbers = np.array([self._feasible.number_of[target.group] for target in targets])
        among = np.zeros(len(self._feasible.number_of), np.bool_)
        same_stock = equal_stocks(self._tick.templates, {one.group for one in some}, targets)
        for row, one in enumerate(some):
            allowed = fits[row]
            # A row of the matrix: what is changed here is changed there.
            allowed &= ~(same_stock[one.group] & (stocks.prices >= one.price))
            if one.group in groups:
                allowed[groups[one.group]] = False
            if allowed.any():
                among[numbers] = allowed
                allowed &= self._feasible.for_all(self._classes_of(one), among)[numbers]
        rows = {one.name: at for at, one in enumerate(some)}
        for name, group in self.refused:
            if name in rows and group in groups:
                fits[rows[name], groups[group]] = False
        return fits

    def _classes_of(self, one: Candidate) -> dict[PodClass, None]:
        found = self._classes.get(one.name)
        if found is None or one.name in self._visited:
            found = self._classes[one.name] = dict.fromkeys(map(classify_unbound, self._load(one)))
        return found
