"""Deletions of nodes that are under way, and results of those that have ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.world import Json


@dataclass
class Deletions:
    """Upstream's deletion tracker: names of nodes by kind, and how many of each group.

    It keeps evicted pods too, but for no time at all, so a later loop never sees one; they are left out here.
    """

    empty: set[str] = field(default_factory=set)
    drained: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    results: dict[str, Json] = field(default_factory=dict)

    def snapshot(self) -> Deletions:
        """Return what is under way now: a loop works with the state at its start."""
        return Deletions(set(self.empty), set(self.drained), dict(self.counts))

    def start(self, group: str, node: str, *, drain: bool) -> None:
        self.counts[group] = self.counts.get(group, 0) + 1
        (self.drained if drain else self.empty).add(node)

    def end(self, group: str, node: str, result: str, error: str = "") -> None:
        self.results[node] = {"result": result, **({"error": error} if error else {})}
        self.counts[group] -= 1
        self.empty.discard(node)
        self.drained.discard(node)

    def take_results(self) -> dict[str, Json]:
        """Return what ended since the last call: for the status at the end of a loop."""
        taken, self.results = self.results, {}
        return taken
