"""The recommender's core reduced to one VPA and its pods: the same answer about it in less time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec.structs import replace

from kubetide.explain.algorithm import StepCore
from kubetide.objects.meta import Key
from kubetide.units.selectors import NOTHING, Selector, SelectorError
from kubetide.units.time import Instant
from kubetide.vertical.recommender.core import ALGORITHM
from kubetide.vertical.recommender.delta import Delta, Memory
from kubetide.vertical.recommender.facts.links import Links
from kubetide.vertical.recommender.facts.views import Samples, VpaView
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.state import State


class OneVpaCore(StepCore[State]):
    """Applies one VPA, and the pods that it selects with their samples.

    Attributes:
        stands_alone: Whether that is independent of other VPAs and their pods; where it is not, nothing is taken over or
            decided, and the whole core has the answer.
    """

    def __init__(self, key: Key) -> None:
        super().__init__(ALGORITHM)
        self.stands_alone = True
        self._key = key
        self._settings = Settings()
        self._selector: Selector = NOTHING
        self._links = Links()
        self._pods: dict[str, None] = {}
        """Names of its pods, also of those that it selects no more."""
        self._others: set[str] = set()
        """Names of the other pods of its namespace."""
        self._sets: dict[object, Mapping[str, str]] = {}
        """Labels of its pods."""

    def take(self, delta: Delta, *, full: bool) -> None:
        """Apply the changes that concern the VPA."""
        if not self.stands_alone:
            return
        if full:
            self._settings = delta.settings or Settings()
            self._links, self._pods, self._others, self._sets = Links(), {}, set(), {}
        self.stands_alone = self._follows(delta, full=full)
        if self.stands_alone:
            super().take(self._about(delta), full=full)

    def decide(self, now: Instant) -> bytes:
        """Return the commands."""
        return super().decide(now) if self.stands_alone else b"{}"

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:
        """Apply the outcomes; return the result as bytes."""
        return super().absorb(outcomes, now) if self.stands_alone else b"{}"

    def _follows(self, delta: Delta, *, full: bool) -> bool:
        """Note the VPAs and pods of a delta; return whether the VPA can still be followed alone."""
        # What is saved of pods without a VPA depends on all of them.
        if self._settings.memory_saver or self._key in map(tuple, delta.gone_vpas):
            return False
        try:
            for view in delta.vpas:
                self._put_vpa(view, full=full)
        except (SelectorError, _Changed):
            return False
        memory = delta.memory or Memory()
        sets = [one.labels for one in memory.aggregates if self._is_mine(one.namespace, one.labels)]
        pods = [(one.namespace, one.name, one.labels) for one in delta.pods]
        pods += [(one.namespace, one.pod, one.labels) for one in delta.history]
        for namespace, name, labels in pods:
            if self._is_mine(namespace, labels):
                sets.append(labels)
                self._pods[name] = None
            elif namespace == self._key[0] and name not in self._pods:
                self._others.add(name)
        # A pod that it did not select before has a past that is not known here.
        if not self._selector.selectable or not self._others.isdisjoint(self._pods):
            return False
        # Two VPAs that select the same pods share what these have used. A new VPA may select those that are there.
        self._sets |= {tuple(sorted(one.items())): one for one in sets}
        shared = self._sets.values() if delta.vpas else sets
        return all(self._links.matching(self._key[0], one) == [self._key] for one in shared)

    def _put_vpa(self, view: VpaView, *, full: bool) -> None:
        """Note a VPA. Raises SelectorError; _Changed for the VPA that is followed, where it selects other pods than before."""
        key = view.namespace, view.name
        served = self._settings.serves(view.namespace, view.recommenders)
        if key == self._key:
            selector = view.target.read()
            if not served or not (full or str(selector) == str(self._selector)):
                raise _Changed
            self._selector = selector
            self._links.put(key, selector)
        elif view.namespace == self._key[0] and served:
            self._links.put(key, view.target.read())
        else:
            self._links.drop(key)

    def _is_mine(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return namespace == self._key[0] and self._selector.matches(labels)

    def _about(self, delta: Delta) -> Delta:
        """Return what of a delta concerns the VPA and its pods."""
        key, namespace, pods = self._key, self._key[0], self._pods
        memory = delta.memory
        if memory is not None:
            memory = replace(
                memory,
                aggregates=tuple(
                    one
                    for one in memory.aggregates
                    if (
                        (one.namespace, one.vpa) == key
                        if one.vpa
                        else self._is_mine(one.namespace, one.labels)
                    )
                ),
                containers=tuple(
                    one for one in memory.containers if one.namespace == namespace and one.pod in pods
                ),
                checkpointed=tuple(one for one in memory.checkpointed if one[:2] == key),
                ghosts=tuple(one for one in memory.ghosts if one[0] == namespace and one[1] in pods),
            )
        gone = [one for one in delta.gone_pods if one[0] == namespace]
        about = replace(
            delta,
            vpas=[one for one in delta.vpas if (one.namespace, one.name) == key],
            gone_vpas=(),
            statuses=[one for one in delta.statuses if (one.namespace, one.name) == key],
            checkpoints=[one for one in delta.checkpoints if (one.namespace, one.vpa) == key],
            gone_checkpoints=(),
            load=[one for one in delta.load if (one.namespace, one.vpa) == key],
            history=[one for one in delta.history if one.namespace == namespace and one.pod in pods],
            pods=[one for one in delta.pods if one.namespace == namespace and one.name in pods],
            gone_pods=[one for one in gone if one[1] in pods],
            samples=None if delta.samples is None else _of_pods(delta.samples, namespace, pods),
            ooms=[one for one in delta.ooms if one.namespace == namespace and one.pod in pods],
            memory=memory,
        )
        for _, name in gone:
            pods.pop(name, None)
            self._others.discard(name)
        return about


class _Changed(Exception):
    """The VPA selects other pods than before, or is served by another recommender."""


def _of_pods(samples: Samples, namespace: str, pods: Mapping[str, None]) -> Samples:
    """Return the samples of some pods of a namespace."""
    chosen = [
        number
        for number, name in enumerate(samples.names)
        if name in pods and samples.namespaces[number] == namespace
    ]
    bounds = [(int(samples.first[number]), int(samples.first[number + 1])) for number in chosen]
    rows = np.array([row for begin, end in bounds for row in range(begin, end)], np.int64)
    return Samples(
        tuple(samples.namespaces[number] for number in chosen),
        tuple(samples.names[number] for number in chosen),
        samples.times[chosen],
        np.cumsum([0, *(end - begin for begin, end in bounds)], dtype=np.int64),
        tuple(samples.containers[row] for row in rows.tolist()),
        samples.cpu[rows],
        samples.memory[rows],
    )
