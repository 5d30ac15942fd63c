"""The board: messages between the loops.

The horizontal loop writes what it wants (intent per workload with a due time); the node loop reads
it as demand and writes back what can be provided, and when. Who changes new pods says what they will ask
for, and who evicts pods so that larger ones take their place can first have nodes for these. Made by the wiring
and handed to the controllers; strict drop-in modes leave it off, as upstream's defaults do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from kubetide.objects.base import Quantities
from kubetide.objects.meta import Key
from kubetide.units.time import Duration, Instant, hours

ANNOUNCED: Final = hours(1)
"""Of changes by the clock the next one is announced, and the rises within this time of it: a boot may take longer."""


RequestsByController = Mapping[str, Mapping[str, Quantities]]
"""By uid of their controller: the requests that its new pods get, by container. Of what is not named nobody knows."""


class Workload(msgspec.Struct, frozen=True, order=True):
    """A scalable object: the key of an intent."""

    namespace: str
    kind: str
    name: str


class Intent(msgspec.Struct, frozen=True, omit_defaults=True):
    """The replicas of a workload that ``source`` asks for from ``due`` on.

    Attributes:
        until: When the request ends for replicas that do not exist by then; None for no end.
        start: How long a new pod takes until it serves; None where that is unknown.
        why: Where the number comes from, for people.
        sizes: Whether the source writes the size itself, also where the workload's own autoscaler leaves it alone.
    """

    workload: Workload
    replicas: int
    due: Instant
    source: str
    until: Instant | None = None
    start: Duration | None = None
    why: str = ""
    sizes: bool = False


class Capacity(msgspec.Struct, frozen=True):
    """The answer: how many requested replicas have no node yet, and when nodes for them are expected.

    Attributes:
        missing: Replicas without a node, those that do not exist yet included.
        expected: When the last of their nodes is expected; None where nobody knows, or none comes.
        detail: What they wait for, or why no node comes, for people.
        refused: How many of the missing ones no node group takes now.
    """

    workload: Workload
    missing: int
    expected: Instant | None
    detail: str = ""
    refused: int = 0


class NodeSize(msgspec.Struct, frozen=True, order=True):
    """The free amounts of a new node of a group, after its DaemonSets' pods."""

    cpu_milli: int
    memory_bytes: int


class Replacement(msgspec.Struct, frozen=True, omit_defaults=True):
    """The new pod in the place of a running one that is to be evicted as soon as a node has the capacity for it.

    Attributes:
        pod, uid: The running pod.
        requests: What the new pod will ask for, by container; what is not named stays as it is.
    """

    pod: Key
    uid: str
    requests: Mapping[str, Quantities]


class Board:
    """Intents by source and workload, and answers by workload; the newest of each holds."""

    def __init__(self) -> None:
        self._intents: dict[str, dict[Workload, tuple[Intent, ...]]] = {}
        self._ordered: tuple[Intent, ...] | None = ()
        self._capacity: dict[Workload, Capacity] = {}
        self.asks_sizes = False
        """Whether somebody reads ``sizes``; they are not worked out else."""
        self.tells_sizes = False
        """Whether a loop of the process sets ``sizes``, sooner or later."""
        self.sizes: tuple[NodeSize, ...] | None = None
        """Of the node groups that may grow, ordered, each once; None until they are known."""
        self.asks_new_pods = False
        """Whether somebody reads ``new_pods``; they are not worked out else."""
        self.new_pods: RequestsByController = {}
        """What a VPA gives to new pods, by whoever changes them in this process; a new mapping where any of it changes."""
        self.advised_statuses: Mapping[Key, bytes] = {}
        """By VPA, encoded: what the recommender of this process would write if it acted; empty where it writes."""
        self.advises_admission = False
        """Whether the admission controller of this process only advises: its lease, which others look for, is not written."""
        self.replacements: tuple[Replacement, ...] = ()
        """By whoever evicts pods in this process, the most urgent first."""
        self.answers_replacements = False
        """Whether a loop of the process sets ``replacement_waits``, sooner or later."""
        self.replacement_waits: Mapping[str, str] = {}
        """By uid of the running pod: what its replacement would wait for; empty where a node has the capacity for it."""

    def announce(self, intent: Intent) -> None:
        """Set an intent, replacing the earlier ones of its source for the workload."""
        self._intents.setdefault(intent.source, {})[intent.workload] = (intent,)
        self._ordered = None

    def announce_all(self, source: str, intents: Iterable[Intent]) -> None:
        """Set all intents of a source, replacing its earlier ones; a workload may have several, one for each due time."""
        found: dict[Workload, tuple[Intent, ...]] = {}
        for intent in intents:
            found[intent.workload] = (*found.get(intent.workload, ()), intent)
        if found != self._intents.get(source, {}):
            self._intents[source], self._ordered = found, None

    def withdraw(self, workload: Workload, source: str) -> None:
        """Remove the intents of a source for a workload, if there are any."""
        self._intents.get(source, {}).pop(workload, None)
        self._ordered = None

    def intents(self) -> tuple[Intent, ...]:
        """All intents, ordered by workload, source and due time; the same tuple while none has changed."""
        if self._ordered is None:
            found = (
                one for workloads in self._intents.values() for many in workloads.values() for one in many
            )
            self._ordered = tuple(sorted(found, key=lambda one: (one.workload, one.source, one.due)))
        return self._ordered

    def answer(self, capacity: Capacity) -> None:
        """Set the answer for a workload."""
        self._capacity[capacity.workload] = capacity

    def clear_answer(self, workload: Workload) -> None:
        """Remove an answer: all replicas have a node."""
        self._capacity.pop(workload, None)

    def answers(self) -> tuple[Capacity, ...]:
        """All answers, ordered by workload."""
        return tuple(self._capacity[key] for key in sorted(self._capacity))


def percentile_95(times: Sequence[int]) -> Duration:
    """Return the 95th percentile of some durations: the smallest that 95 % of them do not exceed."""
    ordered = sorted(times)
    return Duration(ordered[-(-95 * len(ordered) // 100) - 1])


def missing_replicas(desired: int, existing: int) -> int:
    """Return the number of replicas that do not exist yet; Pending pods exist."""
    return max(0, desired - existing)
