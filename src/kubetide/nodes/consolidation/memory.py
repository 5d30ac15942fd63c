"""State of consolidation and remembered demand between ticks; part of the loop's memory and of full records."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubetide.nodes.consolidation.settings import ConsolidationSettings
from kubetide.objects.pod import Pod
from kubetide.units.time import Duration, Instant, after, minutes


class Move(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Nodes that are removed together, and the group of the one node that replaces them.

    Attributes:
        nodes: Those that have not begun to go.
        buy: The group of the new node; empty where the pods fit on existing nodes.
        into: The empty node that takes the pods in place of a new one; empty where there is none.
        since: When it was decided.
        arrived: Whether the new node is ready.
        saving: Currency an hour.
        evictions: How many pods are to be moved.
        removed: Groups of all nodes of the move.
    """

    nodes: tuple[str, ...]
    since: Instant
    buy: str = ""
    into: str = ""
    arrived: bool = False
    saving: float = 0.0
    evictions: int = 0
    removed: tuple[str, ...] = ()


class Undone(msgspec.Struct, frozen=True, omit_defaults=True):
    """A group where a node was bought for pods soon after consolidation removed one: not touched before ``until``."""

    times: int
    until: Instant


MOST_TIMES = 6
"""How often the time doubles for which a group is left alone."""


def undone_again(before_this: Undone | None, shortest: Duration, now: Instant) -> Undone:
    """Return the entry for another undone move: the group is left alone for twice as long as the last time."""
    times = min(MOST_TIMES, before_this.times + 1) if before_this is not None else 0
    return Undone(times, after(now, Duration(shortest << times)))


AGAIN: Duration = minutes(30)
"""How long a node is left alone after a move that failed; twice as long after each further one."""
_MOST_DOUBLINGS = 4
LONGEST_PAUSE = Duration(AGAIN << _MOST_DOUBLINGS)


def pause_after(failures: int) -> Duration:
    """Return how long a node is left alone after that many moves in a row that failed (at least one)."""
    return Duration(AGAIN << min(failures - 1, _MOST_DOUBLINGS))


class GonePod(msgspec.Struct, frozen=True):
    """A deleted pod, and when the loop saw that."""

    pod: Pod
    at: Instant


MOST_GONE = 1000
"""Most pods that have gone that are remembered: the last ones."""


class ConsolidationMemory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All state that outlives a tick.

    Attributes:
        moves: Under way.
        closing: Node -> since when it takes no new pods, as others on it are awaited that cannot be evicted.
        next_search: When moves are looked for again.
        failed: Node -> until when it is not tried again, as its move was given up; remembered for a while longer.
        given_up: Node in ``failed`` -> how many of its moves were given up in a row.
        removed_at: Group -> when consolidation last removed a node of it.
        undone: By group.
        bought: Group -> (when, number) of nodes that were bought, or kept and used, within the remembered time.
        kept: Node -> group, of nodes kept for expected demand.
        needed: Unneeded nodes that expected pods would need, as the last search found.
        reasons: Node -> the sentence that ``explain node`` shows.
        tried: Nodes that searches have tried in vain since the last one that looked at all, the last ones last: others come first.
        refused: Nodes and groups whose new node refused the node's pods in a search that could not try all new nodes.
        gone_since: Pods that have gone since the last decision.
        gone: Pods that have gone within the last half hour, by time.
    """

    moves: tuple[Move, ...] = ()
    closing: dict[str, Instant] = {}
    next_search: Instant | None = None
    failed: dict[str, Instant] = {}
    given_up: dict[str, int] = {}
    removed_at: dict[str, Instant] = {}
    undone: dict[str, Undone] = {}
    bought: dict[str, tuple[tuple[Instant, int], ...]] = {}
    kept: dict[str, str] = {}
    needed: tuple[str, ...] = ()
    reasons: dict[str, str] = {}
    tried: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    gone_since: tuple[Pod, ...] = ()
    gone: tuple[GonePod, ...] = ()

    def give_up(self, name: str, now: Instant) -> Instant:
        """Leave a node alone whose move is given up, for longer each time; return until when."""
        self.given_up[name] = self.given_up.get(name, 0) + 1
        self.failed[name] = after(now, pause_after(self.given_up[name]))
        return self.failed[name]

    def note_tried(self, names: Iterable[str]) -> None:
        """Put nodes behind all others in the next searches, until one has looked at all."""
        new = dict.fromkeys(names)
        self.tried = (*(name for name in self.tried if name not in new), *new)

    def turns(self) -> dict[str, int]:
        """Return the places in the order of trials of nodes that come after all others; the longest untried first."""
        return {name: place for place, name in enumerate(self.tried, start=1)}

    def add_gone(self, pod: Pod, settings: ConsolidationSettings) -> None:
        """Note a deleted pod; the next decision fills in the time."""
        if settings.consolidation_enabled and pod.spec.node_name:
            self.gone_since = (*self.gone_since[1 - MOST_GONE :], pod)
