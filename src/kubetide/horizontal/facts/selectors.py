"""Which pods belong to which HPA, and which HPAs share pods.

Pods of one owner share their labels, so selectors are matched against the distinct label sets of a
namespace, never against pods. Indexes by label value keep a new label set or a new selector from
being compared with everything.

Source: horizontal controller v1.36: all cached pods of the namespace that match count, owners play
no part; a pod that the selectors of two HPAs match makes both ambiguous.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections.abc import Callable

import msgspec
import numpy as np

from kubetide.horizontal.facts.index import Index
from kubetide.horizontal.facts.views import PodView
from kubetide.objects.meta import Key
from kubetide.units.selectors import Selector
from kubetide.units.vectors import Int64Vector

LabelSetKey = tuple[str, tuple[tuple[str, str], ...]]
Posting = tuple[str, str, str]
"""Namespace, label, value; label and value are empty for selectors that name no exact value."""

_NONE: Int64Vector = np.zeros(0, np.int64)


class _LabelSet(msgspec.Struct, eq=False):
    """The pods of a namespace with the same labels, their rows ordered, and the HPAs that select them."""

    namespace: str
    labels: dict[str, str]
    rows: array[int] = msgspec.field(default_factory=lambda: array("q"))
    hpas: tuple[Key, ...] = ()


class _Claim(msgspec.Struct, eq=False):
    """The selector of an HPA, and the rows that it takes in, where they are known."""

    selector: Selector
    text: str
    posting: Posting
    rows: Int64Vector | None = None


class Membership:
    """Label sets and the selectors that match them."""

    def __init__(self) -> None:
        self._sets: dict[LabelSetKey, _LabelSet] = {}
        self._claims: dict[Key, _Claim] = {}
        self._sets_of: Index[Key, LabelSetKey] = Index()
        """The label sets that the selector of each HPA matches: one, or one a pod where each has a label of its own."""
        self._sets_by_label: Index[Posting, LabelSetKey] = Index()
        self._claims_by_label: Index[Posting, Key] = Index()
        self._contested: dict[LabelSetKey, None] = {}
        self.version = 0
        """Changes whenever any HPA's pods change."""

    # ── pods ──

    def add_pod(self, row: int, pod: PodView) -> dict[str, str]:
        """Return labels equal to the pod's; one object for all pods that have them."""
        key = _label_set_key(pod)
        label_set = self._sets.get(key)
        if label_set is None:
            label_set = self._sets[key] = _LabelSet(pod.namespace, pod.labels)
            for posting in _postings(key):
                self._sets_by_label.add(posting, key)
                for hpa in self._claims_by_label.of(posting):
                    self._match(hpa, key, label_set)
        insort(label_set.rows, row)
        self._touch(label_set)
        return label_set.labels

    def remove_pod(self, row: int, pod: PodView) -> None:
        key = _label_set_key(pod)
        label_set = self._sets[key]
        del label_set.rows[bisect_left(label_set.rows, row)]
        self._touch(label_set)
        if not label_set.rows:
            del self._sets[key]
            for posting in _postings(key):
                self._sets_by_label.drop(posting, key)
            for hpa in label_set.hpas:
                self._sets_of.drop(hpa, key)
            self._contested.pop(key, None)

    # ── selectors ──

    def claim(self, hpa: Key, text: str, selector: Selector) -> None:
        """Store the latest selector of the HPA's target."""
        known = self._claims.get(hpa)
        if known is not None:
            if known.text == text:
                return
            self.release(hpa)
        exact = selector.exact_values()
        namespace = hpa[0]
        candidates = [(namespace, label, value) for label, value in sorted(exact.items())] or [
            (namespace, "", "")
        ]
        posting = min(candidates, key=self._sets_by_label.count)
        self._claims[hpa] = _Claim(selector, text, posting)
        self._claims_by_label.add(posting, hpa)
        for key in self._sets_by_label.of(posting):
            self._match(hpa, key, self._sets[key])
        self.version += 1

    def release(self, hpa: Key) -> None:
        """Forget the HPA's selector, if there is one."""
        claim = self._claims.pop(hpa, None)
        if claim is None:
            return
        self._claims_by_label.drop(claim.posting, hpa)
        for key in tuple(self._sets_of.of(hpa)):
            self._sets_of.drop(hpa, key)
            label_set = self._sets[key]
            label_set.hpas = tuple([other for other in label_set.hpas if other != hpa])
            if len(label_set.hpas) < 2:
                self._contested.pop(key, None)
        self.version += 1

    def has_claim(self, hpa: Key) -> bool:
        """Return whether a selector of the HPA is known."""
        return hpa in self._claims

    def selectors(self) -> dict[Key, str]:
        """Return the selector texts by HPA, ordered."""
        return {hpa: self._claims[hpa].text for hpa in sorted(self._claims)}

    def rows_of(self, hpa: Key, name_of: Callable[[int], str]) -> Int64Vector:
        """Return the rows of the HPA's pods, ordered by name; none without a known selector."""
        claim = self._claims.get(hpa)
        if claim is None:
            return _NONE
        if claim.rows is None:
            rows = [row for key in self._sets_of.of(hpa) for row in self._sets[key].rows]
            rows.sort(key=name_of)
            claim.rows = np.array(rows, np.int64)
        return claim.rows

    def claimants(self, hpa: Key) -> tuple[Key, ...]:
        """Return all HPAs, ordered, that select any of this HPA's pods, itself included."""
        found: dict[Key, None] = {}
        for key in self._sets_of.of(hpa):
            found.update(dict.fromkeys(self._sets[key].hpas))
        return tuple(sorted(found)) if len(found) > 1 else tuple(found)

    def is_contested(self, hpa: Key) -> bool:
        """Return whether the HPA shares pods with another one."""
        return bool(self._contested) and any(key in self._contested for key in self._sets_of.of(hpa))

    def contested(self) -> tuple[Key, ...]:
        """Return the HPAs, ordered, that share pods with another one."""
        return tuple(sorted({hpa for key in self._contested for hpa in self._sets[key].hpas}))

    def _match(self, hpa: Key, key: LabelSetKey, label_set: _LabelSet) -> None:
        claim = self._claims[hpa]
        if claim.selector.matches(label_set.labels):
            claim.rows = None
            self._sets_of.add(hpa, key)
            label_set.hpas += (hpa,)
            if len(label_set.hpas) > 1:
                self._contested[key] = None

    def _touch(self, label_set: _LabelSet) -> None:
        for hpa in label_set.hpas:
            self._claims[hpa].rows = None
        if label_set.hpas:
            self.version += 1


def _label_set_key(pod: PodView) -> LabelSetKey:
    return pod.namespace, tuple(sorted(pod.labels.items()))


def _postings(key: LabelSetKey) -> list[Posting]:
    namespace, labels = key
    # Once, also where a label is as empty as what stands for all pods of the namespace.
    return list(dict.fromkeys([(namespace, "", ""), *((namespace, label, value) for label, value in labels)]))
