"""Usage from external metrics: one query per pod and resource.

Source: VPA 1.8.1, pkg/recommender/input/metrics, the external metrics client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from kubetide.acting import in_parallel
from kubetide.objects.pod import Pod
from kubetide.ports.errors import MetricsError, NoSeries
from kubetide.ports.metrics import ExternalMetricSource, ExternalValues
from kubetide.units.selectors import SelectorError
from kubetide.units.time import Duration, to_seconds
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
        self._failed: dict[_Question, str] = {}
        self._last: dict[_Question, None] = {}
        """Those that were asked in vain the last time."""

    @property
    def problem(self) -> str:
        """Which of the last questions had no answer, and why; empty where all had one."""
        for question, why in self._failed.items():
            metric = f"{question.metric} of pod {question.namespace}/{question.pod}"
            more = f" (and {len(self._failed) - 1} more)" if len(self._failed) > 1 else ""
            return f"{metric}{more}: {why}"
        return ""

    async def samples(
        self, vpas: Iterable[VpaView], pods: Iterable[Pod], *, patience: Duration
    ) -> Samples | None:
        """Return the samples of all pods that a VPA selects; a resource without a series counts as 0.

        A pod of which one question has no answer within ``patience`` has no sample; None where no question has one. Upstream has
        no samples at all after one failure. What was asked in vain the last time comes after all others.
        """
        asked = sorted(self._questions(vpas, pods), key=lambda one: one in self._last)
        self._failed, self._last = {}, {}
        until = asyncio.get_running_loop().time() + to_seconds(patience)
        answers = await in_parallel(
            asked, lambda one: self._ask(one, until), limit=max(self._settings.update_worker_count, 1)
        )
        if asked and len(self._failed) == len(asked):
            return None
        without = {(question.namespace, question.pod) for question in self._failed}
        used: dict[tuple[str, str], dict[str, dict[str, int]]] = {}
        times: dict[tuple[str, str], int] = {}
        for question, answer in zip(asked, answers, strict=True):
            key = question.namespace, question.pod
            if answer is None or key in without:
                continue
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

    async def _ask(self, question: _Question, until: float) -> ExternalValues | None:
        if asyncio.get_running_loop().time() >= until:
            self._failed[question] = "its turn did not come in time"
            return None
        try:
            async with asyncio.timeout_at(until):
                return await self._source.external_values(
                    question.metric, namespace=question.namespace, selector=question.selector
                )
        except NoSeries:
            return None
        except MetricsError as error:
            self._failed[question], self._last[question] = str(error), None
        except TimeoutError:
            self._failed[question], self._last[question] = "no answer in time", None
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
