"""Nodes that are partly empty because the scheduler spreads pods, and what filling them up would save."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kubetide.doctor.finding import Finding
from kubetide.doctor.repacking import used_nodes, used_when_packed
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.facts.nodes import is_being_deleted

_MOST_PODS: Final = 20_000
"""Of more pods it is not asked: each is placed anew."""

_LEAST_SHARE: Final = 0.1
"""Of the nodes of groups; a smaller saving is that of a moment."""

_FIX: Final = (
    "where the control plane is yours, let NodeResourcesFit score with MostAllocated (on GKE: the profile "
    "optimize-utilization), and try it before: `scheduler: mostAllocated` in a scenario"
)


class _Saving(NamedTuple):
    """How many nodes of groups have pods, how many of these would have none, and what they cost an hour, if that is known."""

    nodes: int
    saved: int
    cost: float | None


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield at most one finding, where a tenth of the nodes and more would have no pods.

    Nodes that are empty already, that go, or that the minimum of their group keeps, do not count.
    """
    if not snapshot.groups or len(snapshot.pods) > _MOST_PODS:
        return
    saving = _saving(snapshot)
    if saving.saved < max(1, _LEAST_SHARE * saving.nodes):
        return
    settings = snapshot.settings
    flags = {
        "--steer-pods-to-fuller-nodes": settings.steer_pods_to_fuller_nodes,
        "--consolidation-enabled": settings.consolidation_enabled,
    }
    off = [name for name, is_on in flags.items() if not is_on]
    yield Finding(
        check="scheduler-profile",
        severity="info",
        object="the scheduler",
        seen=(
            f"pods are on {saving.nodes} nodes of groups; placed anew, one after another, where least is free, they would "
            f"be on {saving.nodes - saving.saved}"
        ),
        why="the default profile places pods where most is free, so nodes are partly empty and none can go",
        fix=f"{_FIX}; part of it is won by {' and '.join(off)}" if off else _FIX,
        cost_per_hour=saving.cost,
    )


def _saving(snapshot: Snapshot) -> _Saving:
    state, used, packed = snapshot.node_state, used_nodes(snapshot), used_when_packed(snapshot)
    nodes = saved = 0
    costs: list[float | None] = []
    for group_id, names in state.nodes_by_group().items():
        group = state.groups[group_id]
        here = [name for name in names if not is_being_deleted(state.nodes[name], snapshot.now)]
        with_pods = used.intersection(here)
        may_go = max(0, group.target_size - group.min_size - (len(here) - len(with_pods)))
        fewer = min(len(with_pods - packed), may_go)
        nodes, saved = nodes + len(with_pods), saved + fewer
        if fewer:
            costs.append(None if group.price_per_hour is None else fewer * group.price_per_hour)
    known = [one for one in costs if one is not None]
    return _Saving(nodes, saved, sum(known) if len(known) == len(costs) else None)
