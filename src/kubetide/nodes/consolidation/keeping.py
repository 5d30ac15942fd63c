"""Removals held back: nodes that remembered demand would buy back, and nodes over a disruption budget.

Of each group as many nodes are kept as are likely to be bought again before keeping them has cost as much as buying
back: with ``n`` uses within the time that is remembered, the ``k``-th node is expected to be used after ``k / n`` of that
time. A use is an increase for pods, or a kept node that got pods.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubetide.nodes.consolidation.budgets import allowed, parse_budgets
from kubetide.nodes.scale_down.plan import Plan
from kubetide.nodes.scale_down.unneeded.eligibility import unready_time
from kubetide.nodes.scale_down.unneeded.evaluate import Removable
from kubetide.nodes.state import State
from kubetide.units.lists import counted
from kubetide.units.time import Instant, after, before, format_duration, instant_of

EXPECTED = "DemandExpected"
BUDGET = "DisruptionBudget"
AWAITED = "ConsolidationTarget"


def note_uses(state: State, now: Instant) -> None:
    """Note the nodes that this tick bought for pods, and kept nodes that are used again."""
    settings, memory = state.settings, state.memory.consolidation
    if settings.remember_demand <= 0:
        return
    found: dict[str, int] = {}
    tick = state.tick
    if tick is not None and tick.result == "ScaleUpSuccessful":
        for one in tick.increases:
            found[one.group.id] = found.get(one.group.id, 0) + one.size - one.grown_from
    unneeded = state.memory.scale_down.unneeded
    for name, group in memory.kept.items():
        if name in state.nodes and name not in unneeded:
            found[group] = found.get(group, 0) + 1
    memory.kept = {
        name: group for name, group in memory.kept.items() if name in unneeded and name in state.nodes
    }
    oldest = before(now, settings.remember_demand)
    bought = {group: tuple(one for one in uses if one[0] > oldest) for group, uses in memory.bought.items()}
    for group, number in sorted(found.items()):
        bought[group] = (*bought.get(group, ()), (now, number))
    memory.bought = {group: uses for group, uses in sorted(bought.items()) if uses}


def kept_nodes(state: State, group: str) -> int:
    """Return how many unneeded nodes of a group are kept for future demand."""
    settings = state.settings
    if settings.remember_demand <= 0:
        return 0
    uses = sum(number for _, number in state.memory.consolidation.bought.get(group, ()))
    return uses * settings.buy_back_price // settings.remember_demand


def keep_back(state: State, plan: Plan, now: Instant) -> None:
    """Take nodes that must stay out of a plan, each with its reason. Changes the plan and ``memory.kept``."""
    settings, memory = state.settings, state.memory.consolidation
    if settings.consolidation_enabled:
        awaited = {move.buy for move in memory.moves if move.buy}
        taking = {move.into for move in memory.moves}
        _drop(
            plan,
            [one for one in _all(plan) if one.group in awaited or one.node in taking],
            AWAITED,
            "it may be the new node of a move",
        )
    if settings.remember_demand > 0:
        _keep_for_demand(state, plan)
    if settings.consolidation_enabled:
        within_disruption_budgets(state, plan, now)


def within_disruption_budgets(state: State, plan: Plan, now: Instant) -> None:
    """Take the nodes over a budget out of a plan; the empty ones that stay in it count for those that are drained.

    A node that is not ready is disrupted already: it goes whatever the budgets say. Else a node that is lost for good would
    use up its own budget, and nothing would ever go.
    """
    planned = 0
    for reason, nodes in (("Empty", plan.empty), ("Underutilized", plan.drain)):
        left = left_of_budget(state, reason, now, planned=planned)
        ready = [one for one in nodes if not state.health(one.node).unready]
        if left is not None and len(ready) > left:
            detail = f"the budgets let {counted(left, 'node')} more go for the reason {reason} (--consolidation-budgets)"
            if (gone := len(_disrupted(state, _budgeted(state), now))) > 0:
                detail += f", beside {gone} that {'goes or is' if gone == 1 else 'go or are'} not ready"
            _drop(plan, ready[left:], BUDGET, detail)
        planned += len(ready[:left])


def left_of_budget(state: State, reason: str, now: Instant, *, planned: int = 0) -> int | None:
    """Return how many more nodes may be disrupted for this reason, besides those planned; None for no limit.

    Source: Karpenter 1.15, BuildDisruptionBudgetMapping: nodes that have not started yet do not count.
    """
    budgets = parse_budgets(state.settings.consolidation_budgets)
    if not budgets:
        return None
    nodes = _budgeted(state)
    disrupted = planned + len(_disrupted(state, nodes, now))
    return allowed(budgets, reason, nodes=len(nodes), disrupted=disrupted, now=now)


def _budgeted(state: State) -> list[str]:
    """Return the nodes of groups that have started."""
    views = () if state.tick is None else state.tick.view.groups.values()
    starting = {name for view in views for name in view.counts.not_started}
    return [name for name in state.nodes if state.group_of(name) is not None and name not in starting]


def _disrupted(state: State, nodes: Iterable[str], now: Instant) -> list[str]:
    """Return the nodes that are on their way out, or not ready and not lost."""
    deletions = state.memory.scale_down.deletions
    return [
        name
        for name in nodes
        if name in deletions or (state.health(name).unready and not _is_lost(state, name, now))
    ]


def _is_lost(state: State, name: str, now: Instant) -> bool:
    """Return whether none of the node's conditions has changed for so long that scale-down would have removed it.

    Something else keeps it then, such as its group's minimum, perhaps for ever; it must not use up a budget for as long.
    Karpenter counts it, but has budgets for each NodePool, and repairs nodes.
    """
    group, conditions = state.groups.get(state.group_of(name) or ""), state.nodes[name].status.conditions
    changes = [instant_of(one.last_transition_time) for one in conditions or ()]
    latest = max((at for at in changes if at is not None), default=None)
    return (
        group is not None and latest is not None and after(latest, unready_time(group, state.settings)) < now
    )


def _all(plan: Plan) -> list[Removable]:
    return [*plan.empty, *plan.drain]


def _drop(plan: Plan, some: Iterable[Removable], word: str, detail: str) -> None:
    for one in some:
        plan.waiting[one.node] = word, detail
        if one.moves.pods:
            plan.drain.remove(one)
        else:
            plan.empty.remove(one)


def _keep_for_demand(state: State, plan: Plan) -> None:
    """Keep nodes of a group up to the number that is likely to be bought back; the rest of its unneeded nodes may go."""
    settings, memory = state.settings, state.memory.consolidation
    spare: dict[str, int] = {}
    deletions = state.memory.scale_down.deletions
    for name in state.memory.scale_down.unneeded:
        group = state.group_of(name)
        if group is not None and name not in deletions:
            spare[group] = spare.get(group, 0) + 1
    kept: dict[str, str] = {}
    # Drained nodes are kept first: to keep them disturbs nobody.
    for one in (*plan.empty, *plan.drain):
        keep = kept_nodes(state, one.group)
        if spare.get(one.group, 0) > keep:
            spare[one.group] -= 1
            continue
        uses = sum(number for _, number in memory.bought.get(one.group, ()))
        _drop(
            plan,
            [one],
            EXPECTED,
            f"group {one.group} was needed {uses} times within {format_duration(settings.remember_demand)}: "
            f"{keep} unneeded nodes of it are kept (--remember-demand)",
        )
        kept[one.node] = one.group
    memory.kept = {**memory.kept, **kept}
