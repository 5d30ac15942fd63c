"""Time tables and their progress: the values of the state, and the format of the records.

A time table is an object of any kind that changes a target by the clock, read into one shape. What has
happened to it so far (``Progress``) is read from its status when it is first seen and is part of the state from then on.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from kubetide.schedules.settings import Settings
from kubetide.units.time import Duration, Instant

Key = tuple[str, str, str]
"""Kind, namespace and name of a time table."""


Identity = tuple[str, str, str, str]
"""Group, kind in lower case, namespace and name of a target."""

WindowState = Literal["", "open", "rests", "closed"]
"""One window is open; none is, and the size stays for the cooldown; none is."""


class Target(msgspec.Struct, frozen=True, order=True):
    """The target of a time table."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def identity(self) -> Identity:
        """Group, kind, namespace and name: the same in whatever version, and however the kind is spelled."""
        return self.api_version.rpartition("/")[0], self.kind.lower(), self.namespace, self.name


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a time table.

    Attributes:
        end: When the rule ceases to hold; empty for one that holds until another begins.
        size: Replicas from then on.
        minimum, maximum: Bounds of an HPA from then on.
        once: Whether it holds from its first activation on and is then done.
        exclude: Expressions of local dates on which it does not begin.
        zone: IANA zone; empty for the zone of the process.
    """

    name: str
    schedule: str
    end: str = ""
    size: int | None = None
    minimum: int | None = None
    maximum: int | None = None
    once: bool = False
    exclude: tuple[str, ...] = ()
    zone: str = ""


class Limits(msgspec.Struct, frozen=True):
    """KEDA's limits around the windows of a table: fields of a ScaledObject.

    Attributes:
        created, initial_cooldown: Until no window has been open since it was created, the size stays so long.
        only_up, only_down: Whether the size is not lowered, or not raised.
    """

    minimum: int = 0
    maximum: int = 100
    idle: int | None = None
    cooldown: Duration = Duration(300_000_000_000)
    paused: bool = False
    paused_at: int | None = None
    created: Instant = Instant(0)
    initial_cooldown: Duration = Duration(0)
    only_up: bool = False
    only_down: bool = False


class Bounds(msgspec.Struct, frozen=True, omit_defaults=True):
    """The combined bounds of a table's rules.

    Attributes:
        minimum, maximum: Floor and ceiling; None where no rule says anything of it.
        rules: The names of those that hold.
        next: When that may change.
    """

    minimum: int | None = None
    maximum: int | None = None
    rules: tuple[str, ...] = ()
    next: Instant | None = None


class Mark(msgspec.Struct, frozen=True):
    """The last outcome of a rule: the state and the message that the object's status shows.

    Attributes:
        at: When that was; activations up to then have been dealt with.
        due: The activation that it is about; None for none.
    """

    rule: Rule
    state: str
    message: str
    at: Instant
    due: Instant | None = None


class Table(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time table.

    Attributes:
        created: What is due before is not of this table.
        refused: Why nothing of it can be followed.
        notes: What else is wrong; the table is followed all the same.
        marks, last, basis: What its status says; see ``Progress``.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    target: Target
    rules: tuple[Rule, ...]
    created: Instant
    limits: Limits | None = None
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()
    last: Instant | None = None
    basis: str = ""

    @property
    def key(self) -> Key:
        """Kind, namespace and name."""
        return (self.kind, self.namespace, self.name)


class Attempt(msgspec.Struct, frozen=True):
    """A change that failed and is tried again.

    Attributes:
        rule: Its place in the table.
        count: How often it has been tried.
        again: When the next try is due.
        error: What the last one ended with; ``unread`` says that the target could not even be read.
    """

    rule: int
    due: Instant
    count: int
    again: Instant
    error: str
    unread: bool = False


class Progress(msgspec.Struct, frozen=True, omit_defaults=True):
    """The progress of a table.

    Attributes:
        last: Activations up to then have been dealt with, for kinds that count by object.
        basis: What the marks were made for; where it changes, they are made anew.
        warned: Problems that were reported.
        bounds: What was found last, of kinds whose rules are floors and ceilings.
        window_state: State of the windows, for kinds that have some; empty if they are not followed.
    """

    uid: str
    marks: tuple[Mark, ...] = ()
    last: Instant | None = None
    basis: str = ""
    attempts: tuple[Attempt, ...] = ()
    warned: tuple[str, ...] = ()
    bounds: Bounds | None = None
    window_state: WindowState = ""


class HpaView(msgspec.Struct, frozen=True):
    """Bounds of an HPA that is a target, and its own target."""

    minimum: int | None
    maximum: int
    current: int
    target: Target
    resource_version: str = ""


LATE: Final = "late"
"""The stage of a view whose read had no answer in time."""


class View(msgspec.Struct, frozen=True, omit_defaults=True):
    """The present state of a target.

    Attributes:
        replicas: What its scale asks for; of an HPA, the scale of the HPA's own target.
        resource_version: Of the scale.
        hpa: For a target that is an HPA.
        error: Why it could not be read; ``stage`` says where: ``version``, ``kind``, ``get``, and the same
            with ``hpa-`` before it for the target of an HPA; or ``late`` where there was no answer in time.
    """

    target: Target
    replicas: int = 0
    resource_version: str = ""
    hpa: HpaView | None = None
    error: str = ""
    stage: str = ""


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The gathered input: everything, or the changes.

    Attributes:
        views: The targets that this tick needs.
        progress: With everything, what has happened so far.
        due: With everything, when each table is to be looked at next, and when they were ``looked`` at last.
        statuses: With everything, what was written last.
    """

    settings: Settings | None = None
    tables: tuple[Table, ...] = ()
    gone: tuple[Key, ...] = ()
    views: tuple[View, ...] = ()
    progress: tuple[tuple[Key, Progress], ...] = ()
    due: tuple[tuple[Key, Instant], ...] = ()
    looked: Instant = Instant(0)
    statuses: tuple[tuple[Key, str], ...] = ()
