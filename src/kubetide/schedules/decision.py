"""Decisions of the time-table loop, and their outcomes."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.schedules.tables import Key, Progress, Rule, Target, View
from kubetide.units.time import Instant

Level = Literal["Normal", "Warning"]


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule's change of a target, bounds first.

    Attributes:
        minimum, maximum: New bounds of the HPA that is the target; None leaves a bound as it is.
        replicas: New size of ``workload``; None leaves it.
        current: Its size before.
        error: Why it cannot be tried at all.
        note: What is said in place of the change of size.
    """

    workload: Target
    minimum: int | None = None
    maximum: int | None = None
    replicas: int | None = None
    current: int = 0
    hpa_version: str = ""
    scale_version: str = ""
    error: str = ""
    stage: str = ""
    note: str = ""

    @property
    def writes(self) -> bool:
        """Whether anything is written."""
        return not self.error and not (self.replicas is self.minimum is self.maximum is None)


def view_after(view: View, change: Change) -> View:
    """Return a target as a change leaves it: in versions that are not known yet, so the next write has no condition."""
    hpa = view.hpa
    if hpa is not None and (change.minimum is not None or change.maximum is not None):
        low = hpa.minimum if change.minimum is None else change.minimum
        high = hpa.maximum if change.maximum is None else change.maximum
        hpa = replace(hpa, minimum=low, maximum=high, resource_version="")
    if change.replicas is None:
        return replace(view, hpa=hpa)
    return replace(view, hpa=hpa, replicas=change.replicas, resource_version="")


class Run(msgspec.Struct, frozen=True):
    """One activation of a rule, tried once.

    Attributes:
        place: Of the rule in the table; -1 for what its windows make together.
        due: The activation.
        count: The how many-th try it is, from 1.
    """

    table: Key
    place: int
    rule: Rule
    due: Instant
    count: int
    target: Target
    change: Change


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a run.

    Attributes:
        withheld: Whether the write was not sent, as the program only advises.
        pending: Why it is not known yet whether the target was changed; it is read again then.
    """

    error: str = ""
    withheld: bool = False
    pending: str = ""


class Notice(msgspec.Struct, frozen=True):
    """An event about a table."""

    table: Key
    level: Level
    reason: str
    message: str


class Commands(msgspec.Struct, frozen=True):
    """The actions of a tick: runs in order, tables whose progress changes without one, and events."""

    now: Instant
    runs: tuple[Run, ...] = ()
    progress: tuple[tuple[Key, Progress], ...] = ()
    notices: tuple[Notice, ...] = ()
    reasons: tuple[Reason, ...] = ()


class Result(msgspec.Struct, frozen=True):
    """The writes: statuses by table as JSON, events, and reasons."""

    statuses: tuple[tuple[Key, msgspec.Raw], ...] = ()
    notices: tuple[Notice, ...] = ()
    reasons: tuple[Reason, ...] = ()
