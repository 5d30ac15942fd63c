"""What the updater decides, what comes of it, and what it then has to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.objects.base import Json
from kubetide.objects.meta import Key
from kubetide.plan.board import Replacement
from kubetide.units.time import Instant


class Evict(msgspec.Struct, frozen=True, tag=True):
    """An eviction, not before ``due``; ``vpa`` wants it."""

    pod: Key
    uid: str
    vpa: Key
    due: Instant


class Resize(msgspec.Struct, frozen=True, tag=True):
    """Two JSON patches, not before ``due``: of the pod's ``resize`` subresource, then of the pod.

    The second one only marks the pod; nothing depends on it.
    """

    pod: Key
    uid: str
    vpa: Key
    due: Instant
    resources: Sequence[Json]
    annotations: Sequence[Json] = ()
    ends_boost: bool = False


class Pause(msgspec.Struct, frozen=True, tag=True):
    """Nothing to do but to let other tasks run; it stands in no record."""


Command = Evict | Resize


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of a command, and when.

    Attributes:
        error: Empty when the API server took it.
        node_capacity: Whether it refused a resize because the node can never hold it.
        withheld: The command was not sent, on purpose.
        unknown: Whether it may have been carried out, as no answer says that it was not: it counts against budgets.
        pending: Whether the API server may still answer; the loop waits for it no longer.
    """

    at: Instant
    error: str = ""
    node_capacity: bool = False
    withheld: bool = False
    unknown: bool = False
    pending: bool = False


Change = Literal["eviction", "resize", "end of boost"]


def change_of(command: Command) -> Change:
    """Return what a command does to its pod."""
    if isinstance(command, Evict):
        return "eviction"
    return "end of boost" if command.ends_boost else "resize"


class LateChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A command for whose answer an earlier loop waited no longer.

    Attributes:
        outcome: What has come of it since the last loop; None while there is no answer.
    """

    pod: Key
    uid: str
    vpa: Key
    change: Change
    outcome: Outcome | None = None

    @property
    def counts_as_made(self) -> bool:
        """Return whether the pod may have changed without the caches showing it yet."""
        outcome = self.outcome
        return outcome is None or outcome.unknown or not (outcome.error or outcome.withheld)


class EventNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event to write about a pod or a VPA object.

    Attributes:
        uid: Of the object, where it may be gone by now; empty for the one that there is.
    """

    kind: Literal["Pod", "VerticalPodAutoscaler"]
    namespace: str
    name: str
    reason: str
    message: str
    uid: str = ""


class VpaCounts(msgspec.Struct):
    """Pods of one VPA in one loop, for the loop's own metrics."""

    mode: str
    controlled: int = 0
    evictable: int = 0
    evicted: int = 0
    in_place_updatable: int = 0
    in_place_updated: int = 0
    infeasible_skips: int = 0
    failed_evictions: list[str] = msgspec.field(default_factory=list)
    failed_resizes: list[str] = msgspec.field(default_factory=list)


class Result(msgspec.Struct):
    """The result of one loop; the loop's memory is already that of after it.

    Attributes:
        events: In the order of the actions that they report.
        skipped: Why the loop did nothing: ``error`` or ``invalid`` for want of the admission controller's lease,
            ``held`` for caches that may not be believed.
        replacements: Of pods that are evicted once nodes have the capacity, or are being evicted; to be announced.
        next_unboost: When the next start-up boost ends, None if none is waited for.
    """

    events: list[EventNote] = msgspec.field(default_factory=list)
    reasons: list[Reason] = msgspec.field(default_factory=list)
    counts: dict[Key, VpaCounts] = msgspec.field(default_factory=dict)
    skipped: Literal["", "error", "invalid", "held"] = ""
    replacements: Sequence[Replacement] = ()
    next_unboost: Instant | None = None
