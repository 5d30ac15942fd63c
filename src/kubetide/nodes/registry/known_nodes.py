"""Facts that depend only on nodes and groups, computed once while these are unchanged: most ticks only see pods change.

Time plays a part for young nodes only, so nothing is cached of a cluster that has one. Nor is it with devices, as
health depends on pods then.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from kubetide.nodes.registry.view import Counts
from kubetide.nodes.settings import Settings
from kubetide.objects.node import Node
from kubetide.ports.cloud import Instance
from kubetide.units.time import Instant


class KnownNodes(msgspec.Struct):
    """Facts of an earlier tick; None and empty if there are none.

    Attributes:
        since: When the findings were made.
        by_group: Names of each group's nodes, in name order.
        good: Each group's nodes that can be a template, in name order.
        counts: What ``observe`` has counted, of all nodes and by group.
        failed: Machines that could not be made, by group.
        all_registered: Whether each machine of the groups has a node.
        marked: The nodes that have the soft taint of candidates for deletion.
        nominating: The nodes that have the taint under which pods are nominated to them, in name order.
        no_young: Whether no node will become a template by the passing of time alone.
    """

    version: int = -1
    settings: Settings | None = None
    since: Instant | None = None
    by_group: dict[str, list[str]] | None = None
    good: dict[str, list[Node]] | None = None
    counts: tuple[Counts, dict[str, Counts]] | None = None
    failed: dict[str, tuple[Instance, ...]] | None = None
    marked: frozenset[str] | None = None
    nominating: tuple[str, ...] | None = None
    all_registered: bool = False
    no_young: bool = False


def still_known(
    known: KnownNodes, version: int, settings: Settings, now: Instant | None, *, usable: bool
) -> KnownNodes:
    """Return the facts for that version of nodes and groups, or empty ones; ``now`` if facts depend on the time."""
    past = now is not None and known.since is not None and now < known.since
    if known.version != version or known.settings is not settings or past or not usable:
        known = KnownNodes(version=version, settings=settings)
    if now is not None and known.since is None:
        known.since = now
    return known


def copied(counts: Counts) -> Counts:
    """Return a copy of the counts that may be added to."""
    return replace(counts, not_started=[], unregistered=[], long_unregistered=[], late=[])
