"""Candidates for consolidation and the value of each: its price over its expected stay, less its disruption."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kubetide.nodes.consolidation.memory import pause_after
from kubetide.nodes.consolidation.settings import ConsolidationSettings
from kubetide.nodes.facts.new_pods import as_new
from kubetide.nodes.facts.nodes import TO_BE_DELETED, has_taint
from kubetide.nodes.registry.failures import is_zero_or_max
from kubetide.nodes.scale_down.context import drain_context
from kubetide.nodes.scale_down.drain_rules import DrainContext, Moves, Prepared, settle
from kubetide.nodes.scale_down.facts import NodeFacts
from kubetide.nodes.scale_down.unneeded.eligibility import candidates as eligible
from kubetide.nodes.scale_down.unneeded.eligibility import ignores_daemon_sets, is_disabled
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, ends_by_itself
from kubetide.ports.cloud import NodeGroup
from kubetide.scheduling import classify_unbound, node_allocatable
from kubetide.scheduling.pods.resources import PODS
from kubetide.units.time import Duration, Instant, after, between, hours, instant_of

_KEPT_BY_OWNER = ("NotReplicated", "NotSafeToEvictAnnotation")
"""Drain rules that keep a pod from being evicted, but not from ending."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that may be removed.

    Attributes:
        moves: The pods that need another place.
        evictions: How many of them are there: the others are planned, or reserve capacity.
        ending: Pods that may not be evicted and end by themselves: they are waited for.
        load: What all of these ask for, the number of pods among it.
        capacity: What the node offers.
        stay: Hours for which the node is expected to stay.
        disruption: What the evictions count for, and the node while pods that end by themselves are awaited.
    """

    name: str
    group: str
    facts: NodeFacts
    moves: Moves
    evictions: int
    ending: tuple[Pod, ...]
    load: Mapping[str, int]
    capacity: Mapping[str, int]
    price: float
    stay: float
    disruption: float

    @property
    def value(self) -> float:
        """The saving over the expected stay if no new node is needed."""
        return self.price * self.stay - self.disruption


def candidates(state: State, now: Instant, most: int) -> list[Candidate]:
    """Return at most ``most`` nodes that may be consolidated, highest value per eviction first.

    Those of scale-down (groups above their minimum, not on their way out, not disabled) that are ready, needed, as old as
    --scale-down-delay-after-add, and whose pods all may go or end by themselves soon enough.
    """
    context = drain_context(state, now, state.scale_down_cache.allowances(state.pdbs))
    found: list[Candidate] = []
    for *_, name, age in sorted(_hopeful(state, now)):
        if len(found) >= most:
            break
        one = candidate_of(state, name, state.groups[state.group_of(name) or ""], context, age)
        if one is not None and one.value > 0:
            found.append(one)
    return found


def _hopeful(state: State, now: Instant) -> Iterator[tuple[int, float, str, Duration]]:
    """Yield what nothing but its pods may keep: its turn, less its worth for each eviction, the node, its age."""
    settings, memory = state.settings, state.memory.consolidation
    busy = {name for move in memory.moves for name in move.nodes}
    turns, unneeded = memory.turns(), state.memory.scale_down.unneeded
    open_groups = {name: may_go(state, group, now) for name, group in state.groups.items()}
    for name, group in eligible(state, now).items():
        if not open_groups[group.id] or name in busy or name in unneeded or not is_open(state, name, now):
            continue
        age = age_of(state.nodes[name], now) or Duration(0)
        pods = len(state.snapshot.pods_on(name))
        stay = min(age, settings.consolidation_expected_stay) / hours(1)
        value = (group.price_per_hour or 0.0) * stay
        worth = (value - settings.consolidation_eviction_price * pods) / (1 + pods)
        yield turns.get(name, 0), -worth, name, age


def is_open(state: State, name: str, now: Instant) -> bool:
    """Return whether a node is old enough, ready, not disabled, not leaving, and no move or deletion of it failed lately."""
    node = state.nodes[name]
    age = age_of(node, now)
    if age is None or age < state.settings.scale_down_delay_after_add or is_disabled(node):
        return False
    if state.memory.consolidation.failed.get(name, now) > now or _has_failed_lately(state, name, now):
        return False
    return not (state.health(name).unready or has_taint(node, TO_BE_DELETED) or state.is_leaving(name))


def _has_failed_lately(state: State, name: str, now: Instant) -> bool:
    """Return whether the node's last deletion failed; the pause grows with each failure."""
    failed = state.memory.scale_down.failures.get(name)
    return failed is not None and after(failed.last, pause_after(failed.count)) > now


def candidate_of(
    state: State, name: str, group: NodeGroup, context: DrainContext, age: Duration
) -> Candidate | None:
    """Return a node as a candidate, or None where a pod blocks its removal."""
    settings: ConsolidationSettings = state.settings
    stay = min(age, settings.consolidation_expected_stay) / hours(1)
    price = group.price_per_hour or 0.0
    facts = facts_of(state, name, group, context)
    if facts.utilization is None:
        return None
    split = split_ending(state, facts, context)
    if split is None:
        return None
    moves, ending = split
    if not context.allowances.allow_together(moves.pods):
        return None
    if not moves.pods and not ending:
        return None  # scale-down's, once it has been unneeded for long enough
    if not end_soon(facts.node, ending, context.now):
        return None
    wait = max((age_of(pod, context.now) or 0 for pod in ending), default=0) / hours(1)
    there = (state.pods.get(key_of(pod)) for pod in moves.pods)
    evictions = sum(pod is not None and pod.spec.node_name == name for pod in there)
    disruption = settings.consolidation_eviction_price * evictions + price * wait
    return Candidate(
        name=name,
        group=group.id,
        facts=facts,
        moves=moves,
        evictions=evictions,
        ending=ending,
        load=load_of([as_new(pod, state.memory.new_pods) for pod in (*moves.pods, *ending)]),
        capacity=node_allocatable(facts.node),
        price=price,
        stay=stay,
        disruption=disruption,
    )


def facts_of(state: State, name: str, group: NodeGroup, context: DrainContext) -> NodeFacts:
    """Return scale-down's facts of a node."""
    ignores = ignores_daemon_sets(group, state.settings)
    return state.scale_down_cache.facts(state.snapshot, name, context, ignore_daemon_sets=ignores)


def split_ending(
    state: State, facts: NodeFacts, context: DrainContext
) -> tuple[Moves, tuple[Pod, ...]] | None:
    """Return the pods to evict and those expected to end by themselves; None where a pod blocks the removal."""
    moves, ending = _split(state, facts, context)
    return None if moves.blocked is not None else (moves, ending)


def waits_for_budget(state: State, facts: NodeFacts, context: DrainContext) -> bool:
    """Return whether the pod that blocks the removal does so for a PodDisruptionBudget, which may allow it soon."""
    blocked = _split(state, facts, context)[0].blocked
    return blocked is not None and blocked.answer.reason == "NotEnoughPdb"


def _split(state: State, facts: NodeFacts, context: DrainContext) -> tuple[Moves, tuple[Pod, ...]]:
    prepared = state.scale_down_cache.prepared(facts, context)
    ending = []
    others = []
    for pod, verdict in zip(prepared.pods, prepared.verdicts, strict=True):
        answer = verdict.answer
        waits = answer is not None and (
            answer.outcome == "wait"
            or (answer.outcome == "block" and answer.reason in _KEPT_BY_OWNER and ends_by_itself(pod))
        )
        if waits:
            ending.append(pod)
        else:
            others.append((pod, verdict))
    rest = Prepared(
        tuple(pod for pod, _ in others), tuple(verdict for _, verdict in others), prepared.valid_until
    )
    return settle(rest, context), tuple(ending)


def end_soon(node: Node, ending: Iterable[Pod], now: Instant) -> bool:
    """Return whether pods are expected to end within half of the node's stay: each runs as long again as so far."""
    age = age_of(node, now) or 0
    return all(2 * (age_of(pod, now) or 0) <= age for pod in ending)


def load_of(pods: Iterable[Pod]) -> dict[str, int]:
    """Return the sum of the pods' requests."""
    load = {PODS: 0}
    for pod in pods:
        load[PODS] += 1
        for name, amount in classify_unbound(pod).requests.items():
            if amount > 0:
                load[name] = load.get(name, 0) + amount
    return load


def age_of(thing: Node | Pod, now: Instant) -> Duration | None:
    """Return the age of an object; None without a creation time."""
    created = instant_of(thing.metadata.creation_timestamp)
    return None if created is None else between(created, now)


def may_go(state: State, group: NodeGroup, now: Instant) -> bool:
    """Return whether nodes of the group may be removed: it has a price, and none of it was bought back lately."""
    undone = state.memory.consolidation.undone.get(group.id)
    return (
        group.price_per_hour is not None
        and group.price_per_hour > 0
        and not is_zero_or_max(group)
        and (undone is None or undone.until <= now)
    )
