"""The registry's view of node groups in one tick."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import EventRecord
from kubetide.nodes.memory import Memory, ScaleUpRequest
from kubetide.ports.cloud import Instance, NodeGroup


class MachineFailure(NamedTuple):
    """Machines of a group that could not be created, for one reason of the cloud's."""

    group: str
    error_code: str
    machines: int


class Counts(msgspec.Struct):
    """Nodes and machines by state; machines by provider id, nodes by name."""

    registered: int = 0
    ready: int = 0
    not_started: list[str] = msgspec.field(default_factory=list)
    suspended: int = 0
    unready: int = 0
    resource_unready: int = 0
    being_deleted: int = 0
    leaving: int = 0
    """Of the ready and the unready those whose machine the cloud is deleting."""
    left_alone: int = 0
    """Nodes of the group's machines that belong to no group, and are in none of the other numbers."""
    unregistered: list[str] = msgspec.field(default_factory=list)
    long_unregistered: list[str] = msgspec.field(default_factory=list)
    late: list[str] = msgspec.field(default_factory=list)
    """Of the unregistered and the not started those that others of their group were much quicker than."""


class GroupView(msgspec.Struct):
    """One group in the registry's view: ``group`` is as of the last observation."""

    group: NodeGroup
    counts: Counts
    request: ScaleUpRequest | None
    healthy: bool = True


class RenderedStatus(NamedTuple):
    """The last status document of a view, and its other inputs.

    Attributes:
        text: The document, with marks in the place of the times of probing; ``bare`` is without their lines.
        memory: The very object.
        looked_down: Whether scale-down has looked at the nodes before.
    """

    text: str
    bare: str
    version: int
    memory: Memory
    candidates: dict[str, int]
    looked_down: bool


class ClusterView(msgspec.Struct):
    """All groups, the whole cluster, and due work: requests that timed out, machines that failed."""

    groups: dict[str, GroupView]
    total: Counts
    healthy: bool
    events: list[EventRecord] = msgspec.field(default_factory=list)
    reasons: list[Reason] = msgspec.field(default_factory=list)
    timed_out: tuple[tuple[str, ScaleUpRequest], ...] = ()
    """Requests that were given up in this tick."""
    failed: dict[str, tuple[Instance, ...]] = msgspec.field(default_factory=dict)
    """Machines that could not be made, by group."""
    failures: tuple[MachineFailure, ...] = ()
    """Those of them that were new in this tick and were being waited for."""
    rendered: RenderedStatus | None = None
