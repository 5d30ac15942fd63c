"""Writes of a pass, and their outcomes."""

from __future__ import annotations

import msgspec

from kubetide.objects.meta import Key
from kubetide.units.time import Instant


class StatusWrite(msgspec.Struct, frozen=True):
    """The new status of a VPA, whole and encoded; it differs from the stored one."""

    namespace: str
    name: str
    status: msgspec.Raw


class Commands(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of ``decide``.

    Attributes:
        at: When it was decided.
        statuses: In order of namespace and name.
        advice: Recommendations of workloads without a VPA object, as statuses that are nowhere written.
        checkpoints: VPAs whose checkpoints are to be written, first the one that was written longest ago;
            ``checkpoints_of`` makes their content while they are written, as that of all takes much memory.
        deletions: Checkpoints whose VPA is gone; ``collects`` says whether they were looked for.
    """

    at: Instant
    statuses: tuple[StatusWrite, ...] = ()
    advice: tuple[StatusWrite, ...] = ()
    checkpoints: tuple[Key, ...] = ()
    deletions: tuple[Key, ...] = ()
    collects: bool = False


class Failure(msgspec.Struct, frozen=True):
    """A failed write: ``kind`` is ``status`` or ``deletion``; or ``checkpoint`` of a VPA."""

    kind: str
    namespace: str
    name: str
    error: str = ""


class Outcomes(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcomes of the writes.

    Attributes:
        failures: Those that were refused, or for which no time was left; of a VPA one checkpoint is enough.
        withheld: Whether nothing was sent, on purpose.
    """

    failures: tuple[Failure, ...] = ()
    withheld: bool = False


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of ``absorb``: the number of tracked aggregates and pods, and errors of the input."""

    aggregates: int = 0
    pods: int = 0
    problems: tuple[str, ...] = ()
