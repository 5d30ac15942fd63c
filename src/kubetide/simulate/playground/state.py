"""The active changes of a running playground, and one change of them."""

from __future__ import annotations

from typing import Literal

import msgspec

from kubetide.simulate.scenarios.spec import FAULT_KINDS
from kubetide.units.time import Instant

GROUP_KINDS = ("stock-out", "boot-failure", "cloud-error", "node-failure")
"""Kinds of faults that may be about one node group; the others are about the API server."""

ABOUT = {
    "stock-out": "machines that are ordered fail with InsufficientInstanceCapacity",
    "boot-failure": "machines that are ordered run but never become nodes",
    "cloud-error": "calls that change a node group are refused",
    "node-failure": "the kubelet of one Ready node falls silent",
    "watch-expiry": "all watches of the API server end as expired, at once and then every minute",
    "api-error": "requests of the loops to the API server fail with 503",
}
assert ABOUT.keys() == set(FAULT_KINDS)


class Fault(msgspec.Struct, frozen=True, omit_defaults=True):
    """An active fault.

    Attributes:
        kind: One of ``FAULT_KINDS``.
        group: The node group that it is about; empty for all of them, and for faults of the API server.
        start: When it was injected.
        end: When it ends by itself; None for one that stays until it is cleared.
        probability: Of hitting what it is about.
        node: Of a node that fails, its name.
    """

    kind: str
    start: Instant
    group: str = ""
    end: Instant | None = None
    probability: float = 1.0
    node: str = ""

    @property
    def where(self) -> str:
        """The node group or service that the fault hits, as text."""
        if self.node:
            return f"node {self.node}"
        if self.kind not in GROUP_KINDS:
            return "the API server"
        return f"node group {self.group}" if self.group else "all node groups"


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change.

    Attributes:
        do: What is done; ``restore`` changes nothing: the state is the persisted one of an earlier start.
        by: Who did it; empty for a fault that ended by itself.
        service: Of a load: the service, ``namespace/name``.
        requests: Of a load that is set: requests/s.
        before: Of a load: requests/s in the step before.
        faults: What is injected or cleared.
    """

    do: Literal["set-load", "reset-load", "inject", "clear", "restore"]
    by: str = ""
    service: str = ""
    requests: float = 0.0
    before: float = 0.0
    faults: tuple[Fault, ...] = ()


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """The active changes.

    Attributes:
        services: All that have a load, ``namespace/name``.
        loads: Requests/s of those whose load was set; the others have the scenario's.
        faults: Those that are on, in the order in which they were injected.
    """

    services: tuple[str, ...] = ()
    loads: dict[str, float] = {}
    faults: tuple[Fault, ...] = ()


def changed(state: State, change: Change) -> State:
    """Return the state after a change."""
    if change.do == "restore":
        return state
    loads = {name: value for name, value in state.loads.items() if name != change.service}
    if change.do == "set-load":
        loads[change.service] = change.requests
    faults = state.faults
    if change.do == "inject":
        faults = (*faults, *change.faults)
    elif change.do == "clear":
        faults = tuple(one for one in faults if one not in change.faults)
    return msgspec.structs.replace(state, loads=dict(sorted(loads.items())), faults=faults)
