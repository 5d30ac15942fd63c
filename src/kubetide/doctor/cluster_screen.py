"""The present cluster on one screen, for ``kubetide top``: by watches, read-only."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from kubetide.doctor.gather import read_statuses
from kubetide.loop import Table
from kubetide.objects.cluster import ConfigMap, Event
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.kinds import CONFIG_MAPS, EVENTS, HPAS, NODES, PODS
from kubetide.objects.meta import controller_of
from kubetide.objects.node import Node, node_condition
from kubetide.objects.pod import Pod, is_finished, pod_condition
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.simulate.answers.run_screen import Fact, Said, Screen, by_need, now_text
from kubetide.watching import Caches, Informer

_SOURCES: Final = ("horizontal-pod-autoscaler", "cluster-autoscaler")
"""Whose events are shown: those of upstream's controllers and of our loops, which sign as these."""

_STATUS_MAP: Final = "cluster-autoscaler-status"
_MOST_SAID = 40
_POINTS = 12


class _PodView(NamedTuple):
    namespace: str
    name: str
    owner: str
    pending: bool
    finished: bool
    why: str


class _NodeView(NamedTuple):
    namespace: str
    name: str
    ready: bool
    closed: bool


class ClusterTop:
    """The content of the screen, updated as the cluster changes."""

    def __init__(self, cluster: Cluster, clock: Clock, name: str) -> None:
        self._clock = clock
        self._name = name
        self._caches = Caches(cluster, clock)
        self._hpas = self._caches.of(HPAS)
        self._nodes: Informer[Any] = self._caches.of(NODES, keep=_node_view)
        self._pods: Informer[Any] = self._caches.of(PODS, keep=_pod_view)
        self._events = [self._caches.of(EVENTS, fields=f"source={name}") for name in _SOURCES]
        self._maps = self._caches.of(CONFIG_MAPS, fields=f"metadata.name={_STATUS_MAP}")
        self._trends: dict[str, deque[float]] = {}

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch inside the block, which begins once each kind is synced, or refused."""
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(self._caches.run())
            for informer in self._caches.all:
                await informer.answered()
            try:
                yield
            finally:
                running.cancel()

    def screen(self) -> Screen:
        """Return the present screen."""
        pods = [pod for pod in self._pods.objects.values() if not pod.finished]
        waiting = [pod for pod in pods if pod.pending]
        nodes = list(self._nodes.objects.values())
        facts = (
            self._fact("nodes ready", sum(node.ready for node in nodes)),
            self._fact("of", len(nodes)),
            self._fact("closed", sum(node.closed for node in nodes)),
            self._fact("pods", len(pods)),
            self._fact("waiting", len(waiting)),
        )
        unread = [one for one in self._caches.all if one.last_error]
        return Screen(
            name=self._name,
            state="live",
            at=now_text(self._clock.now()),
            facts=facts,
            tables=(by_need(self._hpa_table()), by_need(self._groups()), _waiting_table(waiting)),
            said=self._said(),
            notes=tuple(f"{one.kind.resource} cannot be read: {one.last_error}" for one in unread),
        )

    def _fact(self, label: str, value: int) -> Fact:
        trend = self._trends.setdefault(label, deque(maxlen=_POINTS))
        trend.append(value)
        return Fact(label, str(value), tuple(trend))

    def _hpa_table(self) -> Table:
        rows = []
        for (namespace, name), hpa in sorted(self._hpas.objects.items()):
            target, spec, status = hpa.spec.scale_target_ref, hpa.spec, hpa.status
            least = 1 if spec.min_replicas is None else spec.min_replicas
            rows.append(
                (
                    f"{namespace}/{name}",
                    f"{target.kind}/{target.name}",
                    status.current_replicas,
                    status.desired_replicas,
                    least,
                    spec.max_replicas,
                    _limited_by(hpa),
                )
            )
        columns = ("hpa", "target", "current", "desired", "min", "max", "limited by")
        return Table("hpas", columns, tuple(rows))

    def _groups(self) -> Table:
        maps: list[ConfigMap] = [
            one for key, one in sorted(self._maps.objects.items()) if key[1] == _STATUS_MAP
        ]
        rows = [
            (one.name, one.target_size, one.min_size, one.max_size, one.scale_up, one.error_message)
            for found in maps
            for one in read_statuses((found.data or {}).get("status", ""))
        ]
        return Table("node groups", ("node group", "size", "min", "max", "scale-up", "error"), tuple(rows))

    def _said(self) -> tuple[Said, ...]:
        events: list[Event] = [one for some in self._events for one in some.objects.values()]
        newest = sorted(events, key=lambda one: one.last_timestamp or one.first_timestamp or "", reverse=True)
        return tuple(map(_said, newest[:_MOST_SAID]))


def _said(event: Event) -> Said:
    about = event.involved_object
    name = f"{about.namespace}/{about.name}" if about.namespace else about.name
    at = event.last_timestamp or event.first_timestamp or ""
    return Said(at, f"{about.kind} {name}: {event.reason}: {event.message}")


def _limited_by(hpa: HorizontalPodAutoscaler) -> str:
    """Return what the conditions say that keeps an HPA from scaling freely; empty for nothing."""
    texts = []
    for one in hpa.status.conditions or ():
        wrong = one.status == ("True" if one.type == "ScalingLimited" else "False")
        if wrong:
            texts.append(f"{one.reason}: {one.message}")
    return "; ".join(texts)


def _waiting_table(waiting: list[_PodView]) -> Table:
    counts = Counter((pod.owner, pod.why) for pod in waiting)
    rows = [
        (owner, count, why)
        for (owner, why), count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]
    return Table("waiting pods", ("pods of", "count", "why"), tuple(rows))


def _pod_view(pod: Pod) -> _PodView:
    owner = controller_of(pod.metadata)
    scheduled = pod_condition(pod, "PodScheduled")
    pending = not pod.spec.node_name and not pod.metadata.deletion_timestamp
    return _PodView(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        owner=f"{pod.metadata.namespace}/{pod.metadata.name if owner is None else owner.name}",
        pending=pending and not is_finished(pod),
        finished=is_finished(pod),
        why="" if scheduled is None or not pending else scheduled.message or "",
    )


def _node_view(node: Node) -> _NodeView:
    condition = node_condition(node, "Ready")
    ready = condition is not None and condition.status == "True"
    return _NodeView("", node.metadata.name, ready, bool(node.spec.unschedulable))
