"""Durations: pods' termination, machines' time to Ready and to deletion."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.nodes.records.delta import Delta
from kubetide.objects.node import Node, node_condition
from kubetide.simulate.outcome.timeline import Mark
from kubetide.units.time import Instant, parse_rfc3339

_SECOND = 1_000_000_000


class Ends:
    """Pods and machines that are terminating."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], Instant] = {}
        self._nodes: dict[str, Instant] = {}

    def take(self, mark: Mark) -> None:
        """Note the machines that the node loop deletes now."""
        if mark.code == "NodeDeleted" and not mark.fruitless:
            self._nodes[mark.subject] = mark.at

    def pods(self, delta: Delta, now: Instant) -> Iterator[float]:
        """Yield the termination time in seconds of pods that are gone now."""
        for pod in delta.pods:
            meta = pod.metadata
            if meta.deletion_timestamp is not None:
                # The object says when its time will be over, in whole seconds.
                over = parse_rfc3339(meta.deletion_timestamp) + _SECOND // 2
                begun = Instant(over - (meta.deletion_grace_period_seconds or 0) * _SECOND)
                self._pods.setdefault((meta.namespace, meta.name), begun)
        for key in delta.gone.pods:
            begun_at = self._pods.pop((key[0], key[1]), None)
            if begun_at is not None:
                yield max((now - begun_at) / 1e9, 0.0)

    def nodes(self, delta: Delta, now: Instant) -> Iterator[tuple[str, float]]:
        """Yield the nodes that are gone now, each with the seconds since its machine's deletion."""
        for name in delta.gone.nodes:
            begun = self._nodes.pop(name, None)
            if begun is not None:
                yield name, max((now - begun) / 1e9, 0.0)


def ready_after(node: Node) -> float | None:
    """Return the seconds from a node's creation to Ready; None while it is not, or if unknown."""
    condition = node_condition(node, "Ready")
    if condition is None or condition.status != "True" or not condition.last_transition_time:
        return None
    if not node.metadata.creation_timestamp:
        return None
    since = parse_rfc3339(condition.last_transition_time) - parse_rfc3339(node.metadata.creation_timestamp)
    return max(since / 1e9, 0.0)
