"""Whether metrics decide about a target: not about one that is off, or outside of its bounds.

Source: horizontal controller v1.36.
"""

from __future__ import annotations

from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.state import State
from kubetide.horizontal.status import conditions as say


def metrics_decide(state: State, spec: Autoscaler, current: int) -> bool:
    """Return whether a target with ``current`` replicas is scaled by its metrics."""
    return _may_come_back(state, spec) if current == 0 else spec.minimum <= current <= spec.maximum


def _may_come_back(state: State, spec: Autoscaler) -> bool:
    """Return whether a target at zero is one that this loop has scaled to zero and may scale up again."""
    if not state.settings.scales_from_zero:
        return False
    went = say.condition_status(state.statuses[spec.key].conditions, say.SCALED_TO_ZERO) == "True"
    return went and (spec.minimum != 0 or spec.external)
