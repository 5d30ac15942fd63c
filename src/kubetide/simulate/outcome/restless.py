"""HPAs that change direction again and again: the notice at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from kubetide.horizontal.options.annotations import HOLD_UNTIL_READY
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.simulate.outcome.timeline import Mark

_LEAST = 6
_AN_HOUR = 12.0
"""Changes of direction from which a person wants to know."""


def restless(marks: Sequence[Mark], hpas: Iterable[HorizontalPodAutoscaler], hours: float) -> tuple[str, ...]:
    """Return a sentence for each HPA that turned at least 6 times, and 12 times an hour on average."""
    turns = _turns(marks)
    found = []
    for hpa in sorted(hpas, key=lambda one: (one.metadata.namespace, one.metadata.name)):
        name = f"{hpa.metadata.namespace}/{hpa.metadata.name}"
        number = turns.get(name, 0)
        if number >= _LEAST and hours > 0 and number / hours >= _AN_HOUR:
            found.append(
                f"HorizontalPodAutoscaler {name}: changed direction {number} times in {hours:.1f} h; {_help(hpa)}"
            )
    return tuple(found)


def _turns(marks: Sequence[Mark]) -> dict[str, int]:
    """Return how many changes went against the one before, by HPA."""
    changes: dict[str, list[int]] = {}
    for mark in marks:
        if mark.loop == "horizontal" and mark.change:
            changes.setdefault(mark.subject, []).append(mark.change)
    return {name: sum((a > 0) != (b > 0) for a, b in pairwise(all_)) for name, all_ in changes.items()}


def _help(hpa: HorizontalPodAutoscaler) -> str:
    down = hpa.spec.behavior.scale_down if hpa.spec.behavior is not None else None
    window = None if down is None else down.stabilization_window_seconds
    if window == 0:
        held = (hpa.metadata.annotations or {}).get(HOLD_UNTIL_READY) == "true"
        more = "" if held else f', or annotate {HOLD_UNTIL_READY}: "true"'
        return f"its behavior.scaleDown.stabilizationWindowSeconds is 0: raise it{more}"
    return "raise behavior.scaleDown.stabilizationWindowSeconds or the tolerance"
