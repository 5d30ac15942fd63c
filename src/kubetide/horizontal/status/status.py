"""The next status of an HPA, from the last one."""

from __future__ import annotations

import msgspec

from kubetide.horizontal.decision import Verdict
from kubetide.objects.hpa import HpaStatus
from kubetide.objects.meta import Condition


def action_of(before: int, after: int) -> str:
    """Return the label for a change of the number of replicas."""
    if after == before:
        return "none"
    return "scale_up" if after > before else "scale_down"


def changed_status(
    before: HpaStatus,
    verdict: Verdict,
    conditions: tuple[Condition, ...] | None,
    *,
    rescaled_at: str | None,
    settled: bool,
    generation: int | None,
) -> HpaStatus:
    """Return the new status.

    Without a scale only the conditions change. Else the status is made anew, with
    the generation as ``observedGeneration`` from v1.37 on, without any before; the desired number changes only in a
    tick that went to its end. ``currentReplicas`` is ``spec.replicas`` as it was read.

    Args:
        generation: What the status says that was observed; None for nothing.
    """
    if verdict.stage == "unread":
        return msgspec.structs.replace(before, conditions=conditions)
    return HpaStatus(
        observed_generation=generation,
        last_scale_time=rescaled_at or before.last_scale_time,
        current_replicas=verdict.current,
        desired_replicas=verdict.desired if settled else before.desired_replicas,
        current_metrics=verdict.metrics or None,
        conditions=conditions,
    )
