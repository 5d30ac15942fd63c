"""The vocabulary of a playground: what a person changed."""

from __future__ import annotations

from typing import Final

from kubetide.explain.reasons import Reason, Vocabulary
from kubetide.simulate.playground.state import Change, Fault, State
from kubetide.units.time import format_rfc3339

_SENTENCES: Final = {
    "LoadSet": "load of {subject} set to {requests} requests/s (it was {before}) by {by}",
    "LoadReset": "load of {subject} is again the scenario's (it was {before} requests/s), by {by}",
    "FaultInjected": "fault {subject} injected into {where} by {by}, {until}",
    "FaultCleared": "fault {subject} of {where} cleared by {by}",
    "Restored": "what was changed before goes on: loads {loads}, faults {faults}",
    "FaultEnded": "fault {subject} of {where} is over",
}
VOCABULARY: Final = Vocabulary(_SENTENCES, actions=_SENTENCES)


def reasons_of(change: Change, after: State) -> tuple[Reason, ...]:
    """Return the reasons of a change; ``after`` is the state after it."""
    if change.do == "restore":
        loads = ", ".join(f"{name} {requests:g}" for name, requests in after.loads.items())
        faults = ", ".join(f"{one.kind} of {one.where}" for one in after.faults)
        return (VOCABULARY.reason("Restored", loads=loads or "none", faults=faults or "none"),)
    if change.do in ("set-load", "reset-load"):
        code = "LoadSet" if change.do == "set-load" else "LoadReset"
        asked = {"requests": change.requests} if change.do == "set-load" else {}
        return (VOCABULARY.reason(code, change.service, **asked, before=change.before, by=change.by),)
    return tuple(_of_fault(change, fault) for fault in change.faults)


def _of_fault(change: Change, fault: Fault) -> Reason:
    about = {"group": fault.group, "where": fault.where}
    if change.do == "inject":
        return VOCABULARY.reason("FaultInjected", fault.kind, **about, by=change.by, until=until_words(fault))
    if change.by:
        return VOCABULARY.reason("FaultCleared", fault.kind, **about, by=change.by)
    return VOCABULARY.reason("FaultEnded", fault.kind, **about)


def until_words(fault: Fault) -> str:
    """Return a text for how long a fault stays."""
    return "until it is cleared" if fault.end is None else f"until {format_rfc3339(fault.end)}"
