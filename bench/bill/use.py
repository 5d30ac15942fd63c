"""The record of a run from which ``gap`` tells where money goes: which pods were on which nodes, and when."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from bench.bill.feed import GPU, MODEL_LABEL
from bench.bill.rows import Shape
from kubetide.embedded.cloud import GROUP_LABEL
from kubetide.objects.meta import Key
from kubetide.objects.node import Node, node_condition
from kubetide.objects.pod import Pod, is_finished
from kubetide.ports.clock import Clock
from kubetide.scheduling import pod_requests
from kubetide.units.time import Instant

_SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


class Stay(NamedTuple):
    """A pod on a node, from its binding to its end; ``may_move`` is False where nothing may evict it. Seconds from the start."""

    begin_s: float
    end_s: float
    shape: Shape
    may_move: bool


class NodeUse(NamedTuple):
    """A node from when it was first ready to when it was gone, in seconds from the start, and the pods that it had meanwhile."""

    type_name: str
    ready_s: float
    gone_s: float
    stays: tuple[Stay, ...]


class UseRecord:
    """Follows the pods and nodes of a run."""

    def __init__(self, type_names: Collection[str], clock: Clock, start: Instant) -> None:
        self._types = {name.replace(".", "-"): name for name in type_names}
        """By the name of their group."""
        self._clock = clock
        self._start = start
        self._ready: dict[str, tuple[str, float]] = {}
        """Type of each ready node, and since when it is ready."""
        self._stays: dict[str, list[Stay]] = {}
        self._there: dict[Key, tuple[str, Stay]] = {}
        """Node and open stay of each pod that has a node."""
        self._ended: list[NodeUse] = []

    def node_changed(self, key: Key, old: Node | None, new: Node | None) -> None:
        """Follow which nodes are ready."""
        del old
        name = key[1]
        if new is None:
            if name in self._ready:
                self._ended.append(self._use(name))
                del self._ready[name]
            self._stays.pop(name, None)
            return
        condition = node_condition(new, "Ready")
        if name not in self._ready and condition is not None and condition.status == "True":
            group = (new.metadata.labels or {}).get(GROUP_LABEL, "")
            self._ready[name] = self._types[group], self._now()

    def pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        """Follow which pods are on each node; one that has finished is not."""
        del old
        there = new is not None and new.spec.node_name and not is_finished(new)
        if there and key not in self._there:
            assert new is not None
            said = (new.metadata.annotations or {}).get(_SAFE_TO_EVICT)
            stay = Stay(self._now(), self._now(), _shape_of(new), said != "false")
            self._there[key] = new.spec.node_name, stay
        elif not there and key in self._there:
            name, stay = self._there.pop(key)
            self._stays.setdefault(name, []).append(stay._replace(end_s=self._now()))

    def uses(self) -> list[NodeUse]:
        """Return all nodes that have been ready; those that are there still end now."""
        return [*self._ended, *(self._use(name) for name in self._ready)]

    def _use(self, name: str) -> NodeUse:
        type_name, since = self._ready[name]
        now = self._now()
        still = (stay._replace(end_s=now) for at, stay in self._there.values() if at == name)
        return NodeUse(type_name, since, now, (*self._stays.get(name, ()), *still))

    def _now(self) -> float:
        return (self._clock.now() - self._start) / 1e9


def _shape_of(pod: Pod) -> Shape:
    asked = pod_requests(pod)
    model = (pod.spec.node_selector or {}).get(MODEL_LABEL, "")
    return asked.get("cpu", 0), asked.get("memory", 0) >> 20, asked.get(GPU, 0), model
