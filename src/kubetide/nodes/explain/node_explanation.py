"""The answer about one node: why it stays or goes."""

from __future__ import annotations

import msgspec

from kubetide.units.time import Instant


class NodeExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a node stays or goes.

    Attributes:
        price_per_hour: What the node costs, and so what lifting the obstacle saves; None where it is not known.
        way_out: What a person can do about the blocking pod, or about what else keeps the node; empty for nothing.
        then: What keeps the node once that is done, as deciding again has found; empty if it goes then, None if not tried.
        goes: When the node may go, in words; empty where that is not known.
        failed: How often its removal has failed, when last and why, in words; empty for never.
        filled: Whether the scheduler is steered to fuller nodes, in words; empty where it is not.
        reserved: For whose pods, which are not there yet, capacity on it is reserved; empty for none.
        consolidated: What consolidation does with it, what that saves and what it waits for; empty for nothing.
        unready: Since when it is not ready and why, in words; empty while it is ready.
        running: Which pods run on it, and what they request of it, a line each.
    """

    node: str
    group: str
    status: str
    """deleting, unneeded, stays, or unknown."""
    sentence: str
    reason: str = ""
    blocking_pod: str = ""
    blocking_reason: str = ""
    utilization: float | None = None
    since: Instant | None = None
    price_per_hour: float | None = None
    way_out: str = ""
    then: str | None = None
    goes: str = ""
    failed: str = ""
    filled: str = ""
    reserved: str = ""
    consolidated: str = ""
    unready: str = ""
    running: tuple[str, ...] = ()
