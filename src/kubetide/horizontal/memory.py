"""What the loop remembers of an HPA between ticks: recommendations and scale events.

Both are kept in slots. A slot whose entry is outdated is used again, the last such one first; else
the list grows and never shrinks. Source: horizontal controller v1.36.
"""

from __future__ import annotations

import msgspec


class Recommendation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A raw proposal and when it was made, ns."""

    at: int
    replicas: int


class ScaleEvent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A change that was carried out: by how many replicas (positive both ways), and when, ns."""

    at: int
    change: int
    outdated: bool = False


class Memory(msgspec.Struct, omit_defaults=True):
    """Lists in upstream's slot order; empty recommendations mean that the HPA has never been seen."""

    recommendations: list[Recommendation] = []
    ups: list[ScaleEvent] = []
    downs: list[ScaleEvent] = []


class MemoryEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The memory of one HPA in a full record; the selector is the one last seen on its target."""

    namespace: str
    name: str
    memory: Memory
    selector: str = ""


def remember_event(events: list[ScaleEvent], event: ScaleEvent, longest_period: int) -> None:
    """Stores an event in upstream's slot; marks those older than the longest period as outdated."""
    cutoff = event.at - longest_period
    slot = -1
    for index, old in enumerate(events):
        if not old.outdated and old.at < cutoff:
            events[index] = msgspec.structs.replace(old, outdated=True)
        if events[index].outdated:
            slot = index
    if slot < 0:
        events.append(event)
    else:
        events[slot] = event
