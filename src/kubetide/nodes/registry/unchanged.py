"""Ticks at rest: quiet ticks without scale-down work, and no timer that could soon change that.

Such a tick has the same result as the one before. ``unchanged_until`` says up to when that is certain while nothing
changes; who leaves such a tick out has ``note_unchanged`` keep the memory as the tick would have left it, and makes the
documents that are due (``decide.with_documents``).
"""

from __future__ import annotations

from kubetide.nodes.facts.new_pods import counts_new_pods, forgotten_at
from kubetide.nodes.registry.quiet import FOREVER, quiet_until
from kubetide.nodes.scale_down.decide import note_interval
from kubetide.nodes.scale_down.unneeded.evaluate import Evaluation
from kubetide.nodes.state import State
from kubetide.units.time import Instant

_DONE = ("ScaleDownNoCandidates", "ScaleDownNoNodeDeleted")


def unchanged_until(state: State) -> Instant | None:
    """Return the time from which a tick may differ from the last one without a change; None if any may."""
    settings, memory = state.settings, state.memory
    down, found, until = memory.scale_down, state.scale_down_cache.evaluation, quiet_until(state)
    timed = (
        state.holds
        or not settings.scale_down_enabled
        # These have steps and memories of their own, in which time plays a part.
        or settings.scale_down_delay_type_local
        or settings.steer_pods_to_fuller_nodes
        or settings.consolidation_enabled
        or settings.remember_demand > 0
        or settings.node_autoprovisioning_enabled
        or memory.degradation.loops
        or not down.restored
        or down.last_update is None
        or down.unneeded
        or down.unremovable
        or down.deletions
        or down.results
        or down.status.why
        or down.status.result not in _DONE
    )
    if timed or found is None or until is None:
        return None
    evaluation = found[1]
    assert isinstance(evaluation, Evaluation)
    if evaluation.removable or evaluation.failed or evaluation.not_simulated:
        return None
    forgets = forgotten_at(memory.new_pods) if counts_new_pods(settings) else None
    return min(until, evaluation.valid_until or FOREVER, forgets or FOREVER)


def is_on_time(state: State, now: Instant) -> bool:
    """Return whether the interval since the last evaluation is not the shortest so far."""
    down = state.memory.scale_down
    if down.last_update is None or down.shortest_interval is None:
        return False
    return now - down.last_update >= down.shortest_interval


def note_unchanged(state: State, now: Instant) -> None:
    """Set the memory to what a tick at rest leaves."""
    note_interval(state, now)
    state.memory.templates_at = now
