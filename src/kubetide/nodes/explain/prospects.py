"""When a node goes, and what it costs while it is there."""

from __future__ import annotations

from kubetide.nodes.facts.nodes import readiness
from kubetide.nodes.scale_down.eligibility import unneeded_time, unready_time
from kubetide.nodes.state import State
from kubetide.units.time import Duration, Instant, after


def price_of(state: State, group_id: str) -> float | None:
    """Return the price of one node of the group per hour; None where it is not known."""
    group = state.groups.get(group_id)
    return None if group is None else group.price_per_hour


def waits(state: State, node_name: str) -> Duration | None:
    """Return how long the node must be unneeded before it goes; None for one of no group."""
    group_id = state.group_of(node_name)
    if group_id is None:
        return None
    asked = unready_time if readiness(state.nodes[node_name], state.settings) else unneeded_time
    return asked(state.groups[group_id], state.settings)


def goes_at(state: State, node_name: str) -> Instant | None:
    """Return when the node has been unneeded for long enough; None for one that is needed or of no group."""
    since = state.memory.scale_down.unneeded.get(node_name)
    time = waits(state, node_name)
    return None if since is None or time is None else after(since, time)
