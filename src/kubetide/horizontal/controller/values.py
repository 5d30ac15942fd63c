"""Asks the custom and external metrics APIs: each distinct question once a tick."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kubetide.acting import in_parallel
from kubetide.horizontal.metrics.types import Question
from kubetide.horizontal.specs import Autoscaler
from kubetide.horizontal.values import Reply
from kubetide.horizontal.views import Key, ScaleView
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import CustomMetricSource, ExternalMetricSource

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
    """Reads what is not a resource's usage; without a source the answer is that there is no such API."""

    def __init__(self, custom: CustomMetricSource | None, external: ExternalMetricSource | None) -> None:
        self._custom = custom
        self._external = external

    async def read(
        self, specs: Mapping[Key, Autoscaler], scales: Mapping[Key, ScaleView], *, limit: int
    ) -> list[Reply]:
        """Gives the answers, ordered by question; one that fails harms only those who asked it.

        Args:
            limit: Questions in flight at once.
        """
        return await in_parallel(questions_of(specs, scales), self._ask, limit=limit)

    async def _ask(self, question: Question) -> Reply:
        try:
            if question.source == "external":
                return await self._ask_external(question)
            return await self._ask_custom(question)
        except MetricsError as error:
            return Reply(question, error=str(error))

    async def _ask_external(self, question: Question) -> Reply:
        if self._external is None:
            return Reply(question, error=_NO_EXTERNAL.format(metric=question.metric))
        found = await self._external.external_values(
            question.metric, namespace=question.namespace, selector=question.selector
        )
        return Reply(question, milli=np.array(found.milli, np.int64))

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
            return Reply(question, pods=values.names, milli=values.milli)
        value = await self._custom.object_value(
            question.metric,
            namespace=question.namespace,
            api_version=question.api_version,
            kind=question.kind,
            name=question.name,
            selector=question.selector,
        )
        return Reply(question, milli=np.array([value.milli], np.int64))


def questions_of(specs: Mapping[Key, Autoscaler], scales: Mapping[Key, ScaleView]) -> list[Question]:
    """Gives the distinct questions of the HPAs whose metrics play a part, ordered."""
    found: set[Question] = set()
    for key, spec in specs.items():
        scale = scales[key]
        # Below the minimum or above the maximum no metric is read; at zero one may be.
        if not scale.selector or scale.error or scale.spec_replicas > spec.maximum:
            continue
        if 0 < scale.spec_replicas < spec.minimum:
            continue
        for metric in spec.metrics:
            question = metric.question(scale.selector)
            if question is not None:
                found.add(question)
    return sorted(found)
