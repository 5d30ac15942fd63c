"""The fake nodes of a cluster: what a cache has seen, and what was just written and it has not seen yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubetide.clouds.kwok.templates import FAKE, GROUP, PROVIDER
from kubetide.objects.node import Node, node_condition
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Instance, InstanceState
from kubetide.units.time import Duration, Instant, after, minutes
from kubetide.watching import Informer

_AT_MOST_BEHIND = minutes(5)
"""After so long the cache holds over what was written: another program has changed the node."""
_UNANSWERED = minutes(1)
"""After so long a write without an answer was not made: an API server works on no request for longer."""
_NEVER_SEEN = "NodeStatusNeverUpdated"
"""Reason of a Ready condition that the node lifecycle controller has written for a node that never spoke."""


class FakeNode(NamedTuple):
    """What the cache holds of a node: its group (empty for one that is not of kwok), state and version, where known."""

    name: str
    group: str
    state: InstanceState
    version: str = ""

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
    return FakeNode(meta.name, notes.get(GROUP, "") if is_fake else "", state, meta.resource_version)


class FakeNodes:
    """All fake nodes, with writes that count as soon as they are sent."""

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
            elif node.state == "Deleting":
                seen[name] = node
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

    def expect(self, node: FakeNode) -> None:
        """Note a node as a write will leave it that is now sent: nobody may ever know whether it was made."""
        self._note(node.name, node, _UNANSWERED)

    def refused(self, name: str) -> None:
        """Note that the write of a node was not made."""
        self._written.pop(name, None)

    def created(self, node: Node) -> None:
        """Note a node that was created."""
        name = node.metadata.name
        if ("", name) in self._nodes.objects:
            self._written.pop(name, None)
        else:
            self._note(name, fake_node(node), _AT_MOST_BEHIND)

    def deleted(self, name: str) -> None:
        """Note a node that was deleted."""
        self._note(name, None, _AT_MOST_BEHIND)

    def _note(self, name: str, node: FakeNode | None, life: Duration) -> None:
        self._written[name] = node, after(self._clock.now(), life)

    def _seen(self, name: str, _old: Node | None, new: Node | None) -> None:
        if name not in self._written:
            return
        written, _ = self._written[name]
        if new is None or (written is not None and written.state != "Deleting"):
            del self._written[name]

    def _expire(self) -> None:
        now = self._clock.now()
        for name in [name for name, (_, end) in self._written.items() if end <= now]:
            del self._written[name]
