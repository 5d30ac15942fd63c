"""State left by decisions, recorded from time to time: an answer decides again only from the last checkpoint."""

from __future__ import annotations

from typing import Final

from kubetide.nodes.facts.capacity import KnownCapacity
from kubetide.nodes.records.delta import Checkpoint
from kubetide.nodes.state import State

CHECKPOINT_EVERY: Final = 60
"""Records between two that hold it; it is about a hundredth of a whole state."""


def checkpoint_of(state: State) -> Checkpoint:
    """Return the state that decisions left, at the beginning of a tick."""
    return Checkpoint(
        groups=tuple(state.groups.values()), memory=state.memory, capacity=state.capacity.export()
    )


def resume(state: State, found: Checkpoint) -> None:
    """Continue from a checkpoint with a state that received every change but decided nothing."""
    state.set_groups(found.groups)
    unread = state.capacity.unread
    state.capacity = KnownCapacity()
    state.capacity.apply(found.capacity, (), unread)
    # Last: to take over changes changes the memory, too.
    state.memory = found.memory
