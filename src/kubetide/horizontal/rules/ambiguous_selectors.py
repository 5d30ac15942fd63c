"""Whether the pods of an HPA's target can be told from those of other HPAs' targets.

Upstream reads the selector of a target in the same step as the metrics. So the selector of a target that has been off,
or outside of its bounds, ever since the loop began counts for nobody; one that has been read counts from then on.

Source: horizontal controller v1.36.
"""

from __future__ import annotations

from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.views import ScaleView
from kubetide.horizontal.rules.bounds import metrics_decide
from kubetide.horizontal.rules.metric_results import Problem, inactive
from kubetide.horizontal.state import State
from kubetide.horizontal.status import conditions as say
from kubetide.horizontal.status import events
from kubetide.objects.meta import Key


def selector_problem(state: State, spec: Autoscaler, scale: ScaleView) -> Problem | None:
    """Return why the pods of the target cannot be distinguished from those of other HPAs' targets; None where they can."""
    if not scale.selector:
        text = "selector is required"
        event = events.EventNote(events.WARNING, "SelectorRequired", text)
        return Problem(text, say.SELECTOR_MISSING, event)
    claimants = state.table.members.claimants(spec.key)
    if len(claimants) <= 1:
        return None
    claimants = tuple(key for key in claimants if key == spec.key or _counts(state, key))
    if len(claimants) <= 1:
        return None
    newer = state.settings.minor >= 37
    # v1.37 stops at the second one that it finds, whichever that is.
    names = " ".join(f"{namespace}/{name}" for namespace, name in (claimants[:2] if newer else claimants))
    by = f"more than one HPA (e.g. [{names}])" if newer else f"multiple HPAs: [{names}]"
    text = f"pods by selector {scale.selector} are controlled by {by}"
    return inactive("AmbiguousSelector", text)


def note_read_selectors(state: State) -> None:
    """Note whose selectors have been read in this tick; to be called before statuses change."""
    for key in tuple(state.unread_selectors):
        if _counts(state, key):
            del state.unread_selectors[key]


def _counts(state: State, key: Key) -> bool:
    """Return whether the selector of an HPA's target has been read, or is in this tick."""
    if key not in state.unread_selectors:
        return True
    scale = state.scales.get(key)
    if scale is None or scale.error or not scale.selector:
        return False
    return metrics_decide(state, state.specs[key], scale.spec_replicas)
