"""Which unneeded nodes are removed now: times, sizes, limits, budgets.

Source: Cluster Autoscaler, unneeded nodes' RemovableAt, atomic resize filter, scale-down budgets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from types import MappingProxyType

import msgspec

from kubetide.nodes.facts.node_capacity import used_by
from kubetide.nodes.facts.nodes import is_being_deleted, is_virtual_kubelet, readiness
from kubetide.nodes.scale_down.deletion.deletions import NOT_MARKED
from kubetide.nodes.scale_down.unneeded.eligibility import unneeded_time, unready_time
from kubetide.nodes.scale_down.unneeded.evaluate import Removable
from kubetide.nodes.scale_up.increase.headroom import with_expected_gpus
from kubetide.nodes.scale_up.increase.limits import limits_of
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.objects.meta import key_of
from kubetide.objects.node import Node
from kubetide.ports.cloud import instance_id
from kubetide.units.time import (
    Duration,
    Instant,
    after,
    before,
    between,
    format_duration,
    format_rfc3339,
    hours,
    minutes,
    whole_seconds,
)

_TIMES = 2
"""After the first failure the delay of the cluster is enough: most causes are gone by then."""
_SHORTEST_PAUSE: Duration = minutes(3)
_MOST_DOUBLINGS = 7
NO_FAMILIES: Mapping[str, str] = MappingProxyType({})


class Plan(msgspec.Struct):
    """Empty nodes and nodes to drain now, in this order; and why the others wait."""

    empty: list[Removable] = msgspec.field(default_factory=list)
    drain: list[Removable] = msgspec.field(default_factory=list)
    waiting: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    """Node -> (upstream's reason, one sentence)."""
    held: list[Removable] = msgspec.field(default_factory=list)
    """Nodes that could go but for pods that must end by themselves first."""
    over_limits: list[tuple[str, ...]] = msgspec.field(default_factory=list)
    """Of each node that a limit over the whole cluster keeps: the resources whose limits these are."""
    limit: str = ""
    """Which limit on deletions at a time, or in an hour, leaves nodes for later that could go; empty for none."""


def choose(
    state: State, removable: Sequence[Removable], now: Instant, families: Mapping[str, str] = NO_FAMILIES
) -> Plan:
    """Return the nodes that may be deleted now, in name order, empty nodes first, risky ones last; ``within_budgets`` cuts them.

    ``families``: group -> its family of similar groups, of which the larger gives nodes back first.
    """
    plan = _removable_now(state, removable, now, families)
    _whole_groups_only(state, plan)
    _hold_back(state, plan)
    if not families:
        plan.empty, plan.drain = _group_by_group(plan.empty), _group_by_group(plan.drain)
    return plan


def _removable_now(
    state: State, removable: Sequence[Removable], now: Instant, families: Mapping[str, str]
) -> Plan:
    plan = Plan()
    in_flight: dict[str, int] = {}
    for deletion in state.memory.scale_down.deletions.values():
        in_flight[deletion.group] = in_flight.get(deletion.group, 0) + 1
    sizes = {group.id: group.target_size - in_flight.get(group.id, 0) for group in state.groups.values()}
    left = TotalsAboveMinimum(state, now)
    by_name = _balanced(families, sorted(removable, key=lambda one: one.node), sizes)
    for one in (
        *(one for one in by_name if not one.moves.pods),
        *(one for one in by_name if one.moves.pods),
    ):
        refused = (
            _time_refuses(state, one, now)
            or _size_refuses(state, one, sizes)
            or _is_not_marked(state, one.node, now)
        )
        if refused is None and (exceeded := left.exceeded_by(state.nodes[one.node])):
            plan.over_limits.append(exceeded)
            refused = _limit_refuses(exceeded[0])
        if refused is not None:
            plan.waiting[one.node] = refused
            continue
        sizes[one.group] -= 1
        left.take(state.nodes[one.node])
        into = plan.held if one.moves.waiting else plan.drain if one.moves.pods else plan.empty
        into.append(one)
    plan.drain.sort(key=lambda one: one.risky)
    return plan


def _balanced(family: Mapping[str, str], nodes: list[Removable], sizes: Mapping[str, int]) -> list[Removable]:
    """Return the nodes in the order in which they go: with --balance-scale-down those of the larger of similar groups first.

    Each family of similar groups keeps its places in the order; only who takes which place changes.
    """
    if not family:
        return nodes
    waiting: dict[str, dict[str, list[Removable]]] = {}
    for one in nodes:
        waiting.setdefault(family.get(one.group, one.group), {}).setdefault(one.group, []).append(one)
    left = dict(sizes)
    found: list[Removable] = []
    for one in nodes:
        groups = waiting[family.get(one.group, one.group)]
        largest = min((name for name in groups if groups[name]), key=lambda name: (-left[name], name))
        found.append(groups[largest].pop(0))
        left[largest] -= 1
    return found


def _time_refuses(state: State, one: Removable, now: Instant) -> tuple[str, str] | None:
    group, node = state.groups[one.group], state.nodes[one.node]
    since = state.memory.scale_down.unneeded[one.node]
    if readiness(node, state.settings):
        reason, needed = "NotUnreadyLongEnough", unready_time(group, state.settings)
    else:
        reason, needed = "NotUnneededLongEnough", unneeded_time(group, state.settings)
    # With no time to wait at all the node may go in the very loop that finds it unneeded.
    if needed > 0 and not after(since, needed) < now:
        seen = format_duration(whole_seconds(between(since, now)))
        return reason, f"unneeded for {seen}, must be more than {format_duration(needed)}"
    return None


def _size_refuses(state: State, one: Removable, sizes: dict[str, int]) -> tuple[str, str] | None:
    group = state.groups[one.group]
    if sizes[group.id] <= group.min_size:
        return "NodeGroupMinSizeReached", f"group {group.id} would fall below its minimum {group.min_size}"
    return None


def _is_not_marked(state: State, name: str, now: Instant) -> tuple[str, str] | None:
    """Leave a node alone that could not be tainted twice: longer than the delay of the cluster, and twice as long each time.

    Each failure takes all deletions of its tick back and starts that delay: a node whose taint is refused for ever
    would keep all others.
    """
    failed = state.memory.scale_down.failures.get(name)
    if failed is None or failed.unmarked < _TIMES:
        return None
    first = max(state.settings.scale_down_delay_after_failure, _SHORTEST_PAUSE)
    until = after(failed.last, Duration(first << min(failed.unmarked - 1, _MOST_DOUBLINGS)))
    if until <= now:
        return None
    return NOT_MARKED, (
        f"its taint was refused {failed.unmarked} times in a row, it is tried again at {format_rfc3339(until)}: {failed.error}"
    )


class TotalsAboveMinimum:
    """What may be removed from the cluster's totals (--cores-total, --memory-total, --gpu-total)."""

    def __init__(self, state: State, now: Instant) -> None:
        self._state = state
        self._minimum = {name: limit.minimum for name, limit in limits_of(state.settings).items()}
        self.left: dict[str, int] = {}
        if not any(self._minimum.values()):
            return
        total = dict.fromkeys(self._minimum, 0)
        for name in state.snapshot.node_names:
            node = state.snapshot.node(name)
            if not is_virtual_kubelet(node) and not is_being_deleted(node, now):
                for resource, amount in self._uses(node).items():
                    if resource in total:
                        total[resource] += amount
        self.left = {resource: max(0, total[resource] - self._minimum[resource]) for resource in total}

    def exceeded_by(self, node: Node) -> tuple[str, ...]:
        """Return the resources that would fall below their minimum without the node."""
        if not self.left:
            return ()
        uses = self._uses(node)
        return tuple(name for name, left in self.left.items() if uses.get(name, 0) > left)

    def take(self, node: Node) -> None:
        """Subtract the node's capacity."""
        for resource, amount in (self._uses(node) if self.left else {}).items():
            if resource in self.left:
                self.left[resource] -= amount

    def copy(self) -> TotalsAboveMinimum:
        """Return totals from which nodes are subtracted without a change to these."""
        made = copy(self)
        made.left = dict(self.left)
        return made

    def _uses(self, node: Node) -> dict[str, int]:
        """Return what a node counts for; GPUs that its driver has not reported yet do as well."""
        expected = with_expected_gpus(self._state, self._state.tick, node)
        return used_by(expected, self._state.settings.gpu_label)


def _limit_refuses(resource: str) -> tuple[str, str]:
    flag = {"cpu": "--cores-total", "memory": "--memory-total"}.get(resource, "--gpu-total")
    return (
        "MinimalResourceLimitExceeded",
        f"the cluster's {resource} would fall below the minimum of {flag}",
    )


def _is_atomic(state: State, group_id: str) -> bool:
    options = state.groups[group_id].options
    return bool(options and options.zero_or_max_node_scaling)


def _whole_groups_only(state: State, plan: Plan) -> None:
    """Keep nodes of groups that exist at zero or at their maximum only if the whole group goes."""
    chosen: dict[str, int] = {}
    for one in (*plan.empty, *plan.drain, *plan.held):
        if _is_atomic(state, one.group):
            chosen[one.group] = chosen.get(one.group, 0) + 1
    partial = [
        group
        for group, count in chosen.items()
        if count not in {state.groups[group].target_size, _registered(state, group)}
    ]
    for group in partial:
        for one in (*plan.empty, *plan.drain, *plan.held):
            if one.group == group:
                plan.waiting[one.node] = (
                    "AtomicScaleDownFailed",
                    f"group {group} goes as a whole or not at all, and not all of its nodes can go",
                )
    plan.empty = [one for one in plan.empty if one.group not in partial]
    plan.drain = [one for one in plan.drain if one.group not in partial]
    plan.held = [one for one in plan.held if one.group not in partial]


def _registered(state: State, group_id: str) -> int:
    """Return how many machines of the group have joined as nodes: the others nobody need wait for."""
    instances = {one.provider_id for one in state.groups[group_id].instances or ()}
    names = state.nodes_by_group().get(group_id, ())
    return sum(1 for name in names if name in state.snapshot and instance_id(state.nodes[name]) in instances)


def _hold_back(state: State, plan: Plan) -> None:
    """Keep nodes with pods that must end by themselves; they have had their share of sizes and limits all the same."""
    for one in plan.held:
        pod = "/".join(key_of(one.moves.waiting[0]))
        plan.waiting[one.node] = "BlockedByOnCompletionPod", f"pod {pod} must end by itself first"
    broken = {one.group for one in plan.held if _is_atomic(state, one.group)}
    plan.empty = [one for one in plan.empty if one.group not in broken]
    plan.drain = [one for one in plan.drain if one.group not in broken]


def _group_by_group(nodes: list[Removable]) -> list[Removable]:
    """Return the nodes with those of one group behind one another, in the order in which the groups come up."""
    found: dict[str, list[Removable]] = {}
    for one in nodes:
        found.setdefault(one.group, []).append(one)
    return [one for group in found.values() for one in group]


def within_budgets(state: State, plan: Plan, now: Instant) -> Plan:
    """Return the plan cut to the deletions that may run at once; the first whole group of a tick may exceed the budget."""
    settings, memory = state.settings, state.memory.scale_down
    in_flight = [deletion for deletion in memory.deletions.values() if deletion.in_flight]
    draining = sum(1 for deletion in in_flight if deletion.drain)
    hour_ago = before(now, hours(1))
    used = sum(count for at, count in memory.recent_deletions if at > hour_ago)
    cap = max(0, settings.max_node_deletions_per_hour - used - len(memory.deletions))
    parallelism = settings.max_scale_down_parallelism - len(in_flight)
    drains = settings.max_drain_parallelism - draining

    cut = Plan(waiting=plan.waiting, over_limits=plan.over_limits)
    may_overflow = True
    full: set[bool] = set()
    for group in _atomic_groups(state, plan):
        empty = [one for one in plan.empty if one.group == group]
        drain = [one for one in plan.drain if one.group == group]
        count = len(empty) + len(drain)
        # Groups with empty nodes come first; where these find no more room, one that is only drained may.
        if count > cap or bool(empty) in full:
            continue
        exceeds = parallelism < count or drains < len(drain)
        used_up = _is_used_up(parallelism, drains, empty=bool(empty), drain=bool(drain))
        if exceeds and (used_up or not may_overflow):
            full.add(bool(empty))
            continue
        cut.empty += empty
        cut.drain += drain
        parallelism -= count
        drains -= len(drain)
        cap -= count
        may_overflow = False

    empty = [one for one in plan.empty if not _is_atomic(state, one.group)]
    taken = empty[: max(0, min(parallelism, cap))]
    cut.empty += taken
    parallelism -= len(taken)
    cap -= len(taken)
    drain = [one for one in plan.drain if not _is_atomic(state, one.group)]
    taken = drain[: max(0, min(parallelism, drains, cap))]
    cut.drain += taken
    if len(cut.empty) + len(cut.drain) < len(plan.empty) + len(plan.drain):
        drains -= len(taken)
        cut.limit = _limit_text(settings, cap - len(taken), parallelism - len(taken), drains)
    return cut


def _limit_text(settings: Settings, cap: int, parallelism: int, drains: int) -> str:
    """Return which limit leaves nodes for later, by what is left of each."""
    if cap <= 0:
        return f"--max-node-deletions-per-hour={settings.max_node_deletions_per_hour} is reached"
    if parallelism <= 0:
        return f"as many nodes are being deleted as --max-scale-down-parallelism={settings.max_scale_down_parallelism} allows"
    if drains <= 0:
        return f"as many nodes are being drained as --max-drain-parallelism={settings.max_drain_parallelism} allows"
    return "a group that goes as a whole is larger than what is left of --max-scale-down-parallelism or --max-drain-parallelism"


def _is_used_up(parallelism: int, drains: int, *, empty: bool, drain: bool) -> bool:
    """Return whether nothing is left for a whole group with empty nodes or nodes to drain.

    As upstream counts, a budget below zero holds none back: it is so while a group that exceeded it is deleted.
    """
    if not empty:
        return min(parallelism, drains) == 0
    return parallelism == 0 or (drain and drains == 0)


def _atomic_groups(state: State, plan: Plan) -> list[str]:
    """Groups that go as a whole and have nodes in the plan, those with empty nodes first."""
    found = dict.fromkeys(one.group for one in (*plan.empty, *plan.drain))
    return [group for group in found if _is_atomic(state, group)]
