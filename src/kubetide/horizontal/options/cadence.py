"""A sync period per HPA, longer than the loop's (annotation ``sync-period``)."""

from __future__ import annotations

from kubetide.units.time import Duration, Instant


def is_due(period: Duration | None, tick: Duration, last: int | None, now: Instant) -> bool:
    """Return whether this tick evaluates the HPA.

    Args:
        period: The least time between two decisions, rounded up to ticks; None is every tick.
        tick: The loop's own period. A tick that comes a little early still counts: half of it is let pass.
        last: When it was decided about last, ns; None if never.
    """
    if period is None or last is None:
        return True
    ticks = -(-period // tick)
    return now - last >= ticks * tick - tick // 2
