"""Quiet ticks: the last full tick found no demand, fault or pending change, and nothing has changed since.

Then the update and scale-up steps come to what they came to before, and the last view holds. Only what depends on the
passing of time alone could differ: intents begin to count at a known time, and a state that has anything else of that is
never quiet.
"""

from __future__ import annotations

from typing import Final

from kubetide.nodes.decision import Commands
from kubetide.nodes.registry.view import ClusterView
from kubetide.nodes.scale_up.pending.demand import demand_may_begin
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.nodes.templates.build import all_templates
from kubetide.units.time import Instant

FOREVER: Final = Instant((1 << 63) - 1)


def is_quiet(state: State, now: Instant) -> bool:
    """Return whether the last full tick's finding still holds."""
    until = quiet_until(state)
    return until is not None and now < until


def quiet_until(state: State) -> Instant | None:
    """Return until when the last full tick's finding holds while nothing changes; None where it does not hold."""
    # With a deletion in flight pods may want a place that only the memory of deletions knows of.
    if not state.memo or state.quiet is None or state.memory.scale_down.deletions:
        return None
    version, until = state.quiet
    return until if version == state.version else None


def note_quiet(state: State, view: ClusterView, commands: Commands, now: Instant) -> None:
    """Note whether this tick found nothing."""
    memory, tick = state.memory, state.tick
    busy = (
        commands.actions
        or commands.events
        or tick is None
        or tick.result != "ScaleUpNotNeeded"
        or tick.demand.placed
        or tick.demand.too_new
        or state.pending
        or state.capacity.requests
        or state.capacity.buffers
        or state.replacements
        or memory.missing_since
        or memory.scale_up_requests
        or memory.unregistered_since
        or memory.incorrect_sizes
        or memory.backoff
        or memory.stock_outs
        or memory.attempts
        or memory.nominated
        or memory.useless
        or memory.degradation.loops
        or memory.scale_down.deletions
        or view.failed
        or view.total.not_started
        or not view.healthy
        or not state.settings.scale_up_from_zero
        or state.settings.enforce_node_group_min_size
        or _has_young(state, now)
    )
    state.quiet = None if busy else (state.version, demand_may_begin(state, now) or FOREVER)


def quiet_tick(state: State, view: ClusterView) -> Tick:
    """Return a tick without demand; scale-down and consolidation read its templates."""
    state.tick = Tick(view, all_templates(state))
    state.snapshot.fork()
    return state.tick


def _has_young(state: State, now: Instant) -> bool:
    known = state.known_nodes(now)
    if not known.no_young:
        known.no_young = not any(_is_young(state, name, now) for name in state.nodes)
    return not known.no_young


def _is_young(state: State, name: str, now: Instant) -> bool:
    """Return whether the node may become a template by the passing of time alone."""
    health = state.health(name)
    return (
        not health.unready and not health.is_good_template(now) and not state.nodes[name].spec.unschedulable
    )
