"""Usage from external metrics: one query per pod and resource.

Source: VPA 1.8.1, pkg/recommender/input/metrics, the external metrics client.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from kubetide.acting import in_parallel
from kubetide.objects.pod import Pod
from kubetide.ports.errors import NoSeries
from kubetide.ports.metrics import ExternalMetricSource, ExternalValues
from kubetide.units.selectors import SelectorError
from kubetide.vertical.recommender.facts.views import Samples, VpaView
from kubetide.vertical.recommender.settings import Settings


class _Question(NamedTuple):
    namespace: str
    pod: str
    selector: str
    resource: str
    metric: str


class ExternalUsage:
    """Queries the external metrics API for the usage of pods' containers.

    A series says its container in the label ``container-name-label``. A pod that no VPA selects is not asked for.
    """

    def __init__(self, source: ExternalMetricSource, settings: Settings) -> None:
        self._source = source
        self._settings = settings
        names = {
            "cpu": settings.external_metrics_cpu_metric,
            "memory": settings.external_metrics_memory_metric,
        }
        self._metrics = {resource: name for resource, name in names.items() if name}

    async def samples(self, vpas: Iterable[VpaView], pods: Iterable[Pod]) -> Samples:
        """Return the samples of all pods that a VPA selects; a resource without a series counts as 0.

        Raises: MetricsError where one question has no answer.
        """
        asked = self._questions(vpas, pods)
        answers = await in_parallel(asked, self._ask, limit=max(self._settings.update_worker_count, 1))
        used: dict[tuple[str, str], dict[str, dict[str, int]]] = {}
        times: dict[tuple[str, str], int] = {}
        for question, answer in zip(asked, answers, strict=True):
            if answer is None:
                continue
            key = question.namespace, question.pod
            times.setdefault(key, answer.timestamp_ns)
            containers = used.setdefault(key, {})
            for milli, labels in zip(answer.milli, answer.labels, strict=True):
                name = labels.get(self._settings.container_name_label)
                if name is not None:
                    containers.setdefault(name, {})[question.resource] = milli
        return _as_samples(used, times)

    def _questions(self, vpas: Iterable[VpaView], pods: Iterable[Pod]) -> list[_Question]:
        by_namespace: dict[str, list[Pod]] = {}
        for pod in pods:
            if pod.status.phase != "Pending":
                by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
        found: dict[_Question, None] = {}
        for vpa in vpas:
            if not self._settings.serves(vpa.namespace, vpa.recommenders):
                continue
            try:
                selector = vpa.target.read()
            except SelectorError:
                continue  # the state says so
            names = sorted(
                pod.metadata.name
                for pod in by_namespace.get(vpa.namespace, ())
                if selector.matches(pod.metadata.labels or {})
            )
            for name in names:
                text = ",".join(filter(None, (vpa.target.selector, f"pod={name}")))
                for resource, metric in self._metrics.items():
                    found[_Question(vpa.namespace, name, text, resource, metric)] = None
        return list(found)

    async def _ask(self, question: _Question) -> ExternalValues | None:
        try:
            return await self._source.external_values(
                question.metric, namespace=question.namespace, selector=question.selector
            )
        except NoSeries:
            return None


def _as_samples(
    used: dict[tuple[str, str], dict[str, dict[str, int]]], times: dict[tuple[str, str], int]
) -> Samples:
    keys = list(used)
    rows: Sequence[tuple[str, dict[str, int]]] = [
        (name, usage) for key in keys for name, usage in used[key].items()
    ]
    return Samples(
        namespaces=tuple(namespace for namespace, _ in keys),
        names=tuple(name for _, name in keys),
        times=np.array([times[key] for key in keys], np.int64),
        first=np.cumsum([0, *(len(used[key]) for key in keys)], dtype=np.int64),
        containers=tuple(name for name, _ in rows),
        cpu=np.array([usage.get("cpu", 0) for _, usage in rows], np.int64),
        memory=np.array([-(-usage.get("memory", 0) // 1000) for _, usage in rows], np.int64),
    )
