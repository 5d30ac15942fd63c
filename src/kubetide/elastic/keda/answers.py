"""What the answers of an object's triggers say together: whether there is work, and the metrics of its HPA.

Source: KEDA 2.21, pkg/scaling/scale_handler, getScaledObjectState: cpu and memory triggers never say that there is
work; where there are no others, there always is some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubetide.elastic.keda.hpas import TriggerMetric, unnamed
from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.state import Answer
from kubetide.elastic.keda.triggers import Trigger


class TriggerAnswer(NamedTuple):
    """The answer of one trigger: its metrics as far as they are known, and why it did not answer; empty if it did.

    ``offline`` says that it was not asked, as virtual time has no sockets.
    """

    trigger: Trigger
    metrics: tuple[TriggerMetric, ...]
    active: bool
    error: str
    offline: bool = False

    @property
    def named(self) -> tuple[TriggerMetric, ...]:
        """The metrics; one without a value stands for those of a server that has not named them yet."""
        return self.metrics or ((unnamed(self.trigger),) if self.error else ())


def answer_of(source: Source, found: Sequence[TriggerAnswer]) -> Answer:
    """Return the answer of all triggers, without the size of the target."""
    metrics = tuple(asked for one in found for asked in one.metrics)
    if metrics or source.resources:
        # Without its metric the HPA would go by the others alone, and take away what this one needs.
        metrics = tuple(asked for one in found for asked in one.named)
    return Answer(
        source.key,
        active=any(one.active for one in found) or not source.triggers,
        error="; ".join(one.error for one in found if one.error),
        metrics=metrics,
        failed=tuple(one.trigger.place for one in found if one.error),
        offline=any(one.offline for one in found),
        by=tuple(asked.metric for one in found if one.active for asked in one.named),
    )
