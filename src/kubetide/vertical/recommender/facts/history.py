"""History from Prometheus: the queries at the start, and how to read the answers.

Source: VPA 1.8, pkg/recommender/input/history.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable

import msgspec
import numpy as np

from kubetide.objects.meta import Key
from kubetide.ports.metrics import SeriesQuery, TimeSeries
from kubetide.units.time import Duration, Instant
from kubetide.units.vectors import Int64Vector
from kubetide.vertical.recommender.facts.views import History, Usage
from kubetide.vertical.recommender.usage.buckets import MAX_AMOUNT

Series = TimeSeries


class HistorySettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Upstream's flags of the history provider, under their own names.

    Attributes:
        history_length, history_resolution: Durations as Prometheus writes them, such as ``8d`` and ``1h``.
        prometheus_cadvisor_job_name: Empty for no matcher of the job.
        pod_label_prefix: What labels of ``metric_for_pod_labels`` have before the pod's own names.
        pod_namespace_label, pod_name_label: Labels of ``metric_for_pod_labels``.
        container_namespace_label, container_pod_name_label, container_name_label: Labels of usage metrics.
    """

    history_length: str = "8d"
    history_resolution: str = "1h"
    prometheus_cadvisor_job_name: str = "kubernetes-cadvisor"
    history_cpu_metric: str = "container_cpu_usage_seconds_total"
    history_memory_metric: str = "container_memory_working_set_bytes"
    pod_label_prefix: str = "pod_label_"
    metric_for_pod_labels: str = 'up{job="kubernetes-pods"}'
    pod_namespace_label: str = "kubernetes_namespace"
    pod_name_label: str = "kubernetes_pod_name"
    container_namespace_label: str = "namespace"
    container_pod_name_label: str = "pod_name"
    container_name_label: str = "name"

    def check_history(self) -> None:
        """Raise ValueError for invalid or zero durations, and for more points than Prometheus returns."""
        for flag in ("history-length", "history-resolution"):
            text = getattr(self, flag.replace("-", "_"))
            if prometheus_duration(text, flag) <= 0:
                raise ValueError(f"{flag}: {text!r} must be greater than 0")
        points = prometheus_duration(self.history_length) // prometheus_duration(self.history_resolution)
        if points > _MOST_POINTS:
            raise ValueError(
                f"history-length {self.history_length} in steps of {self.history_resolution} is {points} points a "
                f"series; Prometheus answers with {_MOST_POINTS} at most, so make history-resolution longer"
            )


_UNITS = (("y", 365 * 86400), ("w", 7 * 86400), ("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_DURATION = re.compile("".join(f"(?:([0-9]+){unit})?" for unit, _ in _UNITS) + "(?:([0-9]+)ms)?", re.ASCII)
_MOST_POINTS = 11_000
_LONGEST_DIGITS = 9


def prometheus_duration(text: str, flag: str = "duration") -> Duration:
    """Return a duration as Prometheus writes it. Raises: ValueError."""
    found = _DURATION.fullmatch(text)
    if text == "0":
        return Duration(0)
    if not text or found is None or any(len(one or "") > _LONGEST_DIGITS for one in found.groups()):
        raise ValueError(f"{flag}: {text!r} is no duration of Prometheus; write for example 8d, 1h or 1h30m")
    *whole, thousandths = (int(one or 0) for one in found.groups())
    total = sum(count * size for count, (_, size) in zip(whole, _UNITS, strict=True))
    return Duration(total * 10**9 + thousandths * 10**6)


_FAR = 1e9 * 9
"""Seconds; later times do not fit into nanoseconds."""


class HistoryError(ValueError):
    """An answer of Prometheus without a required label; the text names the series and the label."""


def queries(
    settings: HistorySettings, namespace: str, now: Instant
) -> tuple[SeriesQuery, SeriesQuery, SeriesQuery]:
    """Return the queries for CPU, for memory and for the labels of pods; ``namespace`` is empty for all."""
    pod, name = settings.container_pod_name_label, settings.container_name_label
    matchers = [f'{pod}=~".+"', f'{name}!="POD"', f'{name}!=""']
    if settings.prometheus_cadvisor_job_name:
        matchers.insert(0, f'job="{settings.prometheus_cadvisor_job_name}"')
    if namespace:
        matchers.append(f'{settings.container_namespace_label}="{namespace}"')
    inside = ", ".join(matchers)
    step = prometheus_duration(settings.history_resolution)
    start = Instant(now - prometheus_duration(settings.history_length))
    cpu = f"rate({settings.history_cpu_metric}{{{inside}}}[{settings.history_resolution}])"
    memory = f"{settings.history_memory_metric}{{{inside}}}"
    return (
        SeriesQuery(cpu, now, start, step),
        SeriesQuery(memory, now, start, step),
        SeriesQuery(settings.metric_for_pod_labels, now),
    )


_NOTHING = np.empty((2, 0), np.int64)


class HistoryBuilder:
    """Joins the series of the three answers one by one; holds 16 bytes per sample."""

    def __init__(self, settings: HistorySettings) -> None:
        self._settings = settings
        self._used: dict[Key, dict[str, list[Int64Vector]]] = {}
        self._latest: dict[Key, tuple[Instant, dict[str, str]]] = {}

    def add_cpu(self, series: TimeSeries) -> None:
        """Add a series of CPU in cores. Raises: HistoryError for a series without a pod or container."""
        self._add(0, series, _millicores)

    def add_memory(self, series: TimeSeries) -> None:
        """Add a series of memory in bytes. Raises: HistoryError."""
        self._add(1, series, _bytes)

    def _add(self, place: int, series: TimeSeries, amount: Callable[[float], int]) -> None:
        pod, container = _container(self._settings, series)
        columns = self._used.setdefault(pod, {}).setdefault(container, [_NOTHING, _NOTHING])
        samples = _samples(series, amount)
        if columns[place].size:
            samples = np.concatenate([columns[place], samples], axis=1)
        columns[place] = samples[:, np.argsort(samples[0], kind="stable")]

    def add_labels(self, series: TimeSeries) -> None:
        """Add a pod's labels; the newest ones win. Raises: HistoryError."""
        settings = self._settings
        pod = _named(series, settings.pod_namespace_label), _named(series, settings.pod_name_label)
        self._used.setdefault(pod, {})
        seen = max((_instant(second) for second, _ in series.values), default=None)
        if seen is not None and (pod not in self._latest or seen > self._latest[pod][0]):
            self._latest[pod] = seen, _pod_labels(settings, series)

    def pods(self) -> tuple[History, ...]:
        """Return the usage of each pod's containers, ordered by namespace and name."""
        return tuple(
            History(
                *pod,
                labels=self._latest[pod][1] if pod in self._latest else {},
                containers={name: Usage(*columns) for name, columns in sorted(self._used[pod].items())},
            )
            for pod in sorted(self._used)
        )


def read_history(
    settings: HistorySettings,
    cpu: Iterable[TimeSeries],
    memory: Iterable[TimeSeries],
    labels: Iterable[TimeSeries],
) -> tuple[History, ...]:
    """Return the usage of each pod's containers, ordered by namespace and name.

    Raises: HistoryError for a series without the labels that say whose it is; no history is then used.
    """
    builder = HistoryBuilder(settings)
    for answer, add in ((cpu, builder.add_cpu), (memory, builder.add_memory), (labels, builder.add_labels)):
        for one in answer:
            add(one)
    return builder.pods()


def _samples(series: TimeSeries, amount: Callable[[float], int]) -> Int64Vector:
    """Return (2, samples) times in ns and amounts; what is no number is left out."""
    found = []
    for second, text in series.values:
        try:
            value = float(text)
        except ValueError:
            continue
        if not math.isnan(value):
            found.append((_instant(second), amount(value)))
    return np.array(found, np.int64).T if found else _NOTHING


def _instant(second: float) -> Instant:
    if not abs(second) < _FAR:
        raise HistoryError(f"{second} is not a time in Unix seconds")
    # Prometheus' times are whole milliseconds.
    return Instant(round(second * 1000) * 1_000_000)


def _millicores(cores: float) -> int:
    return _bytes(cores * 1000.0)


def _bytes(value: float) -> int:
    return int(min(max(value, 0.0), float(MAX_AMOUNT)))


def _container(settings: HistorySettings, series: TimeSeries) -> tuple[Key, str]:
    namespace = _named(series, settings.container_namespace_label)
    pod = _named(series, settings.container_pod_name_label)
    return (namespace, pod), _named(series, settings.container_name_label)


def _named(series: Series, label: str) -> str:
    found = series.metric.get(label)
    if found is None:
        raise HistoryError(f"no {label} label in the series {series.metric}")
    return found


def _pod_labels(settings: HistorySettings, series: TimeSeries) -> dict[str, str]:
    prefix = settings.pod_label_prefix
    if not prefix:
        return {}  # as upstream: a label counts whose name is shorter without the prefix
    return {name[len(prefix) :]: value for name, value in series.metric.items() if name.startswith(prefix)}
