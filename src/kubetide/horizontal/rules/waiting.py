"""Which HPAs a tick does not decide about.

- Between two ticks only HPAs that are new, or whose spec is, are decided about (horizontal controller v1.37).
- An HPA may have a sync period of its own, longer than the loop's (annotation ``sync-period``).
"""

from __future__ import annotations

from kubetide.horizontal.state import State
from kubetide.objects.meta import Key
from kubetide.units.time import Duration, Instant, after


def is_waiting(state: State, key: Key, now: Instant) -> bool:
    """Return whether this tick does not decide about the HPA."""
    if state.early is not None:
        return key not in state.early
    due = due_at(state, key)
    # A tick that comes a little early still counts: half a period of the loop's is let pass.
    return due is not None and now < due - state.settings.sync_period // 2


def due_at(state: State, key: Key) -> Instant | None:
    """Return when an HPA with a sync period of its own is due next, on the loop's own ticks; None for any other one.

    None too if it has not been decided about yet, or if its scale cannot be read.
    """
    period, scale = state.specs[key].options.sync_period, state.scales.get(key)
    if period is None or scale is None or scale.error:
        return None
    known = state.options.get(key)
    if known is None or known.looked_at is None:
        return None
    tick = state.settings.sync_period
    return after(Instant(known.looked_at), Duration(-(-period // tick) * tick))
