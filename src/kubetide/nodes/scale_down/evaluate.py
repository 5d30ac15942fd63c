"""Which nodes are unneeded now, and why the others are not.

Source: Cluster Autoscaler, scale-down planner: eligibility, then removal simulated node by node.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubetide.nodes.scale_down.context import drain_context, owners_of
from kubetide.nodes.scale_down.drain_rules import DrainContext, Moves, Prepared, prepare, settle
from kubetide.nodes.scale_down.eligibility import (
    candidates,
    ignores_daemon_sets,
    local_delay_ends,
    refusal,
)
from kubetide.nodes.scale_down.facts import Cache, NodeFacts, Refusal
from kubetide.nodes.scale_down.memory import UnremovableNode
from kubetide.nodes.scale_down.pods import in_order, key_of
from kubetide.nodes.scale_down.removal import NoRoom, Simulation
from kubetide.nodes.scale_down.utilization import Utilization
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.ports.cloud import NodeGroup
from kubetide.units.time import Instant


@dataclass(frozen=True, slots=True)
class Removable:
    """A node that could go. ``risky``: its pods cannot all go at once without breaking a budget."""

    node: str
    group: str
    moves: Moves
    risky: bool
    utilization: Utilization


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the state says about all candidates.

    Attributes:
        candidates: How many nodes were looked at.
        removable: In the order in which they were simulated.
        unremovable: By node; nodes in no group and in groups at their minimum are not here.
        failed: Nodes whose simulation failed, which are not to be tried again for a while.
        not_simulated: Nodes whose removal was not tried, as enough were found before them.
        hints, rotation: For the next simulation.
        valid_until: When the passing of time alone may change something; None for never.
    """

    candidates: int
    removable: tuple[Removable, ...]
    unremovable: dict[str, UnremovableNode]
    failed: tuple[str, ...]
    not_simulated: tuple[str, ...]
    hints: dict[str, str]
    rotation: int
    valid_until: Instant | None


def evaluate(state: State, now: Instant, cache: Cache) -> Evaluation:
    """Find the unneeded nodes. Leaves the state as it was; the snapshot is forked and reverted."""
    memory = state.memory.scale_down
    recent = tuple(name for name, held in memory.unremovable.items() if held.until > now)
    key = (
        state.version,
        state.snapshot.version,
        state.settings,
        tuple(memory.unneeded),
        recent,
        tuple(memory.deletions),
        memory.hints,
        state.memory.rotation,
        unneeded_limit(state),
        tuple(state.groups) if state.settings.scale_down_delay_type_local else (),
        _local_delays(state, now),
    )
    if cache.enabled and cache.evaluation is not None:
        known_key, known = cache.evaluation
        assert isinstance(known, Evaluation)
        if known_key == key and (known.valid_until is None or now < known.valid_until):
            return known
    found = _evaluate(state, now, cache, dict.fromkeys(recent))
    cache.evaluation = (key, found)
    return found


def unneeded_limit(state: State) -> int:
    """Return how many removable nodes are searched for at most.

    Source: planner.unneededNodesLimit: twice the parallelism above what is unneeded already, and no
    more than can be removed within the unneeded time at the shortest interval between loops seen.
    """
    settings, memory = state.settings, state.memory.scale_down
    parallelism = settings.max_scale_down_parallelism
    shortest = memory.shortest_interval or settings.scale_down_unneeded_time or 1
    loops = settings.scale_down_unneeded_time // shortest
    return min(len(memory.unneeded) + 2 * parallelism, parallelism * loops + parallelism)


def remembered(verdict: UnremovableNode) -> str:
    """Return the sentence for a node that is not tried again yet: what stood in its way."""
    pod = f" {verdict.blocking_pod} ({verdict.blocking_reason})" if verdict.blocking_pod else ""
    return f"{verdict.reason}{pod}: {verdict.detail}"


def _local_delays(state: State, now: Instant) -> tuple[str, ...]:
    if not state.settings.scale_down_delay_type_local:
        return ()
    return tuple(group for group in state.groups if local_delay_ends(state, group, now) is not None)


def _evaluate(state: State, now: Instant, cache: Cache, recent: dict[str, None]) -> Evaluation:
    memory, settings = state.memory.scale_down, state.settings
    cache.forget_stale(settings, owners_of(state), state.node_devices(), state.nodes, state.pods)
    context = drain_context(state, now, cache.allowances(state.pdbs))
    facts: dict[str, NodeFacts] = {}
    groups = candidates(state, now)
    changes: list[Instant] = []
    for name, group in groups.items():
        fact = facts[name] = cache.facts(
            state.snapshot, name, context, ignore_daemon_sets=ignores_daemon_sets(group, settings)
        )
        if fact.valid_until is not None and fact.valid_until > now:
            changes.append(fact.valid_until)
        if fact.deleting_until is not None and fact.deleting_until > now:
            changes.append(fact.deleting_until)
    order = sorted(facts, key=lambda name: (not facts[name].empty, name not in memory.unneeded, name))
    run = _Run(state, context, groups, cache, changes)
    try:
        for name in order:
            if name in recent:
                detail = remembered(memory.unremovable[name].verdict)
                run.refuse(name, facts[name], "RecentlyUnremovable", detail, with_utilization=False)
                continue
            refused = _refused(facts[name], groups[name], cache, settings, now)
            if refused is not None:
                run.unremovable[name] = refused
            elif run.has_room_for_more():
                run.simulate(name, facts[name])
            else:
                run.not_simulated.append(name)
    finally:
        run.end()
    return Evaluation(
        candidates=len(order),
        removable=tuple(run.removable),
        unremovable={name: run.unremovable[name] for name in sorted(run.unremovable)},
        failed=tuple(sorted(run.failed)),
        not_simulated=tuple(run.not_simulated),
        hints=dict(sorted(run.simulation.hints.items())),
        rotation=run.simulation.rotation,
        valid_until=min(changes, default=None),
    )


def _refused(
    facts: NodeFacts, group: NodeGroup, cache: Cache, settings: Settings, now: Instant
) -> UnremovableNode | None:
    """Return why the node stays whatever its pods are, or None."""
    name = facts.node.metadata.name
    known = cache.refusals.get(name)
    if known is not None and known.facts is facts and known.group is group:
        return known.verdict
    refused = refusal(facts, group, settings, now)
    verdict = None
    if refused is not None:
        seen = facts.utilization if refused.reason == "NotUnderutilized" else None
        verdict = _unremovable(facts, group, refused.reason, refused.detail, seen)
    if facts.deleting_until is None or facts.deleting_until <= now:
        cache.refusals[name] = Refusal(facts, group, verdict)
    return verdict


def _unremovable(
    facts: NodeFacts, group: NodeGroup, reason: str, detail: str, utilization: Utilization | None
) -> UnremovableNode:
    return UnremovableNode(
        node=facts.node.metadata.name,
        group=group.id,
        reason=reason,
        detail=detail,
        utilization=utilization.value if utilization else None,
        resource=utilization.resource if utilization else "",
    )


class _Run:
    """One pass over the candidates, on a fork of the snapshot."""

    def __init__(
        self,
        state: State,
        context: DrainContext,
        groups: dict[str, NodeGroup],
        cache: Cache,
        changes: list[Instant],
    ) -> None:
        memory = state.memory.scale_down
        self._cache = cache
        self._changes = changes
        self._snapshot = state.snapshot
        self._context = context
        self._groups = groups
        self._limit = unneeded_limit(state)
        self._counted = 0
        self.removable: list[Removable] = []
        self.unremovable: dict[str, UnremovableNode] = {}
        self.failed: list[str] = []
        self.not_simulated: list[str] = []
        destinations = list(state.nodes)
        self._snapshot.fork()
        self.simulation = Simulation(state.snapshot, destinations, memory.hints, state.memory.rotation)
        for name in memory.deletions:
            self.simulation.close(name)

    def end(self) -> None:
        self._snapshot.revert()

    def has_room_for_more(self) -> bool:
        return self._counted < self._limit

    def refuse(
        self, name: str, facts: NodeFacts, reason: str, detail: str = "", *, with_utilization: bool = True
    ) -> None:
        utilization = facts.utilization if with_utilization else None
        self.unremovable[name] = _unremovable(facts, self._groups[name], reason, detail, utilization)

    def _prepared(self, name: str, facts: NodeFacts) -> Prepared:
        """Return what the rules say, also about pods that earlier candidates of this pass have moved here."""
        pods = self._snapshot.pods_on(name)
        if len(pods) == len(facts.seen):
            prepared = self._cache.prepared(facts, self._context)
            if prepared.valid_until is not None and prepared.valid_until > self._context.now:
                self._changes.append(prepared.valid_until)
            return prepared
        return prepare(in_order(name, pods), self._context)

    def simulate(self, name: str, facts: NodeFacts) -> None:
        """Try to remove the node: its pods must be drainable and find room; then they stay moved."""
        assert facts.utilization is not None
        moves = settle(self._prepared(name, facts), self._context)
        blocked = moves.blocked
        if blocked is not None:
            self.failed.append(name)
            self.unremovable[name] = UnremovableNode(
                node=name,
                group=self._groups[name].id,
                reason="BlockedByPod",
                blocking_pod="/".join(key_of(blocked.pod)),
                blocking_reason=blocked.answer.reason or "",
                detail=blocked.answer.detail,
                utilization=facts.utilization.value,
                resource=facts.utilization.resource,
            )
            return
        if moves.pods:
            try:
                self.simulation.move(name, moves.pods)
            except NoRoom as no_room:
                self.failed.append(name)
                self.refuse(name, facts, "NoPlaceToMovePods", no_room.detail)
                return
        allowances = self._context.allowances
        risky = not allowances.allow_together(moves.pods)
        allowances.take(moves.pods)
        self.simulation.remove(name)
        group = self._groups[name]
        if not (group.options and group.options.zero_or_max_node_scaling):
            self._counted += 1
        self.removable.append(Removable(name, group.id, moves, risky, facts.utilization))
