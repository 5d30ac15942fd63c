"""Graceful degradation: when evaluating all pods takes too long, a loop continues with those that it has reached.

Pods are looked at part by part, each in a step of its own, so that the time that has passed comes from outside and a
replay ends at the same pod. While pods are left out, only every fourth loop looks at what may go, and in these none is bought.

Source: Cluster Autoscaler, --enable-graceful-degradation and --pending-pods-batching-timeout.
"""

from __future__ import annotations

from typing import Final

from kubetide.nodes.decision import EventRecord
from kubetide.nodes.memory import Degradation
from kubetide.nodes.scale_up.reporting.events import on_status
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.units.time import Duration, Instant

PART: Final = 5_000
"""How many pods are looked at in one step."""

CYCLE: Final = 4
"""Every so many loops the turn goes to scale-down."""


def part_of(state: State) -> int | None:
    """Return how many pods a step evaluates; None for all."""
    return PART if state.settings.enable_graceful_degradation else None


def is_late(state: State, begun: Duration) -> bool:
    """Return whether the time for evaluating pods is over; ``begun`` is how long the tick had taken at its beginning."""
    settings = state.settings
    passed = state.elapsed - begun
    return settings.enable_graceful_degradation and passed > settings.pending_pods_batching_timeout


def note_degradation(state: State, tick: Tick, now: Instant) -> list[EventRecord]:
    """Count the loops that left pods out; return an event for the first of them, and for the first complete one."""
    before = state.memory.degradation
    if not state.settings.enable_graceful_degradation or before.at == now:
        return []  # another look in the same loop
    loops = before.loops + 1 if tick.demand.unprocessed else 0
    state.memory.degradation = Degradation(loops, now if loops else None)
    if loops == 1:
        return on_status(
            state,
            "Warning",
            "GracefulDegradationStarted",
            "Autoscaler is unable to handle the large amount of unschedulable pods. Consider reducing the rate of adding "
            "new pods, so autoscaler could auto recover.",
        )
    if before.loops and not loops:
        return on_status(
            state,
            "Normal",
            "GracefulDegradationStopped",
            "Autoscaler exited from GracefulDegradationMode and works normally.",
        )
    return []


def holds_scale_up(state: State) -> bool:
    """Return whether this loop buys nothing, so that scale-down has its turn."""
    loops = state.memory.degradation.loops
    return loops > 0 and loops % CYCLE == 0


def holds_scale_down(state: State) -> bool:
    """Return whether this loop skips scale-down."""
    return state.memory.degradation.loops % CYCLE != 0
