"""Which nodes are unneeded now, and why the others are not.

Source: Cluster Autoscaler, scale-down planner: eligibility, then removal simulated node by node.
"""

from __future__ import annotations

from collections import deque
from contextlib import ExitStack

import msgspec

from kubetide.nodes.scale_down.context import drain_context, owners_of
from kubetide.nodes.scale_down.drain_rules import DrainContext, Moves, Prepared, prepare, settle
from kubetide.nodes.scale_down.facts import Cache, NodeFacts
from kubetide.nodes.scale_down.memory import UnremovableNode
from kubetide.nodes.scale_down.pods import in_order
from kubetide.nodes.scale_down.unneeded.candidate_order import candidate_order
from kubetide.nodes.scale_down.unneeded.candidates import known_candidates, unremovable
from kubetide.nodes.scale_down.unneeded.eligibility import local_delay_ends
from kubetide.nodes.scale_down.unneeded.removal import DoesNotFit, Simulation
from kubetide.nodes.scale_down.unneeded.utilization import Utilization
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.ports.cloud import NodeGroup
from kubetide.units.time import Instant


class Removable(msgspec.Struct, frozen=True):
    """A removable node. ``risky``: its pods cannot all be evicted at once within the budgets."""

    node: str
    group: str
    moves: Moves
    risky: bool
    utilization: Utilization


class Evaluation(msgspec.Struct, frozen=True):
    """The verdicts on all candidates.

    Attributes:
        candidates: How many nodes were looked at.
        removable: In the order in which they were simulated.
        unremovable: By node; nodes in no group and in groups at their minimum are not here.
        failed: Nodes whose simulation failed, which are not to be tried again for a while.
        not_simulated: Nodes whose removal was not tried, as enough were found before them, or the time was over.
        hints, rotation: For the next simulation.
        valid_until: When the passing of time alone may change something; None for never.
        cut: Whether the time for it was over before all was tried.
    """

    candidates: int
    removable: tuple[Removable, ...]
    unremovable: dict[str, UnremovableNode]
    failed: tuple[str, ...]
    not_simulated: tuple[str, ...]
    hints: dict[str, str]
    rotation: int
    valid_until: Instant | None
    cut: bool = False


class OpenEvaluation:
    """A partly done evaluation; later steps of the tick continue it. Until it ends the snapshot is forked."""

    def __init__(
        self, state: State, now: Instant, cache: Cache, key: object, recent: dict[str, None]
    ) -> None:
        memory = state.memory.scale_down
        self.begun = state.elapsed
        """How long the tick had taken when it began."""
        self._cache = cache
        self._key = key
        cache.forget_stale(
            state.settings,
            owners_of(state),
            state.owners_version,
            state.node_devices(),
            state.nodes,
            state.pods,
        )
        context = drain_context(state, now, cache.allowances(state.pdbs))
        self._known = known = known_candidates(state, now, cache, context)
        facts, changes = known.facts, [] if known.valid_until is None else [known.valid_until]
        self._changes = changes
        order = candidate_order(state, now, known, cache, context)
        self._left = deque(name for name in order if name in known.open and name not in recent)
        self._run = run = _Run(state, context, known.groups, cache, changes)
        for name in recent:
            if name in facts:
                detail = remembered(memory.unremovable[name].verdict)
                run.refuse(name, facts[name], "RecentlyUnremovable", detail, with_utilization=False)

    def go_on(self, most_pods: int | None) -> bool:
        """Try the next removals until all are tried or ``most_pods`` were checked; return whether all are tried.

        When a simulation fails the snapshot is left as it was before the evaluation.
        """
        with ExitStack() as on_failure:
            on_failure.callback(self._run.end)
            is_done = self._try_some(most_pods)
            on_failure.pop_all()
        return is_done

    def _try_some(self, most_pods: int | None) -> bool:
        run, looked_at = self._run, 0
        while self._left and run.is_below_limit():
            if most_pods is not None and looked_at >= most_pods:
                return False
            name = self._left.popleft()
            facts = self._known.facts[name]
            run.simulate(name, facts)
            looked_at += 1 + len(facts.seen)
        return True

    def end(self) -> Evaluation:
        """Return the evaluation; nodes whose removal was not tried are in ``not_simulated``."""
        run, cut = self._run, bool(self._left) and self._run.is_below_limit()
        run.end()
        found = Evaluation(
            candidates=len(self._known.facts),
            removable=tuple(run.removable),
            unremovable=in_name_order(self._known.refused, run.unremovable),
            failed=tuple(sorted(run.failed)),
            not_simulated=tuple(self._left),
            hints=run.hints,
            rotation=run.rotation,
            valid_until=min(self._changes, default=None),
            cut=cut,
        )
        if not cut:
            self._cache.evaluation = (self._key, found)
        return found


def evaluate(state: State, now: Instant, cache: Cache) -> Evaluation:
    """Return the evaluation. Leaves the state unchanged; the snapshot is forked and reverted."""
    found = begin_evaluation(state, now, cache)
    if isinstance(found, OpenEvaluation):
        found.go_on(None)
        return found.end()
    return found


def begin_evaluation(state: State, now: Instant, cache: Cache) -> Evaluation | OpenEvaluation:
    """Return the cached evaluation if it still holds; else a new one that has not started."""
    memory = state.memory.scale_down
    recent = tuple(name for name, held in memory.unremovable.items() if held.until > now)
    key = (
        state.version,
        state.snapshot.version,
        state.settings,
        memory.last_found,
        recent,
        tuple(memory.deletions),
        memory.hints,
        state.memory.rotation,
        state.memory.new_pods,
        unneeded_limit(state),
        tuple(state.groups) if state.settings.scale_down_delay_type_local else (),
        _local_delays(state, now),
    )
    if cache.enabled and cache.evaluation is not None:
        known_key, known = cache.evaluation
        assert isinstance(known, Evaluation)
        if known_key == key and (known.valid_until is None or now < known.valid_until):
            return known
    return OpenEvaluation(state, now, cache, key, dict.fromkeys(recent))


def unneeded_limit(state: State) -> int:
    """Return the largest number of removable nodes to search for.

    Source: planner.unneededNodesLimit: twice the parallelism above what is unneeded already, and no
    more than can be removed within the unneeded time at the shortest interval between loops seen.
    """
    settings, memory = state.settings, state.memory.scale_down
    parallelism = settings.max_scale_down_parallelism
    shortest = memory.shortest_interval or settings.scale_down_unneeded_time or 1
    loops = max(settings.scale_down_unneeded_time, shortest) // shortest
    return min(len(memory.unneeded) + 2 * parallelism, parallelism * loops + parallelism)


def remembered(verdict: UnremovableNode) -> str:
    """Return the sentence for a node that is not tried again yet: what blocked it."""
    pod = f" {verdict.blocking_pod} ({verdict.blocking_reason})" if verdict.blocking_pod else ""
    return f"{verdict.reason}{pod}: {verdict.detail}"


def _local_delays(state: State, now: Instant) -> tuple[str, ...]:
    if not state.settings.scale_down_delay_type_local:
        return ()
    return tuple(group for group in state.groups if local_delay_ends(state, group, now) is not None)


def in_name_order(
    refused: dict[str, UnremovableNode], found: dict[str, UnremovableNode]
) -> dict[str, UnremovableNode]:
    """Return all verdicts by name; ``refused`` is sorted already, and ``found`` overrides it."""
    if not found:
        return refused
    both = {**refused, **found}
    return {name: both[name] for name in sorted(both)}


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
        self._state = state
        self._simulation: Simulation | None = None
        self._snapshot.fork()

    @property
    def simulation(self) -> Simulation:
        """The removals of this pass; made for the first of them, as most ticks try none."""
        if self._simulation is None:
            memory = self._state.memory
            self._simulation = Simulation(
                self._snapshot,
                self._state.nodes,
                memory.scale_down.hints,
                memory.rotation,
                memory.new_pods,
            )
            for name in memory.scale_down.deletions:
                self._simulation.close(name)
        return self._simulation

    @property
    def hints(self) -> dict[str, str]:
        """The node of each pod that was moved, in order of the hint's key."""
        return {} if self._simulation is None else dict(sorted(self._simulation.hints.items()))

    @property
    def rotation(self) -> int:
        """Where the next search begins."""
        return self._state.memory.rotation if self._simulation is None else self._simulation.rotation

    def end(self) -> None:
        self._snapshot.revert()

    def is_below_limit(self) -> bool:
        return self._counted < self._limit

    def refuse(
        self, name: str, facts: NodeFacts, reason: str, detail: str = "", *, with_utilization: bool = True
    ) -> None:
        utilization = facts.utilization if with_utilization else None
        self.unremovable[name] = unremovable(facts, self._groups[name], reason, detail, utilization)

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
        """Try to remove the node: its pods must be drainable and fit elsewhere; then they stay moved."""
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
            except DoesNotFit as error:
                self.failed.append(name)
                self.refuse(name, facts, "NoPlaceToMovePods", error.detail)
                return
        allowances = self._context.allowances
        risky = not allowances.allow_together(moves.pods)
        allowances.take(moves.pods)
        self.simulation.remove(name)
        group = self._groups[name]
        if not (group.options and group.options.zero_or_max_node_scaling):
            self._counted += 1
        self.removable.append(Removable(name, group.id, moves, risky, facts.utilization))
