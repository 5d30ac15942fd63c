"""Watches a cluster while a timeline is played, and notes when what has become so."""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import Any, NamedTuple

from tests.timelines.facts import WATCHED, Fact, Labels, facts_of

from kubetide.objects.kinds import PODS
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.units.time import Instant
from kubetide.watching import Informer

SETTLED_S = 0.3
"""A value of a status is a fact if it holds for so long: on the way to it there may be any number of others."""


class Noted(NamedTuple):
    """A fact, and the seconds from the start at which it was seen."""

    at: float
    fact: str


class Observer:
    """Informers of its own, so that it sees what any client sees."""

    def __init__(self, cluster: Cluster, clock: Clock, namespace: str) -> None:
        self._clock = clock
        self.labels = Labels()
        self.start: Instant | None = None
        self._noted: list[tuple[float, Fact]] = []
        self.informers = [
            Informer(cluster, kind, clock, namespace=namespace if kind.namespaced else "") for kind in WATCHED
        ]
        for informer in self.informers:
            informer.on_change(partial(self._changed, informer.kind.kind))
        self.pods = self.informers[WATCHED.index(PODS)]

    def _changed(self, kind: str, _key: Key, old: Any, new: Any) -> None:
        if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
            self._changed(kind, _key, old, None)
            old = None
        label = self.labels.of(new if new is not None else old)
        if self.start is not None:
            for fact in facts_of(kind, label, old, new):
                self.note(fact)

    def note(self, fact: Fact) -> None:
        """Note a fact now."""
        assert self.start is not None
        self._noted.append(((self._clock.now() - self.start) / 1e9, fact))

    def facts(self, *, tells_apart: bool, lasts: float) -> list[Noted]:
        """Return what was noted up to a time, in order, without values that were not yet settled.

        What becomes so a second time has its number behind it.
        """
        found: list[tuple[float, str]] = []
        standing: dict[tuple[str, str], str] = {}
        for index, (at, fact) in enumerate(self._noted):
            if at > lasts:
                break
            if at < 0:
                continue
            if fact.field:
                field = fact.about, fact.field
                then = next((later for later, other in self._noted[index + 1 :] if other[:2] == field), None)
                if (then is not None and then - at < SETTLED_S) or standing.get(field) == fact.value:
                    continue
                standing[field] = fact.value
            found.append((round(at, 3), str(fact)))
        count: Counter[str] = Counter()
        numbered = []
        for at, text in found:
            fact = text if tells_apart else _alike(text)
            count[fact] += 1
            numbered.append(Noted(at, fact if count[fact] == 1 else f"{fact} ({count[fact]})"))
        return numbered


def _alike(text: str) -> str:
    """Return a fact without the numbers of equals: of pods of one workload, and of nodes."""
    text = re.sub(r"(Pod|of) (\S+)-\d+(?=[ :]|$)", r"\1 \2-*", text)
    return re.sub(r"(Node|to) (n)\d+\b", r"\1 \2*", text)
