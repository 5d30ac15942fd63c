"""What a pass decides to write, and what comes of it."""

from __future__ import annotations

import msgspec

from kubetide.objects.vpa import VpaStatus
from kubetide.units.time import Instant
from kubetide.vertical.recommender.views import CheckpointView, Key


class StatusWrite(msgspec.Struct, frozen=True):
    """The new status of a VPA, whole; it differs from the stored one."""

    namespace: str
    name: str
    status: VpaStatus


class Commands(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer of ``decide``.

    Attributes:
        at: When it was decided.
        statuses: In order of namespace and name.
        checkpoints: Of the VPA first whose checkpoints were written longest ago.
        deletions: Checkpoints whose VPA is gone; ``collects`` says whether they were looked for.
    """

    at: Instant
    statuses: tuple[StatusWrite, ...] = ()
    checkpoints: tuple[CheckpointView, ...] = ()
    deletions: tuple[Key, ...] = ()
    collects: bool = False


class Failure(msgspec.Struct, frozen=True):
    """A write that did not come about: ``kind`` is ``status``, ``checkpoint`` or ``deletion``."""

    kind: str
    namespace: str
    name: str
    error: str = ""


class Outcomes(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of the writes.

    Attributes:
        failures: Those that were refused, or for which no time was left.
        withheld: Whether nothing was sent, on purpose.
    """

    failures: tuple[Failure, ...] = ()
    withheld: bool = False


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer of ``absorb``: how many aggregates and pods are tracked, and what went wrong on the way in."""

    aggregates: int = 0
    pods: int = 0
    problems: tuple[str, ...] = ()
