"""The loop's state: ScaledObjects, their servers' answers, and when there was work last."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kubetide.elastic.keda.fallback import Failures
from kubetide.elastic.keda.hpas import TriggerMetric
from kubetide.elastic.keda.sources import Source
from kubetide.objects.kinds import HPAS
from kubetide.objects.meta import Key
from kubetide.units.time import Instant, after


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answers of one object's servers and target.

    Attributes:
        active: Whether there is work: a server says so, or a window is open, or no trigger can say so.
        error: Why a server, or the target, could not be asked; empty for none.
        unread: Whether it was the target.
        metrics: What the servers offer.
        replicas, version: Of the target's scale.
        by: The metrics of the triggers that say that there is work.
        failed: The places of the triggers that could not be asked.
        offline: Whether one of them was not asked, as virtual time has no sockets.
    """

    key: Key
    active: bool = False
    error: str = ""
    metrics: tuple[TriggerMetric, ...] = ()
    replicas: int = 0
    version: str = ""
    unread: bool = False
    by: tuple[str, ...] = ()
    failed: tuple[int, ...] = ()
    offline: bool = False


class Memory(msgspec.Struct, frozen=True, omit_defaults=True):
    """The memory of one object: time of the last work, next query, last status.

    Attributes:
        settled: The size at which the object is paused, once its target has been seen there.
        failures: Of the metrics of an object with a fallback.
        offline: Whether it warns of servers only because they were not asked, as virtual time has no sockets.
    """

    key: Key
    last_active: Instant | None = None
    due: Instant = Instant(0)
    status: str = ""
    warned: tuple[str, ...] = ()
    settled: int | None = None
    failures: Failures = ()
    offline: bool = False


class Claim(NamedTuple):
    """Something that one object alone may have."""

    namespace: str
    group: str
    kind: str
    name: str


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The gathered input: everything, or the changes."""

    sources: tuple[Source, ...] = ()
    gone: tuple[Key, ...] = ()
    served: tuple[Key, ...] = ()
    answers: tuple[Answer, ...] = ()
    memory: tuple[Memory, ...] = ()


class State:
    """All objects.

    Attributes:
        served: Those that KEDA itself serves, as its HPA is there.
        answers: Of this tick.
        first: Of each target and of each name of an HPA, the object that was created first; objects that are refused, or
            come second to another, do not count.
    """

    def __init__(self) -> None:
        self.sources: dict[Key, Source] = {}
        self.memory: dict[Key, Memory] = {}
        self.served: frozenset[Key] = frozenset()
        self.answers: dict[Key, Answer] = {}
        self.first: dict[Claim, Key] = {}

    def apply(self, delta: Delta) -> None:
        """Apply the changes."""
        for key in delta.gone:
            self.sources.pop(key, None)
            self.memory.pop(key, None)
        for source in delta.sources:
            known = self.sources.get(source.key)
            self.sources[source.key] = source
            if known is None or known.uid != source.uid:
                self.memory[source.key] = Memory(source.key, source.last_active, failures=source.failures)
            elif _spec(known) != _spec(source):
                self._look_now(source.key)
        if delta.sources or delta.gone:
            self._order()
        for one in delta.memory:
            self.memory[one.key] = one
        self.served = frozenset(delta.served)
        self.answers = {one.key: one for one in delta.answers}

    def due(self, now: Instant) -> list[Key]:
        """Return the objects to evaluate, sorted; none is due later than after its interval but by a clock set back."""
        return sorted(
            key
            for key, one in self.memory.items()
            if not now < one.due <= after(now, self.sources[key].polling)
        )

    def follows(self, key: Key) -> bool:
        """Return whether an object is followed."""
        return not self.sources[key].paused and self._is_ours(key)

    def asks(self, key: Key) -> bool:
        """Return whether the target of an object is to be read: it is followed, or not yet at the size of its pause."""
        source = self.sources[key]
        if not source.paused:
            return self._is_ours(key)
        pending = source.paused_at is not None and self.memory[key].settled != source.paused_at
        return pending and self._is_ours(key)

    def _is_ours(self, key: Key) -> bool:
        source = self.sources[key]
        return not source.refused and key not in self.served and self.rival_of(source) is None

    def rival_of(self, source: Source) -> tuple[Claim, Key] | None:
        """Return what an older object has that this one needs too, and that object; None for nothing."""
        for claim in claims_of(source):
            first = self.first.get(claim, source.key)
            if first != source.key:
                return claim, first
        return None

    def _order(self) -> None:
        """Find the first object of each claim anew; look now at those that have become the first."""
        known, self.first = self.first, {}
        for source in sorted(self.sources.values(), key=lambda one: (one.created, one.key)):
            if not source.refused and self.rival_of(source) is None:
                self.first |= dict.fromkeys(claims_of(source), source.key)
        for claim, key in self.first.items():
            if known.get(claim, key) != key:
                self._look_now(key)

    def _look_now(self, key: Key) -> None:
        self.memory[key] = msgspec.structs.replace(self.memory[key], due=Instant(0), settled=None)

    def dump(self) -> Delta:
        """Return everything as a full delta, with the answers of this tick."""
        return Delta(
            sources=tuple(self.sources[key] for key in sorted(self.sources)),
            served=tuple(sorted(self.served)),
            answers=tuple(self.answers[key] for key in sorted(self.answers)),
            memory=tuple(self.memory[key] for key in sorted(self.memory)),
        )


def claims_of(source: Source) -> tuple[Claim, Claim]:
    """Return what no two objects may have in common: the target, and the HPA."""
    target = source.target
    return (
        Claim(source.namespace, target.api_version.rpartition("/")[0], target.kind, target.name),
        Claim(source.namespace, HPAS.group, HPAS.kind, source.hpa),
    )


def _spec(source: Source) -> Source:
    return msgspec.structs.replace(source, last_active=None, failures=())
