"""Soft taints that make the scheduler fill fuller nodes first (--steer-pods-to-fuller-nodes).

The default profile of kube-scheduler spreads pods, so that nodes empty slowly and are bought anew. It also prefers the
node with the fewest PreferNoSchedule taints, with a weight of three against one for the emptier node. So each node gets
one such taint for each share in ``SHARES`` that its pods fall short of. A pod that fits nowhere else goes to a tainted
node all the same: none waits longer.

Source: kube-scheduler 1.36, TaintToleration's score; utilization is that of scale-down.
"""

from __future__ import annotations

import numpy as np

from kubetide.nodes.decision import AddTaint, RemoveTaint
from kubetide.nodes.facts.nodes import FILL_LATER, TO_BE_DELETED, has_taint
from kubetide.nodes.scale_down.context import drain_context
from kubetide.nodes.scale_down.names import PREFER_NO_SCHEDULE
from kubetide.nodes.scale_down.unneeded.eligibility import ignores_daemon_sets
from kubetide.nodes.state import State
from kubetide.units.time import Instant

SHARES = dict(zip(FILL_LATER, (0.75, 0.5, 0.25), strict=True))
"""Taint -> a node that is used less has it."""
SLACK = 0.05
"""How much fuller than the share a node must be to lose its taint, so that a small pod does not move it to and fro."""


def fill_order(state: State, now: Instant, budget: int) -> tuple[AddTaint | RemoveTaint, ...]:
    """Return the taint changes of this tick, at most ``budget``: removals first, then by node."""
    if budget <= 0 or not state.settings.steer_pods_to_fuller_nodes:
        return ()
    remove: list[AddTaint | RemoveTaint] = []
    add: list[AddTaint | RemoveTaint] = []
    for name, used in _used(state, now).items():
        node = state.nodes[name]
        for key, share in SHARES.items():
            has = has_taint(node, key)
            if has and used >= share + SLACK:
                remove.append(RemoveTaint(name, key))
            elif not has and used < share:
                add.append(AddTaint(name, key, "", PREFER_NO_SCHEDULE))
    return (*remove, *add)[:budget]


def _used(state: State, now: Instant) -> dict[str, float]:
    """Return the utilization of each node that may have pods, as this tick's evaluation found it."""
    cache = state.scale_down_cache
    context = drain_context(state, now, cache.allowances(state.pdbs))
    worth = _worth(state)
    found = {}
    for name in sorted(state.nodes):
        group = state.groups.get(state.group_of(name) or "")
        node = state.nodes[name]
        if group is None or name not in state.snapshot or has_taint(node, TO_BE_DELETED):
            continue
        if name in state.memory.scale_down.deletions:
            continue
        ignores = ignores_daemon_sets(group, state.settings)
        facts = cache.facts(state.snapshot, name, context, ignore_daemon_sets=ignores)
        if facts.utilization is not None:
            found[name] = min(facts.utilization.value, worth.get(name, 1.0))
    return found


def _worth(state: State) -> dict[str, float]:
    """Return the price of the cheapest node that holds as much, as a share of the node's own; nodes without a price are left out."""
    tick = state.tick
    priced = [
        (group.price_per_hour, template)
        for group in state.groups.values()
        if group.price_per_hour and (template := tick.templates.get(group.id) if tick else None) is not None
    ]
    snapshot = state.snapshot
    names = [name for name, column in snapshot.requested.items() if column.any()]
    if not priced or not names:
        return {}
    asked = np.array([snapshot.requested[name] for name in names], np.int64)
    least = np.full(len(snapshot.node_names), np.inf)
    for price, template in priced:
        there = template.fresh.allocatable
        stock = np.array([there[name][0] if name in there else 0 for name in names], np.int64)
        least = np.where((asked <= stock[:, None]).all(axis=0), np.minimum(least, price), least)
    found = {}
    for name, price in zip(snapshot.node_names, least.tolist(), strict=True):
        group = state.groups.get(state.group_of(name) or "") if name in state.nodes else None
        if group is not None and group.price_per_hour:
            found[name] = price / group.price_per_hour
    return found
