"""Brings pods into a running world and takes them out again, at their times.

Pods of a class of kind ``deployment`` are those of one ReplicaSet, whose replicas follow arrivals and departures; the
pod whose time is over is made the cheapest to delete, so that it and no other goes. A pod of kind ``job`` runs once
for its time, from its start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from bench.bill.rows import PodRow
from kubetide.embedded.kubelet.endings import RUN_DURATION
from kubetide.objects.kinds import PODS, REPLICA_SETS
from kubetide.objects.meta import Key
from kubetide.objects.pod import DELETION_COST, Pod, is_finished
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import NotFound
from kubetide.units.time import Duration, Instant, after

MODEL_LABEL = "accelerator"
CLASS_LABEL = "class"
GPU = "nvidia.com/gpu"
NAMESPACE = "default"
_NOTICE_S = 1.0
"""How long before it goes a pod is made the cheapest, so that all have seen it."""


class Feed:
    """Plays the pods."""

    def __init__(self, pods: Sequence[PodRow], cluster: Cluster, clock: Clock, start: Instant) -> None:
        self._rows = pods
        self._cluster = cluster
        self._clock = clock
        self._start = start
        self._names = {copy: f"class-{at}" for at, copy in enumerate(sorted({_copy(pod) for pod in pods}))}
        self._replicas: dict[str, int] = {}
        self._without: dict[str, deque[int]] = {}
        """Per class the rows that have no pod, in the order of their arrival."""
        self._row_of: dict[str, int] = {}
        self._pod_of: dict[int, str] = {}
        self._departed: set[int] = set()
        self._finished: deque[str] = deque()

    def pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        """Follow which row has which pod."""
        name = key[1]
        if old is None and new is not None:
            self._take(name, (new.metadata.labels or {}).get(CLASS_LABEL, ""))
        if new is None or new.metadata.deletion_timestamp:
            self._lost(name)
        elif is_finished(new) and not (old is not None and is_finished(old)):
            self._finished.append(name)

    def _take(self, name: str, group: str) -> None:
        without = self._without.get(group)
        if without and name not in self._row_of:
            row = without.popleft()
            self._row_of[name], self._pod_of[row] = row, name

    def _lost(self, name: str) -> None:
        row = self._row_of.pop(name, None)
        if row is None:
            return
        del self._pod_of[row]
        if row not in self._departed:
            self._without[self._names[_copy(self._rows[row])]].appendleft(row)

    async def run(self) -> None:
        """Play all pods, each at its time."""
        events: list[tuple[float, int, int]] = []
        for row, pod in enumerate(self._rows):
            events.append((pod.arrival_s, 2, row))
            if pod.kind == "deployment":
                events += [
                    (max(pod.arrival_s, pod.departure_s - _NOTICE_S), 0, row),
                    (pod.departure_s, 1, row),
                ]
        for at, due in groupby(sorted(events), key=lambda event: event[0]):
            await self._clock.sleep(Duration(after(self._start, _duration(at)) - self._clock.now()))
            changed: dict[str, None] = {}
            for _, what, row in due:
                pod = self._rows[row]
                name = self._names[_copy(pod)]
                if what == 0:
                    await self._make_cheapest(row)
                elif pod.kind == "job":
                    await self._cluster.create(PODS, _job(pod, name, row), namespace=NAMESPACE)
                else:
                    await self._ensure(pod, name)
                    self._replicas[name] += 1 if what == 2 else -1
                    if what == 2:
                        self._without[name].append(row)
                    else:
                        self._leave(name, row)
                    changed[name] = None
            for name in changed:
                scale = {"spec": {"replicas": self._replicas[name]}}
                await self._cluster.patch(REPLICA_SETS, name, scale, namespace=NAMESPACE)
            while self._finished:
                await self._delete(self._finished.popleft())

    def _leave(self, name: str, row: int) -> None:
        self._departed.add(row)
        if row not in self._pod_of and row in self._without[name]:
            self._without[name].remove(row)

    async def _ensure(self, pod: PodRow, name: str) -> None:
        if name not in self._replicas:
            self._replicas[name] = 0
            self._without[name] = deque()
            await self._cluster.create(REPLICA_SETS, _replica_set(pod, name), namespace=NAMESPACE)

    async def _make_cheapest(self, row: int) -> None:
        name = self._pod_of.get(row)
        if name is None:
            return
        note = {"metadata": {"annotations": {DELETION_COST: "-1000"}}}
        try:
            await self._cluster.patch(PODS, name, note, namespace=NAMESPACE)
        except NotFound:
            return

    async def _delete(self, name: str) -> None:
        try:
            await self._cluster.delete(PODS, name, namespace=NAMESPACE)
        except NotFound:
            return


def _copy(pod: PodRow) -> PodRow:
    """Return what the copies of a pod have in common."""
    return pod._replace(arrival_s=0.0, departure_s=0.0)


def _duration(seconds: float) -> Duration:
    return Duration(round(seconds * 1e9))


def _spec(pod: PodRow) -> dict[str, Any]:
    requests = {"cpu": f"{pod.cpu_m}m", "memory": f"{pod.memory_mib}Mi"}
    if pod.gpus:
        requests[GPU] = str(pod.gpus)
    container = {"name": "main", "image": "main", "resources": {"requests": requests}}
    if pod.gpus:
        container["resources"] = {"requests": requests, "limits": {GPU: str(pod.gpus)}}
    found: dict[str, Any] = {"containers": [container], "terminationGracePeriodSeconds": 5}
    if pod.selector:
        found["nodeSelector"] = {MODEL_LABEL: pod.selector}
    return found


def _replica_set(pod: PodRow, name: str) -> dict[str, Any]:
    labels = {CLASS_LABEL: name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _spec(pod)},
        },
    }


def _job(pod: PodRow, name: str, row: int) -> dict[str, Any]:
    annotations = {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        RUN_DURATION: f"{round((pod.departure_s - pod.arrival_s) * 1000)}ms",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{name}-{row}", "annotations": annotations},
        "spec": {**_spec(pod), "restartPolicy": "Never"},
    }
