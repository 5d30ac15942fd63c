"""Queries the custom and external metrics APIs: each distinct query once per tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

import numpy as np

from kubetide.acting import in_parallel
from kubetide.horizontal.controller.sources import GuardedSource
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.values import Reply
from kubetide.horizontal.facts.views import ScaleView
from kubetide.horizontal.metrics.types import Question
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import CustomMetricSource, ExternalMetricSource
from kubetide.units.vectors import Int64Vector

# What upstream's clients say where the API is not served; the first finds out by discovery.
_NO_CUSTOM = (
    "unable to fetch metrics from custom metrics API: "
    "no custom metrics API (custom.metrics.k8s.io) registered"
)
_NO_EXTERNAL = (
    "unable to fetch metrics from external metrics API: "
    "the server could not find the requested resource (get {metric}.external.metrics.k8s.io)"
)


class ValueReader:
    """Reads metrics other than resource usage; without a source the answer is that there is no such API."""

    def __init__(
        self, custom: CustomMetricSource | None, external: ExternalMetricSource | None, clock: Clock
    ) -> None:
        self._custom = custom
        self._external = external
        self.guards = GuardedSource("custom metrics", clock), GuardedSource("external metrics", clock)

    async def read(self, questions: Sequence[Question], *, limit: int) -> list[Reply]:
        """Return the answers in the order of the queries; a failed one affects only the HPAs that asked it.

        Args:
            limit: Questions in flight at once.
        """
        places = sorted(range(len(questions)), key=lambda at: self._is_slow(questions[at]))
        answers = await in_parallel([questions[at] for at in places], self._ask, limit=limit)
        return [reply for _, reply in sorted(zip(places, answers, strict=True), key=itemgetter(0))]

    def _is_slow(self, question: Question) -> bool:
        custom, external = self.guards
        return (external if question.source == "external" else custom).is_slow(question.metric)

    async def _ask(self, question: Question) -> Reply:
        custom, external = self.guards
        try:
            if question.source == "external":
                return await external.ask(lambda: self._ask_external(question), question.metric)
            return await custom.ask(lambda: self._ask_custom(question), question.metric)
        except MetricsError as error:
            return Reply(question, error=str(error))

    async def _ask_external(self, question: Question) -> Reply:
        if self._external is None:
            return Reply(question, error=_NO_EXTERNAL.format(metric=question.metric))
        found = await self._external.external_values(
            question.metric, namespace=question.namespace, selector=question.selector
        )
        measured = found.timestamp_ns if found.oldest_ns is None else found.oldest_ns
        return Reply(question, milli=_whole(found.milli, question.metric), measured=measured)

    async def _ask_custom(self, question: Question) -> Reply:
        if self._custom is None:
            return Reply(question, error=_NO_CUSTOM)
        if question.source == "pods":
            values = await self._custom.pod_values(
                question.metric,
                namespace=question.namespace,
                pods=question.pods,
                selector=question.selector,
            )
            if len(values.names) != len(values.milli):
                raise MetricsError(
                    f"the answer for {question.metric} has {len(values.names)} pods and {len(values.milli)} values"
                )
            return Reply(question, pods=values.names, milli=_whole(values.milli, question.metric))
        value = await self._custom.object_value(
            question.metric,
            namespace=question.namespace,
            api_version=question.api_version,
            kind=question.kind,
            name=question.name,
            selector=question.selector,
        )
        return Reply(question, milli=_whole([value.milli], question.metric), measured=value.timestamp_ns)


def _whole(milli: Sequence[int] | Int64Vector, metric: str) -> Int64Vector:
    """Return thousandths as whole numbers. Raises: MetricsError for what is none, such as NaN."""
    found = np.asarray(milli)
    if not found.size:
        return np.zeros(0, np.int64)
    if not np.issubdtype(found.dtype, np.integer):
        raise MetricsError(
            f"the answer for {metric} has a value that is no whole number of thousandths in 64 bits"
        )
    return found.astype(np.int64, copy=False)


def questions_of(
    specs: Mapping[Key, Autoscaler], scales: Mapping[Key, ScaleView], *, from_zero: bool
) -> list[Question]:
    """Return the distinct queries of the HPAs whose metrics matter in this tick, ordered.

    Args:
        from_zero: Whether a target may come back from zero at all.
    """
    found: set[Question] = set()
    for key, spec in specs.items():
        scale = scales[key]
        # Below the minimum or above the maximum no metric is read; at zero one may be, where the gate is on.
        if not scale.selector or scale.error or scale.spec_replicas > spec.maximum:
            continue
        if 0 < scale.spec_replicas < spec.minimum or (scale.spec_replicas == 0 and not from_zero):
            continue
        for metric in spec.metrics:
            question = metric.question(scale.selector)
            if question is not None:
                found.add(question)
    return sorted(found)
