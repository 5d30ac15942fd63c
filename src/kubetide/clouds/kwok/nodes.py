"""The fake nodes of a cluster: what a cache has seen, and what was just written and it has not seen yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubetide.clouds.kwok.templates import FAKE, GROUP, PROVIDER
from kubetide.objects.node import Node, node_condition
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Instance, InstanceState
from kubetide.units.time import Instant, after, minutes
from kubetide.watching import Informer

_AT_MOST_BEHIND = minutes(5)
"""After so long the cache holds over what was written: another program has changed the node."""
_NEVER_SEEN = "NodeStatusNeverUpdated"
"""Reason of a Ready condition that the node lifecycle controller has written for a node that never spoke."""


class FakeNode(NamedTuple):
    """What the cache holds of a node: its group (empty for one that is not of kwok), and its state."""

    name: str
    group: str
    state: InstanceState

    @property
    def provider_id(self) -> str:
        """The id of its instance."""
        return PROVIDER + self.name

    def instance(self) -> Instance:
        """Return the instance that stands for it."""
        return Instance(provider_id=self.provider_id, state=self.state)


def fake_node(node: Node) -> FakeNode:
    """Return what the cache holds of a node. It is being created until kwok has written a status."""
    meta = node.metadata
    notes = meta.annotations or {}
    ready = node_condition(node, "Ready")
    state: InstanceState = "Running"
    if meta.deletion_timestamp is not None:
        state = "Deleting"
    elif ready is None or ready.reason == _NEVER_SEEN:
        state = "Creating"
    is_fake = notes.get(FAKE[0]) == FAKE[1]
    return FakeNode(meta.name, notes.get(GROUP, "") if is_fake else "", state)


class FakeNodes:
    """All fake nodes, with writes that count as soon as they are answered."""

    def __init__(self, nodes: Informer[Node], clock: Clock) -> None:
        self._nodes, self._clock = nodes, clock
        # By name: the node as it was written, None for a deleted one, and until when that holds over the cache.
        self._written: dict[str, tuple[FakeNode | None, Instant]] = {}
        nodes.on_change(lambda key, old, new: self._seen(key[1], old, new))

    def all(self) -> Iterator[FakeNode]:
        """Yield the nodes that have a group, by name."""
        self._expire()
        seen = {name: fake_node(node) for (_, name), node in self._nodes.objects.items()}
        for name, (node, _) in self._written.items():
            if node is None:
                seen.pop(name, None)
            else:
                seen.setdefault(name, node)
        for name in sorted(seen):
            if seen[name].group:
                yield seen[name]

    def of(self, group: str) -> dict[str, FakeNode]:
        """Return the nodes of a group by provider id."""
        return {node.provider_id: node for node in self.all() if node.group == group}

    def taken(self, name: str) -> bool:
        """Return whether there is a node of that name."""
        return name in self._written or ("", name) in self._nodes.objects

    def created(self, node: Node) -> None:
        """Note a node that was created."""
        if ("", node.metadata.name) not in self._nodes.objects:
            self._note(node.metadata.name, fake_node(node))

    def deleted(self, name: str) -> None:
        """Note a node that was deleted."""
        if ("", name) in self._nodes.objects:
            self._note(name, None)

    def _note(self, name: str, node: FakeNode | None) -> None:
        self._written[name] = node, after(self._clock.now(), _AT_MOST_BEHIND)

    def _seen(self, name: str, old: Node | None, new: Node | None) -> None:
        if name not in self._written:
            return
        written, _ = self._written[name]
        if (written is None and new is None) or (
            written is not None and (old is not None or new is not None)
        ):
            del self._written[name]

    def _expire(self) -> None:
        now = self._clock.now()
        for name in [name for name, (_, end) in self._written.items() if end <= now]:
            del self._written[name]
