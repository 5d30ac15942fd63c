"""The MetricSource port over a load model, as columns and as the objects of metrics.k8s.io.

Both views hold the same numbers: CPU is whole nano-cores, as metrics-server reports it, and read
in milli-units rounded up; memory is whole bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kubetide.embedded.load.layout import Layout, chosen
from kubetide.embedded.load.model import LoadModel, Usage
from kubetide.objects.kinds import NODE_METRICS, POD_METRICS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.metrics import ContainerMetrics, NodeMetrics, PodMetrics
from kubetide.ports.clock import Clock
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import PodSamples, ResourceUsage
from kubetide.units.selectors import SelectorError
from kubetide.units.time import ZERO, Duration, Instant, format_duration, format_rfc3339
from kubetide.units.vectors import BoolVector, Int64Vector

_NANO_PER_MILLI = 1_000_000


@dataclass(frozen=True)
class _View:
    """The part of a layout that a request asks for, and the columns that are the same at each; ``containers`` None means all."""

    containers: Int64Vector | None
    names: tuple[str, ...]
    namespaces: tuple[str, ...]
    first: Int64Vector
    container_names: tuple[str, ...]
    windows: Int64Vector
    present: BoolVector


class EmbeddedMetrics:
    """Usage of the Running pods of a load model, with a delay as a scraping server has it."""

    def __init__(self, model: LoadModel, clock: Clock, *, scrape_delay: Duration = ZERO) -> None:
        self._model = model
        self._clock = clock
        self._delay = scrape_delay
        model.keep(scrape_delay)
        self._views: dict[tuple[str, str], tuple[Layout, _View]] = {}

    async def pod_samples(self, namespace: str = "", labels: str = "") -> PodSamples:
        """Return the samples of the newest step that is older than the delay.

        Raises: MetricsError for a selector that cannot be read.
        """
        usage = self._usage()
        if usage is None:
            return _NOTHING
        view = self._view(usage.layout, namespace, labels)
        nano, memory = _by_container(usage)
        if view.containers is not None:
            nano, memory = nano[view.containers], memory[view.containers]
        present = view.present
        return PodSamples(
            namespaces=view.namespaces,
            names=view.names,
            timestamp_ns=np.full(len(view.names), usage.end, np.int64),
            window_ns=view.windows,
            first=view.first,
            containers=view.container_names,
            usage={
                "cpu": ResourceUsage(-(-nano // _NANO_PER_MILLI), present),
                "memory": ResourceUsage(memory * 1000, present),
            },
        )

    def pod_metrics(self) -> list[PodMetrics]:
        """Return the same samples as API objects, ordered by namespace and name."""
        usage = self._usage()
        if usage is None:
            return []
        nano, memory = (column.tolist() for column in _by_container(usage))
        layout, first = usage.layout, usage.layout.first.tolist()
        timestamp, window = format_rfc3339(usage.end), format_duration(self._model.step)
        objects = [
            PodMetrics(
                api_version=POD_METRICS.api_version,
                kind=POD_METRICS.kind,
                metadata=ObjectMeta(
                    name=pod.metadata.name,
                    namespace=pod.metadata.namespace,
                    labels=pod.metadata.labels,
                    creation_timestamp=timestamp,
                ),
                timestamp=timestamp,
                window=window,
                containers=tuple(
                    ContainerMetrics(
                        name=layout.containers[c], usage={"cpu": f"{nano[c]}n", "memory": str(memory[c])}
                    )
                    for c in range(first[number], first[number + 1])
                ),
            )
            for number, pod in enumerate(layout.pods)
        ]
        return sorted(objects, key=lambda item: (item.metadata.namespace, item.metadata.name))

    def node_metrics(self) -> list[NodeMetrics]:
        """Return what the pods of each node use together, ordered by name."""
        usage = self._usage()
        if usage is None:
            return []
        nano, memory = _by_container(usage)
        owner = np.repeat(np.arange(len(usage.layout.names)), np.diff(usage.layout.first)).tolist()
        totals: dict[str, list[int]] = {}
        for pod, cpu, held in zip(owner, nano.tolist(), memory.tolist(), strict=True):
            total = totals.setdefault(usage.layout.nodes[pod], [0, 0])
            total[0] += cpu
            total[1] += held
        timestamp, window = format_rfc3339(usage.end), format_duration(self._model.step)
        return [
            NodeMetrics(
                api_version=NODE_METRICS.api_version,
                kind=NODE_METRICS.kind,
                metadata=ObjectMeta(name=name, creation_timestamp=timestamp),
                timestamp=timestamp,
                window=window,
                usage={"cpu": f"{cpu}n", "memory": str(held)},
            )
            for name, (cpu, held) in sorted(totals.items())
        ]

    def _usage(self) -> Usage | None:
        return self._model.usage(Instant(self._clock.now() - self._delay))

    def _view(self, layout: Layout, namespace: str, labels: str) -> _View:
        """The view of a request; the one before is given again while its pods are the same."""
        held = self._views.get((namespace, labels))
        if held is not None and held[0] is layout:
            return held[1]
        view = _cut(layout, namespace, labels, self._model.step)
        if held is not None and held[1].names == view.names and held[1].namespaces == view.namespaces:
            view = replace(view, names=held[1].names, namespaces=held[1].namespaces)
        self._views[namespace, labels] = layout, view
        return view


def _cut(layout: Layout, namespace: str, labels: str, step: Duration) -> _View:
    if not namespace and not labels:
        return _View(
            containers=None,
            names=layout.names,
            namespaces=layout.namespaces,
            first=layout.first,
            container_names=layout.containers,
            windows=np.full(len(layout.names), step, np.int64),
            present=np.ones(len(layout.containers), np.bool_),
        )
    try:
        numbers = chosen(layout, namespace, labels)
    except SelectorError as error:
        raise MetricsError(str(error)) from error
    pods = np.array(numbers, np.int64)
    counts = np.diff(layout.first)[pods]
    first = np.zeros(len(pods) + 1, np.int64)
    np.cumsum(counts, out=first[1:])
    containers = np.repeat(layout.first[:-1][pods] - first[:-1], counts) + np.arange(int(first[-1]))
    return _View(
        containers=containers,
        names=tuple(layout.names[number] for number in numbers),
        namespaces=tuple(layout.namespaces[number] for number in numbers),
        first=first,
        container_names=tuple(layout.containers[number] for number in containers.tolist()),
        windows=np.full(len(numbers), step, np.int64),
        present=np.ones(len(containers), np.bool_),
    )


def _by_container(usage: Usage) -> tuple[Int64Vector, Int64Vector]:
    """Nano-CPU and bytes of each container."""
    layout = usage.layout
    if len(layout.workers) == len(layout.containers):
        return usage.cpu_nano, usage.memory  # each pod has one container
    nano, memory = layout.idle_nano.copy(), layout.idle_memory.copy()
    nano[layout.workers], memory[layout.workers] = usage.cpu_nano, usage.memory
    return nano, memory


_NOTHING = PodSamples(
    namespaces=(),
    names=(),
    timestamp_ns=np.zeros(0, np.int64),
    window_ns=np.zeros(0, np.int64),
    first=np.zeros(1, np.int64),
    containers=(),
    usage={
        "cpu": ResourceUsage(np.zeros(0, np.int64), np.zeros(0, np.bool_)),
        "memory": ResourceUsage(np.zeros(0, np.int64), np.zeros(0, np.bool_)),
    },
)
