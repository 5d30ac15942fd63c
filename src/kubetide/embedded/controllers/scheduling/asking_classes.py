"""Waiting pods that ask about others, found by the pods that they ask about.

Source: kube-scheduler 1.36, the queueing hints of InterPodAffinity and PodTopologySpread: a pod that comes to a node
wakes those whose affinity or whose spread constraint means it.
"""

from __future__ import annotations

from typing import NamedTuple

from kubetide.scheduling import ClusterFacts, PodClass
from kubetide.scheduling.columns.counting import CountKey, MatchingPods, SpreadPods
from kubetide.scheduling.columns.pod_index import Choice, Mark, marks_of
from kubetide.scheduling.filters.in_use import filters_in_use


class _Asked(NamedTuple):
    """What a class asks about, and the marks that it is found by; None where any pod may be meant."""

    key: CountKey
    marks: tuple[Mark | None, ...]


class AskingClasses:
    """Classes for which a node may open up when a pod comes to it, or to its domain."""

    def __init__(self) -> None:
        self._asked: dict[PodClass, list[_Asked]] = {}
        self._by_mark: dict[Mark | None, dict[PodClass, None]] = {}

    def add(self, pod_class: PodClass) -> None:
        """Take in a class, unless pods that are added can only make it harder to place."""
        keys: list[CountKey] = [SpreadPods(pod_class.namespace, one.selector) for one in pod_class.spread]
        if pod_class.affinity:
            keys.append(MatchingPods(pod_class.affinity))
        if not keys and filters_in_use().shares_verdicts:
            return
        # Of several choices that by which the fewest are found.
        self._asked[pod_class] = [
            _Asked(key, min(key.choices(), key=self._number_found, default=(None,))) for key in keys
        ]
        for one in self._places(pod_class):
            self._by_mark.setdefault(one, {})[pod_class] = None

    def remove(self, pod_class: PodClass) -> None:
        """Forget a class, if it is here."""
        if pod_class not in self._asked:
            return
        for mark in self._places(pod_class):
            found = self._by_mark[mark]
            del found[pod_class]
            if not found:
                del self._by_mark[mark]
        del self._asked[pod_class]

    def about(self, placed: PodClass, facts: ClusterFacts) -> list[PodClass]:
        """Return the classes that a pod of the class may have opened a node for."""
        if not self._asked:
            return []
        found: dict[PodClass, None] = {}
        for mark in (None, *marks_of(placed)):
            found.update(self._by_mark.get(mark, {}))
        if not filters_in_use().shares_verdicts:
            return list(found)
        return [
            one
            for one in found
            if any(asked.key.counts(placed, facts, terminating=False) for asked in self._asked[one])
        ]

    def _number_found(self, choice: Choice) -> int:
        return sum(len(self._by_mark.get(mark, ())) for mark in choice)

    def _places(self, pod_class: PodClass) -> dict[Mark | None, None]:
        """The marks to find a class by; plugins of other packages may ask about any pod."""
        marks: dict[Mark | None, None] = {mark: None for one in self._asked[pod_class] for mark in one.marks}
        return marks if filters_in_use().shares_verdicts else {None: None}
