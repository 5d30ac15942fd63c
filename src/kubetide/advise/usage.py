"""Usage of containers over a time, by workload: from the metrics API, or from history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from kubetide.advise.workloads import WorkloadKey
from kubetide.ports.metrics import PodSamples
from kubetide.units.time import Duration
from kubetide.units.vectors import Int64Vector
from kubetide.vertical.recommender.facts.views import History, Usage, samples_view

WorkloadOf = Callable[[str, str], WorkloadKey | None]
"""Returns the workload of a pod by namespace and name; None for one that is passed over."""


class Used(NamedTuple):
    """The usage of one container of a workload, over all of its pods.

    Attributes:
        cpu, memory: Samples in millicores and bytes.
        pods: How many there were on average while there were any.
        span: From the first sample to the last.
    """

    cpu: Int64Vector
    memory: Int64Vector
    pods: float
    span: Duration


class UsageLog:
    """Samples by pod and container, in order of time."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], list[tuple[int, int, int, int]]] = {}
        self._rounds = 0
        self._history: list[History] = []

    def add(self, samples: PodSamples) -> None:
        """Add an answer of the metrics API; a repeated sample counts once."""
        view = samples_view(samples)
        first = view.first.tolist()
        for at, (namespace, name) in enumerate(zip(view.namespaces, view.names, strict=True)):
            time = int(view.times[at])
            for row in range(first[at], first[at + 1]):
                seen = self._seen.setdefault((namespace, name, view.containers[row]), [])
                if not seen or time > seen[-1][0]:
                    seen.append((time, int(view.cpu[row]), int(view.memory[row]), self._rounds))
        self._rounds += 1

    def add_history(self, pods: Iterable[History]) -> None:
        """Add past usage, with the same times for all containers."""
        self._history += pods

    def by_container(self, workload_of: WorkloadOf) -> dict[WorkloadKey, dict[str, Used]]:
        """Return the usage of each container of each workload."""
        found: dict[WorkloadKey, dict[str, list[tuple[Usage, Int64Vector]]]] = {}
        for namespace, pod, container, usage, rounds in self._all():
            key = workload_of(namespace, pod)
            if key is not None:
                found.setdefault(key, {}).setdefault(container, []).append((usage, rounds))
        return {
            key: {name: _together(parts) for name, parts in containers.items()}
            for key, containers in found.items()
        }

    def history(self) -> Iterator[tuple[str, str, str, Usage]]:
        """Yield namespace, pod, container and usage."""
        for namespace, pod, container, usage, _ in self._all():
            yield namespace, pod, container, usage

    def _all(self) -> Iterator[tuple[str, str, str, Usage, Int64Vector]]:
        for (namespace, pod, container), seen in self._seen.items():
            time, cpu, memory, rounds = np.array(seen, np.int64).T
            yield namespace, pod, container, Usage(np.stack([time, cpu]), np.stack([time, memory])), rounds
        for one in self._history:
            for container, usage in one.containers.items():
                yield one.namespace, one.pod, container, usage, usage.memory[0]


def _together(parts: list[tuple[Usage, Int64Vector]]) -> Used:
    cpu = np.concatenate([usage.cpu for usage, _ in parts], axis=1)
    memory = np.concatenate([usage.memory for usage, _ in parts], axis=1)
    instants = np.concatenate([rounds for _, rounds in parts])
    times = np.concatenate([cpu[0], memory[0]])
    span = int(times.max() - times.min()) if len(times) else 0
    return Used(cpu[1], memory[1], len(instants) / max(len(np.unique(instants)), 1), Duration(span))
