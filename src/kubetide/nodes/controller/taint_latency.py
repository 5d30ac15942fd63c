"""Measures how long a deletion taint takes until a watch shows it, as the scheduler and other watchers see it.

Source: Cluster Autoscaler, update latency tracker: from before the first taint is sent until the last one is seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.nodes.decision import Action, AddTaint, Outcomes
from kubetide.nodes.facts.nodes import TO_BE_DELETED, has_taint
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.ports.clock import Clock
from kubetide.units.time import Duration, milliseconds, seconds
from kubetide.watching import Informer

POLL = milliseconds(50)
PATIENCE = seconds(30)
"""How long to wait for the taints after the last call; then nothing is measured."""


class TaintLatency:
    """Notes when taints become visible in the cache."""

    def __init__(self, clock: Clock, nodes: Informer[Node]) -> None:
        self._clock = clock
        self._awaited: dict[str, None] = {}
        self._last_seen = Duration(0)
        nodes.on_change(self._changed)

    def expect(self, actions: Sequence[Action]) -> Duration:
        """Watch for the taints of these actions, and return the start time."""
        self._awaited = {
            action.node: None
            for action in actions
            if isinstance(action, AddTaint) and action.key == TO_BE_DELETED
        }
        self._last_seen = self._clock.monotonic()
        return self._last_seen

    async def measure(
        self, begun: Duration, actions: Sequence[Action], outcomes: Outcomes
    ) -> Duration | None:
        """Return how long the slowest taint took to be seen; None if one failed, none was set, or one is not seen."""
        tainting = [
            outcome.status
            for action, outcome in zip(actions, outcomes.results, strict=True)
            if isinstance(action, AddTaint) and action.key == TO_BE_DELETED
        ]
        if not tainting or any(status != "ok" for status in tainting):
            self._awaited = {}
            return None
        until = self._clock.monotonic() + PATIENCE
        while self._awaited:
            if self._clock.monotonic() >= until:
                self._awaited = {}
                return None
            await self._clock.sleep(POLL)
        return Duration(self._last_seen - begun)

    def _changed(self, _key: Key, _old: Node | None, new: Node | None) -> None:
        if new is None or new.metadata.name not in self._awaited or not has_taint(new, TO_BE_DELETED):
            return
        del self._awaited[new.metadata.name]
        self._last_seen = self._clock.monotonic()
