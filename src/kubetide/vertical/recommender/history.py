"""History from Prometheus: what to ask it at the start, and what its answers say.

Source: VPA 1.8, pkg/recommender/input/history.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from kubetide.units.time import Duration, Instant, hours
from kubetide.vertical.recommender.buckets import MAX_AMOUNT
from kubetide.vertical.recommender.views import History, Key, Usage


class HistorySettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Upstream's flags of the history provider, under their own names.

    Attributes:
        history_length, history_resolution: As durations; ``history_resolution_text`` as the flag spells it.
        prometheus_cadvisor_job_name: Empty for no matcher of the job.
        pod_label_prefix: What labels of ``metric_for_pod_labels`` have before the pod's own names.
        pod_namespace_label, pod_name_label: Labels of ``metric_for_pod_labels``.
        container_namespace_label, container_pod_name_label, container_name_label: Labels of usage metrics.
    """

    history_length: Duration = hours(8 * 24)
    history_resolution: Duration = hours(1)
    history_resolution_text: str = "1h"
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


_FAR = 1e9 * 9
"""Seconds; later times do not fit into nanoseconds."""


class HistoryError(ValueError):
    """An answer of Prometheus that history cannot be read from; it says which series and which label."""


class Series(msgspec.Struct, frozen=True):
    """One series of a matrix: its labels, and pairs of Unix seconds and a number as text."""

    metric: dict[str, str]
    values: tuple[tuple[float, str], ...]


class Query(msgspec.Struct, frozen=True, omit_defaults=True):
    """What Prometheus is asked: at ``end`` alone, or from ``start`` to ``end`` in steps."""

    query: str
    end: Instant
    start: Instant | None = None
    step: Duration = Duration(0)


def queries(settings: HistorySettings, namespace: str, now: Instant) -> tuple[Query, Query, Query]:
    """Return the questions for CPU, for memory and for the labels of pods; ``namespace`` is empty for all."""
    pod, name = settings.container_pod_name_label, settings.container_name_label
    matchers = [f'{pod}=~".+"', f'{name}!="POD"', f'{name}!=""']
    if settings.prometheus_cadvisor_job_name:
        matchers.insert(0, f'job="{settings.prometheus_cadvisor_job_name}"')
    if namespace:
        matchers.append(f'{settings.container_namespace_label}="{namespace}"')
    inside = ", ".join(matchers)
    start = Instant(now - settings.history_length)
    cpu = f"rate({settings.history_cpu_metric}{{{inside}}}[{settings.history_resolution_text}])"
    memory = f"{settings.history_memory_metric}{{{inside}}}"
    step = settings.history_resolution
    return (
        Query(cpu, now, start, step),
        Query(memory, now, start, step),
        Query(settings.metric_for_pod_labels, now),
    )


def read_history(
    settings: HistorySettings, cpu: Sequence[Series], memory: Sequence[Series], labels: Sequence[Series]
) -> tuple[History, ...]:
    """Return what each pod's containers have used, ordered by namespace and name.

    Raises: HistoryError for a series without the labels that say whose it is; no history is then used.
    """
    used: dict[Key, dict[str, list[tuple[tuple[Instant, int], ...]]]] = {}
    for place, (series, amount) in enumerate(((cpu, _millicores), (memory, _bytes))):
        for one in series:
            pod, container = _container(settings, one)
            columns = used.setdefault(pod, {}).setdefault(container, [(), ()])
            columns[place] = _merged(columns[place], _samples(one, amount))
    latest: dict[Key, tuple[Instant, dict[str, str]]] = {}
    for one in labels:
        pod = _named(one, settings.pod_namespace_label), _named(one, settings.pod_name_label)
        used.setdefault(pod, {})
        seen = max((_instant(second) for second, _ in one.values), default=None)
        if seen is not None and (pod not in latest or seen > latest[pod][0]):
            latest[pod] = seen, _pod_labels(settings, one)
    return tuple(
        History(
            *pod,
            labels=latest[pod][1] if pod in latest else {},
            containers={name: Usage(*columns) for name, columns in sorted(used[pod].items())},
        )
        for pod in sorted(used)
    )


def _merged(
    old: tuple[tuple[Instant, int], ...], new: list[tuple[Instant, int]]
) -> tuple[tuple[Instant, int], ...]:
    return tuple(sorted([*old, *new], key=lambda sample: sample[0]))


def _samples(series: Series, amount: Callable[[float], int]) -> list[tuple[Instant, int]]:
    found = []
    for second, text in series.values:
        try:
            value = float(text)
        except ValueError:
            continue
        if not math.isnan(value):
            found.append((_instant(second), amount(value)))
    return found


def _instant(second: float) -> Instant:
    if not abs(second) < _FAR:
        raise HistoryError(f"{second} is not a time in Unix seconds")
    # Prometheus' times are whole milliseconds.
    return Instant(round(second * 1000) * 1_000_000)


def _millicores(cores: float) -> int:
    return _bytes(cores * 1000.0)


def _bytes(value: float) -> int:
    return int(min(max(value, 0.0), float(MAX_AMOUNT)))


def _container(settings: HistorySettings, series: Series) -> tuple[Key, str]:
    namespace = _named(series, settings.container_namespace_label)
    pod = _named(series, settings.container_pod_name_label)
    return (namespace, pod), _named(series, settings.container_name_label)


def _named(series: Series, label: str) -> str:
    found = series.metric.get(label)
    if found is None:
        raise HistoryError(f"no {label} label in the series {series.metric}")
    return found


def _pod_labels(settings: HistorySettings, series: Series) -> dict[str, str]:
    prefix = settings.pod_label_prefix
    return {name[len(prefix) :]: value for name, value in series.metric.items() if name.startswith(prefix)}
