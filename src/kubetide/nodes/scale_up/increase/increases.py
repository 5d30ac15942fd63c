"""The calls to the cloud for increases."""

from __future__ import annotations

from kubetide.nodes.decision import IncreaseSize
from kubetide.nodes.scale_up.tick import Increase
from kubetide.nodes.state import State


def command(state: State, increase: Increase, why: str, *, atomic: bool = False) -> IncreaseSize:
    """Return the call for an increase."""
    group = increase.group
    return IncreaseSize(
        group=group.id,
        delta=increase.size - group.target_size,
        size=group.target_size,
        max_size=group.max_size,
        why="pods" if why == "pods" else "min_size",
        parallel=state.settings.parallel_scale_up,
        atomic=atomic,
    )
