"""What decisions leave behind in a state, recorded from time to time: an answer needs to decide again only from there on."""

from __future__ import annotations

from typing import Final

from kubetide.nodes.facts.capacity import KnownCapacity
from kubetide.nodes.records.delta import Checkpoint
from kubetide.nodes.state import State

CHECKPOINT_EVERY: Final = 60
"""Records between two that hold it; it is about a hundredth of a whole state."""


def checkpoint_of(state: State) -> Checkpoint:
    """Return what decisions left behind, at the beginning of a tick."""
    return Checkpoint(
        groups=tuple(state.groups.values()), memory=state.memory, capacity=state.capacity.export()
    )


def resume(state: State, found: Checkpoint) -> None:
    """Go on from there with a state that was given every change, and decided nothing."""
    state.set_groups(found.groups)
    unread = state.capacity.unread
    state.capacity = KnownCapacity()
    state.capacity.apply(found.capacity, (), unread)
    # Last: to take over changes changes the memory, too.
    state.memory = found.memory
