"""The actions of a tick and their outcomes: values between the pure functions and the controller."""

from __future__ import annotations

import msgspec

from kubetide.elastic.decide import Notice
from kubetide.elastic.keda.state import Memory
from kubetide.explain.reasons import Reason
from kubetide.objects.meta import Key
from kubetide.units.time import Instant


class Write(msgspec.Struct, frozen=True):
    """A new size of a target; ``by`` names the metrics that are work."""

    key: Key
    current: int
    replicas: int
    version: str
    by: tuple[str, ...] = ()


class Commands(msgspec.Struct, frozen=True):
    """The actions of a tick.

    Attributes:
        fallbacks: Of each object that was asked, the values of the metrics that fall back, in thousandths.
    """

    now: Instant
    writes: tuple[Write, ...] = ()
    statuses: tuple[tuple[Key, msgspec.Raw], ...] = ()
    notices: tuple[Notice, ...] = ()
    reasons: tuple[Reason, ...] = ()
    memory: tuple[Memory, ...] = ()
    fallbacks: tuple[tuple[Key, tuple[tuple[str, int], ...]], ...] = ()


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of a write.

    Attributes:
        withheld: Whether it was not sent, as the program only advises.
        pending: Why it is not known yet whether the target was changed; it is read again then.
    """

    error: str = ""
    withheld: bool = False
    pending: str = ""


class Result(msgspec.Struct, frozen=True):
    """Events and reasons once the outcomes are known."""

    notices: tuple[Notice, ...] = ()
    reasons: tuple[Reason, ...] = ()
