"""Scale-downs that wait for the pods of the last scale-up (annotation ``hold-until-ready``).

With a stabilization window of 0 an HPA may flip at every sync under a constant load: a new pod takes its share of the
load before its own sample counts, so the others look idle, and what was added is taken away.
"""

from __future__ import annotations

from kubetide.units.time import Duration, Instant, between


def held_until_ready(
    desired: int, current: int, *, ready: int, rose_at: Instant | None, longest: Duration, now: Instant
) -> int:
    """Return ``current`` if a scale-down has to wait, else ``desired``.

    It waits while fewer pods than ``current`` are ready, and no longer than ``longest`` after the last scale-up: pods
    that do not become ready at all hold nothing for good.

    Args:
        ready: Pods that are Running and Ready and, by the rules of samples, count as such.
        rose_at: When the number was raised last; None for never.
    """
    waits = desired < current and ready < current and rose_at is not None and between(rose_at, now) < longest
    return current if waits else desired
