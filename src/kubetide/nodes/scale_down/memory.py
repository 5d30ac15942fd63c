"""State of scale-down between ticks; part of the node loop's memory and of every full record."""

from __future__ import annotations

from typing import Literal

import msgspec

from kubetide.units.time import Duration, Instant

Phase = Literal[
    "marking",
    "waiting",
    "evicting",
    "terminating",
    "delaying",
    "ready",
    "deleting",
    "untainting",
    "advised",
]
"""Where a deletion is.

``marking``: the taint is being put on. ``waiting``: tainted; what was under way may still land.
``evicting``: pods are asked to go. ``terminating``: they end. ``delaying``: an annotation holds the
node. ``ready``: only the cloud's call is left. ``deleting``: the call is made. ``untainting``: it
failed, and the node is given back. ``advised``: nobody carries it out, as the run only advises; the
next steps are decided as if somebody did.
"""


class Eviction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pod being evicted. ``needed``: the node waits for it to be gone. ``stage``: its eviction turn."""

    namespace: str
    name: str
    uid: str = ""
    grace_s: int
    needed: bool = True
    stage: int = 0
    next_try: Instant
    tries: int = 0
    evicted: bool = False
    error: str = ""


class Deletion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node being deleted.

    Attributes:
        since: When it was decided, which is also the taint's value.
        due: When it must be looked at again.
        until: When the present phase is given up.
        pods: Evictions asked for so far.
        checked: When the node's pods were last read from the API server.
        found: The pods (namespace, name) that were there then.
        reading: Whether such a read was asked for and has not arrived.
        tries: Failed attempts at what the phase does.
        landings: How often new pods have landed on the node while it was drained.
        cordoned: Whether the deletion cordoned the node; a cordon that was there before stays when it fails.
        utilization: As upstream prints it in its event.
        reschedule: Names of the pods to be moved, as the event names them.
        stage: Whose turn it is to be evicted (--drain-priority-config).
        given_up: Whether another node of its group failed, where the group goes as a whole or not at all.
    """

    node: str
    group: str
    provider_id: str
    drain: bool
    phase: Phase
    since: Instant
    due: Instant
    until: Instant | None = None
    pods: tuple[Eviction, ...] = ()
    checked: Instant | None = None
    found: tuple[tuple[str, str], ...] = ()
    reading: bool = False
    tries: int = 0
    landings: int = 0
    cordoned: bool = False
    utilization: str = ""
    reschedule: tuple[str, ...] = ()
    stage: int = 0
    given_up: bool = False

    @property
    def in_flight(self) -> bool:
        """Whether the deletion is carried out, not only advised."""
        return self.phase != "advised"


class DeleteResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a deletion ended: upstream's result (``NodeDeleteOk`` ...) and the error."""

    result: str
    error: str = ""


class RemovalFailures(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often the removal of a node has failed, when last, and with which error.

    ``unmarked``: how many of the last failures in a row were that the node could not be tainted.
    """

    count: int
    last: Instant
    error: str
    unmarked: int = 0


class UnremovableNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a node stays. ``reason`` and ``blocking_reason`` are upstream's words, ``detail`` is one sentence."""

    node: str
    group: str
    reason: str
    blocking_pod: str = ""
    blocking_reason: str = ""
    detail: str = ""
    utilization: float | None = None
    resource: str = ""


class Remembered(msgspec.Struct, frozen=True):
    """An unremovable node: the verdict, and until when it is not simulated again."""

    until: Instant
    verdict: UnremovableNode


class ScaledDownNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node whose deletion has begun."""

    node: str
    group: str
    kind: Literal["empty", "drain"]
    evicted_pods: tuple[str, ...] = ()
    utilization: float | None = None
    resource: str = ""


class ScaleDownStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of the last evaluation, for the status document and for explanations.

    ``unneeded`` is None when nothing was evaluated; ``delete_results`` are those since the last report.
    """

    result: str = "ScaleDownNotTried"
    why: str = ""
    unneeded: tuple[str, ...] | None = None
    unremovable: tuple[UnremovableNode, ...] = ()
    scaled_down: tuple[ScaledDownNode, ...] = ()
    delete_results: dict[str, DeleteResult] = {}


class ScaleDownMemory(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All state that outlives a tick.

    Attributes:
        unneeded: Node -> since when it has been unneeded without a break.
        last_found: The nodes that the last evaluation found unneeded: of equal candidates they come first. Unlike
            ``unneeded`` it knows nothing of an earlier process, and outlives loops in which the cluster is unhealthy.
        unremovable: Node -> what its last simulation said, and until when that is not tried again.
        hints: Pod (by ``hint_key``) -> the node that took it in the last simulation.
        deletions: Node -> its deletion in flight.
        results: Node -> how its deletion ended, until the next report.
        failures: Node -> its removals that failed in this process, for explanations and consolidation; scale-down decides nothing by them.
        last_update, shortest_interval: When nodes were last evaluated, and the shortest time between.
        last_delete, last_failure, last_delete_of, last_failure_of: For the delays; ``_of`` by group.
        recent_deletions, recent_evictions: (when, how many) within the last hour, for the caps.
        taint_latencies: (when, how long) taints that begin deletions took until they were seen, of the last hour.
        restored: Whether the soft taints found at the start were looked at.
    """

    unneeded: dict[str, Instant] = {}
    last_found: tuple[str, ...] = ()
    unremovable: dict[str, Remembered] = {}
    hints: dict[str, str] = {}
    deletions: dict[str, Deletion] = {}
    results: dict[str, DeleteResult] = {}
    failures: dict[str, RemovalFailures] = {}
    last_update: Instant | None = None
    shortest_interval: Duration | None = None
    last_delete: Instant | None = None
    last_failure: Instant | None = None
    last_delete_of: dict[str, Instant] = {}
    last_failure_of: dict[str, Instant] = {}
    recent_deletions: tuple[tuple[Instant, int], ...] = ()
    recent_evictions: tuple[tuple[Instant, int], ...] = ()
    taint_latencies: tuple[tuple[Instant, Duration], ...] = ()
    restored: bool = False
    status: ScaleDownStatus = ScaleDownStatus()
