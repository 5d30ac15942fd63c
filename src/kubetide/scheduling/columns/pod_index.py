"""Finding what concerns what without asking all of it: pods by kind and row, and things said about pods by mark.

Pods of one class are of one kind (those that are being deleted of another), and there are far fewer kinds
than pods. A mark is something that a pod either bears or does not: a label with its value, a term of
anti-affinity, a disk, a claim. What is said of pods with a mark is looked for only among those that bear it.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from kubetide.scheduling.pods.pod_class import PodClass, Use
from kubetide.scheduling.thresholds import CLASSES_ADDED_ONE_BY_ONE, LABEL_VALUES_INDEXED
from kubetide.units.selectors import Selector
from kubetide.units.vectors import Int64Vector

CodeVector = npt.NDArray[np.int32]

Mark = Hashable
Choice = tuple[Mark, ...]
"""Marks of which a pod has one at the most."""
Kind = tuple[PodClass, bool]
"""A class, and whether its pods are being deleted."""

_T = TypeVar("_T")


def marks_of(pod_class: PodClass) -> tuple[Mark, ...]:
    """Return the marks of pods of a class."""
    marks = (*pod_class.labels.items(), *pod_class.anti_affinity, *pod_class.preferences.asking)
    if pod_class.disks or pod_class.claims:
        return (*marks, *(disk.place for disk in pod_class.disks), *pod_class.claims)
    return marks


def choices_of(selector: Selector) -> tuple[Choice, ...]:
    """Return choices of labels; all pods that the selector matches have one label of each choice."""
    allowed = selector.allowed_values(LABEL_VALUES_INDEXED)
    return tuple(tuple((key, value) for value in values) for key, values in allowed.items())


class ByMark(Generic[_T]):
    """Items in order of addition, each found by any mark of one of its choices."""

    def __init__(self) -> None:
        self.number = 0
        self._of_any: list[tuple[int, _T]] = []
        self._by_mark: dict[Mark, list[tuple[int, _T]]] = {}

    def add(self, asked: Sequence[Choice], item: _T) -> None:
        """Add an item for holders of a mark of each choice; without choices for everybody."""
        entry = (self.number, item)
        self.number += 1
        if not asked:
            self._of_any.append(entry)
            return
        # One choice is enough to find it by: the one that says the most.
        best = min(asked, key=lambda choice: sum(len(self._by_mark.get(mark, ())) for mark in choice))
        for mark in best:
            self._by_mark.setdefault(mark, []).append(entry)

    def borne(self, marks: Iterable[Mark], since: int = 0) -> list[_T]:
        """Return the items that may match a holder of the marks, without the first ``since`` ever added."""
        found = _tail(self._of_any, since)
        for mark in marks:
            of_mark = self._by_mark.get(mark)
            if of_mark is not None:
                found += _tail(of_mark, since)
        found.sort(key=_number)
        return [item for _, item in found]


class PodKinds:
    """The number of pods of each kind on each row.

    Made in one pass over all pods; later changes are held beside it, kind by kind.
    """

    def __init__(self, pods: Iterable[tuple[int, Sequence[Use]]]) -> None:
        """Args: the uses of the pods on each row."""
        self.kinds: list[Kind] = []
        self.changed = 0
        self.came = 0
        """Kinds that have come since: they stay here when their last pod is gone."""
        self._codes: dict[tuple[int, bool], int] = {}
        self._by_mark: dict[Mark, list[int]] = {}
        self._changes: list[list[tuple[int, int]]] = []
        self._of_use: dict[int, tuple[int, Use]] = {}
        self._starts: list[int] = []
        self._ends: list[int] = []
        of_rows = [(row, uses) for row, uses in pods if uses]
        rows = np.array([row for row, _ in of_rows], np.int32)
        # Of many pods few uses are there: all of them are gone through by identity, in C.
        uses = list(itertools.chain.from_iterable(uses for _, uses in of_rows))
        identities = np.fromiter(map(id, uses), np.int64, len(uses))
        _, firsts, inverse = np.unique(identities, return_index=True, return_inverse=True)
        codes = np.array([self._code(uses[at]) for at in firsts.tolist()], np.int32)
        numbers = np.array([len(uses) for _, uses in of_rows], np.int64)
        self._set(codes[inverse] if uses else codes, np.repeat(rows, numbers))

    def __len__(self) -> int:
        return len(self._rows)

    def change(self, use: Use, row: int, number: int) -> None:
        """Note that ``number`` pods were added to a row, or (negative) removed from it."""
        known = self._of_use.get(id(use))
        if known is None:
            before = len(self.kinds)
            known = self._of_use[id(use)] = (self._code(use), use)
            self.came += len(self.kinds) - before
        changes = self._changes[known[0]]
        # What is taken back leaves nothing behind.
        if changes and changes[-1] == (row, -number):
            changes.pop()
            self.changed -= 1
        else:
            changes.append((row, number))
            self.changed += 1

    def bearing(self, asked: Sequence[Choice]) -> Sequence[int]:
        """Return the numbers of the kinds that may have a mark of each choice."""
        if not asked:
            return range(len(self.kinds))
        borne = ([self._by_mark.get(mark, []) for mark in choice] for choice in asked)
        best = min(borne, key=lambda found: sum(map(len, found)))
        return best[0] if len(best) == 1 else list(itertools.chain.from_iterable(best))

    def add_up(self, numbers: Sequence[int], counts: Int64Vector) -> None:
        """Add the pods of some distinct kinds to the counts of their rows."""
        if len(numbers) <= CLASSES_ADDED_ONE_BY_ONE:
            for code in numbers:
                np.add.at(counts, self._rows[self._starts[code] : self._ends[code]], 1)
        else:
            meant = np.zeros(len(self.kinds), np.bool_)
            meant[numbers] = True
            rows = self._rows[meant[self._sorted]]
            counts += np.bincount(rows, minlength=len(counts))
        for code in numbers:
            for row, number in self._changes[code]:
                counts[row] += number

    def renumbered(self, row_of: CodeVector) -> PodKinds:
        """Return the index with other row numbers; pods whose row has none (-1) are left out."""
        made = PodKinds(())
        made.kinds, made._codes = list(self.kinds), dict(self._codes)
        made.came = self.came
        made._by_mark = {mark: list(codes) for mark, codes in self._by_mark.items()}
        # Copies of a template stood behind the last row when these were counted, and were taken back since: their
        # pods stay here with a change of the opposite sign, which adds up to nothing, and both go.
        there = self._rows < len(row_of)
        codes, rows = self._sorted[there], row_of[self._rows[there]]
        stays = rows >= 0
        made._set(codes[stays], rows[stays])
        for changes in self._changes:
            moved = [
                (int(row_of[row]), number)
                for row, number in changes
                if row < len(row_of) and row_of[row] >= 0
            ]
            made._changes.append(moved)
            made.changed += len(moved)
        return made

    def _code(self, use: Use) -> int:
        # By identity: equal classes may be several objects, and then are several kinds, which does no harm.
        name = (id(use.pod_class), use.terminating)
        code = self._codes.get(name)
        if code is None:
            code = self._codes[name] = len(self.kinds)
            self.kinds.append((use.pod_class, use.terminating))
            for mark in marks_of(use.pod_class):
                self._by_mark.setdefault(mark, []).append(code)
            self._changes.append([])
            self._starts.append(0)
            self._ends.append(0)
        return code

    def _set(self, codes: CodeVector, rows: CodeVector) -> None:
        order = np.argsort(codes, kind="stable")
        self._sorted, self._rows = codes[order], rows[order]
        every = np.arange(len(self.kinds))
        self._starts = np.searchsorted(self._sorted, every, "left").tolist()
        self._ends = np.searchsorted(self._sorted, every, "right").tolist()


def _tail(entries: list[tuple[int, _T]], since: int) -> list[tuple[int, _T]]:
    if not since:
        return list(entries)
    at = len(entries)
    while at and entries[at - 1][0] >= since:
        at -= 1
    return entries[at:]


def _number(entry: tuple[int, object]) -> int:
    return entry[0]
