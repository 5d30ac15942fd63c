"""The loop's history of figures: pods and cost of the cluster, machines and nodes of each group."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, nan

from kubetide.explain.figures import FigureTable
from kubetide.nodes.registry.cluster_state import upcoming_nodes
from kubetide.nodes.state import State
from kubetide.units.time import Instant


def figures_of(state: State, now: Instant) -> tuple[FigureTable, ...]:
    """Return the figures of a step that has ended.

    Of kind ``cluster``: ``pods`` that have not finished, ``pending`` ones that have no node and are not being deleted,
    and ``cost`` an hour of all machines that were ordered and are not gone. Of kind ``nodegroup``: ``ready`` nodes,
    ``target`` size, ``upcoming`` nodes, ``machines`` that are paid for, ``min`` and ``max`` allowed, ``price`` an hour.
    """
    groups = [state.groups[name] for name in sorted(state.groups)]
    views = {} if state.view is None else state.view.groups
    # A machine that could not be had has an error, and no price.
    machines: list[float] = [sum(one.error is None for one in group.instances or ()) for group in groups]
    prices = [nan if group.price_per_hour is None else group.price_per_hour for group in groups]
    known = [views.get(group.id) for group in groups]
    columns: dict[str, Sequence[float | None]] = {
        "ready": [nan if view is None else view.counts.ready for view in known],
        "target": [group.target_size for group in groups],
        "upcoming": [nan if view is None else upcoming_nodes(state, view, now) for view in known],
        "machines": machines,
        "min": [group.min_size for group in groups],
        "max": [group.max_size for group in groups],
        "price": prices,
    }
    costs = [count * price for count, price in zip(machines, prices, strict=True) if not isnan(price)]
    pending = sum(not pod.metadata.deletion_timestamp for pod in state.pending.values())
    cluster: dict[str, Sequence[float | None]] = {
        "pods": [len(state.pods)],
        "pending": [pending],
        "cost": [sum(costs) if costs else nan],
    }
    return (
        FigureTable("cluster", ("",), cluster),
        FigureTable("nodegroup", [group.id for group in groups], columns),
    )
