"""Nominated pods: the scheduler tries them on their node first, and reserves its capacity for them.

Source: kube-scheduler 1.36, ``status.nominatedNodeName`` (KEP-5278): pods of the same or a lower priority cannot use that
capacity, and a nomination ends at a try at which the pod fits nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod, priority_of
from kubetide.scheduling.scoring import ScoredSnapshot


class _Nominated(NamedTuple):
    pod: Pod
    node: str


class Nominations:
    """The nominated pods. Each counts on its node in the snapshot as if it ran there."""

    def __init__(self, snapshot: ScoredSnapshot) -> None:
        self._snapshot = snapshot
        self._known: dict[Key, _Nominated] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._known

    def to(self, node: str) -> list[Key]:
        """Return the pods that are nominated to a node."""
        return [key for key, one in self._known.items() if one.node == node]

    def note(self, key: Key, pod: Pod) -> str:
        """Update the nomination of a pending pod; return the node that it is no longer nominated to, empty for none."""
        known, node = self._known.get(key), pod.status.nominated_node_name
        if known is not None and known.node == node:
            return ""
        self.drop(key)
        if node and node in self._snapshot:
            self._known[key] = _Nominated(pod, node)
            self._snapshot.add_pod(pod, node)
        return "" if known is None else known.node

    def drop(self, key: Key) -> str:
        """Forget a pod and take it off its node; return the node, empty for none."""
        known = self._known.pop(key, None)
        if known is None:
            return ""
        self._snapshot.remove_pod(key)
        return known.node

    @contextmanager
    def ignoring_lower(self, priority: int) -> Iterator[None]:
        """Ignore nominated pods of a lower priority within the block."""
        lower = {key: one for key, one in self._known.items() if priority_of(one.pod) < priority}
        for key in lower:
            self._snapshot.remove_pod(key)
        try:
            yield
        finally:
            for one in lower.values():
                self._snapshot.add_pod(one.pod, one.node)
