"""The decision without one of the rules that hold a proposal back.

The same functions decide again from what was known at the time, with one rule taken out; nothing is
estimated. Bounds always hold: a number outside of them is refused by the API anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kubetide.horizontal.decision import Verdict
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.metrics.registry import propose
from kubetide.horizontal.metrics.types import MetricFailure, Proposal, Tolerance
from kubetide.horizontal.rules.evaluate import limit_of
from kubetide.horizontal.rules.windows import stabilized_of
from kubetide.horizontal.state import State
from kubetide.units.time import Instant

_NO_TOLERANCE = Tolerance(0.0, 0.0)


class WhatIf(msgspec.Struct, frozen=True):
    """The replicas that would have been decided without one rule.

    Attributes:
        rule: ``stabilization``, ``policies`` or ``tolerance``.
        proposal: The largest proposal; only without tolerance another one than was made.
        stabilized: After stabilization; ``desired`` after limits.
    """

    rule: str
    proposal: int
    stabilized: int
    desired: int


def what_if_lines(found: Sequence[WhatIf], decided: int) -> list[str]:
    """Return a line for each rule that made a difference, and one for those that made none."""
    lines = [
        f"without {one.rule}: {one.desired} instead of {decided}" for one in found if one.desired != decided
    ]
    same = [one.rule for one in found if one.desired == decided]
    if not same:
        return lines
    *most, last = same
    return [*lines, f"without {', '.join(most)}{' or ' if most else ''}{last}: the same"]


def what_ifs(state: State, spec: Autoscaler, verdict: Verdict, now: Instant) -> tuple[WhatIf, ...]:
    """Return the decisions without each rule; none if no proposal was held back."""
    if verdict.raw is None or verdict.stabilized is None:
        return ()
    raw, held = verdict.raw, verdict.stabilized
    unheld = limit_of(spec, state, raw, verdict.current, now).replicas
    bounded = min(max(held, spec.minimum), spec.maximum)
    found = [WhatIf("stabilization", raw, raw, unheld), WhatIf("policies", raw, held, bounded)]
    best = _best_without_tolerance(spec, verdict)
    if best is not None:
        again = stabilized_of(spec, state, best, verdict.current, now).replicas
        limited = limit_of(spec, state, again, verdict.current, now).replicas
        found.append(WhatIf("tolerance", best, again, limited))
    return tuple(found)


def _best_without_tolerance(spec: Autoscaler, verdict: Verdict) -> int | None:
    """Return the largest proposal if every ratio counted; None if it is not metrics that made the number."""
    if verdict.grounds is None:
        return None
    proposals, known = verdict.grounds()
    if _largest(proposals) != verdict.raw:
        return None  # a fallback or learned headroom stands in for them
    return _largest(
        propose(metric, seen, verdict.current, _NO_TOLERANCE)
        for metric, seen in zip(spec.metrics, known, strict=True)
    )


def _largest(proposals: Iterable[Proposal | MetricFailure]) -> int | None:
    numbers = [found.replicas for found in proposals if isinstance(found, Proposal)]
    return max(0, *numbers) if numbers else None
