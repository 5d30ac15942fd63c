"""What the loop learned from nodes of a group, as lines for people."""

from __future__ import annotations

from kubetide.nodes.registry.arrivals import slowest_of
from kubetide.nodes.state import State
from kubetide.nodes.templates.learning import text_of
from kubetide.units.time import format_duration, format_rfc3339


def learned_lines(state: State, group_id: str) -> tuple[str, ...]:
    """Return what was learned of the group; none if none of its nodes was seen to come."""
    lines = _boot_lines(state, group_id)
    learned = state.memory.learned.groups.get(group_id)
    if learned is None:
        return tuple(lines)
    if learned.startup_taints:
        lines.append(f"nodes begin with taints that they lose: {', '.join(learned.startup_taints)}")
    join = learned.last_join
    if join is None:
        return tuple(lines)
    nodes = "1 node" if learned.joins == 1 else f"{learned.joins} nodes"
    slowest = f"{format_duration(slowest_of(learned.starts))} the slowest"
    if len(learned.starts) < learned.joins:
        slowest += f" of the last {len(learned.starts)}"
    lines.append(f"{nodes} joined; ready after {format_duration(join.took)} the last, {slowest}")
    wrong = [
        f"{name} {text_of(name, join.real.get(name, '0'))} where {text_of(name, join.promised[name])} was promised ({error:+.1%})"
        for name, error in join.errors.items()
        if error
    ]
    said = "; ".join(wrong) or "just what was promised"
    lines.append(f"node {join.node} at {format_rfc3339(join.at)} had {said}, by {join.source or 'nobody'}")
    return tuple(lines)


def _boot_lines(state: State, group_id: str) -> list[str]:
    """Return how long the last machines took to become nodes; nothing where none was seen."""
    times = state.memory.join_times.get(group_id, ())
    if not times:
        return []
    line = f"from the order to the node {format_duration(times[-1])} the last"
    if len(times) > 1:
        line += f", {format_duration(max(times))} the slowest of the last {len(times)}"
    return [line]
