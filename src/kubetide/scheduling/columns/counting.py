"""Counts of pods per node and per domain: columns that are updated pod by pod.

A count key says which pods are meant. Its column is made when somebody first asks, from the pods
that are there, and from then on every pod that comes or goes changes one cell, and one cell of each
table of domains; taking a change back is the same step with the other sign. So forks need no copy.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from kubetide.scheduling.columns.columns import LabelColumn, cells_of
from kubetide.scheduling.columns.counts import Counts
from kubetide.scheduling.columns.pod_index import Choice, choices_of
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.pods.terms import PodTerm
from kubetide.scheduling.snapshot.cluster_facts import ClusterFacts
from kubetide.units.selectors import Selector
from kubetide.units.vectors import BoolVector, Int64Vector

CodeVector = npt.NDArray[np.int32]


class CountKey(Hashable, Protocol):
    """Which pods a column counts. Equal keys count the same pods."""

    def counts(self, pod: PodClass, facts: ClusterFacts, *, terminating: bool) -> bool:
        """Return whether the key counts a pod of the class."""
        ...

    def choices(self) -> tuple[Choice, ...]:
        """Index choices: a counted pod has a mark of each, see ``kinds``; empty if any pod may be counted."""
        ...


class SpreadPods(msgspec.Struct, frozen=True):
    """The pods that a spread constraint counts: those of its namespace that are not being deleted."""

    namespace: str
    selector: Selector

    def counts(self, pod: PodClass, facts: ClusterFacts, *, terminating: bool) -> bool:  # noqa: ARG002
        """Return whether a pod of the class is counted. A selector that matches everything counts none."""
        if terminating or pod.namespace != self.namespace or self.selector.is_empty():
            return False
        return self.selector.matches(pod.labels)

    def choices(self) -> tuple[Choice, ...]:
        """The labels for which the selector names one value or a few."""
        return choices_of(self.selector)


class MatchingPods(msgspec.Struct, frozen=True):
    """The pods that all of these terms match."""

    terms: tuple[PodTerm, ...]

    def counts(self, pod: PodClass, facts: ClusterFacts, *, terminating: bool) -> bool:  # noqa: ARG002
        """Return whether a pod of the class is counted, also while it is being deleted."""
        return all(
            term.counts(pod.namespace, pod.labels, facts.namespaces, facts.minor) for term in self.terms
        )

    def choices(self) -> tuple[Choice, ...]:
        """The labels for which the selectors name one value or a few."""
        return tuple(one for term in self.terms for one in choices_of(term.selector))


class GuardingPods(msgspec.Struct, frozen=True):
    """The pods that have this term as required anti-affinity."""

    term: PodTerm

    def counts(self, pod: PodClass, facts: ClusterFacts, *, terminating: bool) -> bool:  # noqa: ARG002
        """Return whether a pod of the class is counted."""
        return self.term in pod.guarding

    def choices(self) -> tuple[Choice, ...]:
        """The term."""
        return ((self.term,),)


class AskingPods(msgspec.Struct, frozen=True):
    """The pods that add ``weight`` to the scores of pods that the term matches, see ``Preferences.asking``."""

    term: PodTerm
    weight: int

    def counts(self, pod: PodClass, facts: ClusterFacts, *, terminating: bool) -> bool:  # noqa: ARG002
        """Return whether a pod of the class is counted, also while it is being deleted."""
        return (self.term, self.weight) in pod.preferences.asking

    def choices(self) -> tuple[Choice, ...]:
        """The term with the weight."""
        return (((self.term, self.weight),),)


READ_INTER_POD_KEY = (SpreadPods, MatchingPods, GuardingPods, AskingPods)
"""Keys that count classes of equal ``PodClass.inter_pod_key`` alike; keys of other packages may read more."""


class Domains:
    """The values of a label over the eligible nodes: shared by all counts.

    Holds until nodes change; nodes that are added at the end and taken away again from there may be announced.

    Attributes:
        version: Another number after every change.
    """

    __slots__ = ("_codes", "_eligible", "_label", "_n", "_nodes", "_number", "_of_copies", "_size", "version")

    def __init__(
        self,
        label: LabelColumn,
        n: int,
        capacity: int,
        eligible: Callable[[], BoolVector | None],
        *,
        copies_differ: bool,
    ) -> None:
        """Args: the label, the number of rows and their capacity, and the eligible nodes (None: all).

        ``copies_differ`` says that copies of one template may differ in whether they take part.
        """
        self.version = 0
        self._label = label
        self._eligible = eligible
        self._of_copies: dict[object, bool] | None = None if copies_differ else {}
        self._n = n
        self._codes: CodeVector = np.zeros(capacity, np.int32)
        self._codes[:n] = label.codes[:n]
        takes_part = eligible()
        if takes_part is not None:
            self._codes[:n][~takes_part] = 0
        # Each node that comes brings one value more at the most.
        size = len(label.code_of) + 1 + capacity - n
        self._nodes: Int64Vector = np.bincount(self.codes, minlength=size)
        self._number = self._size = -1  # to be counted when asked for

    @property
    def codes(self) -> CodeVector:
        """Per row, the code of the node's domain; 0 for nodes that are not eligible."""
        return self._codes[: self._n]

    @property
    def cells(self) -> memoryview:
        """The codes as Python ints, by row."""
        return cells_of(self._codes)

    @property
    def size(self) -> int:
        """The number of codes, 0 and those of nodes that are not eligible included."""
        if self._size < 0:
            self._size = int(self._label.codes[: self._n].max(initial=0)) + 1
        return self._size

    @property
    def capacity(self) -> int:
        """How many codes the array can hold."""
        return len(self._nodes)

    @property
    def present(self) -> BoolVector:
        """Per code, whether any eligible node has it; False at 0."""
        present: BoolVector = self._nodes[: self.size] > 0
        present[0] = False
        return present

    @property
    def number(self) -> int:
        """The number of domains present."""
        if self._number < 0:
            self._number = int(np.count_nonzero(self._nodes[1:]))
        return self._number

    @property
    def all_present(self) -> bool:
        """Whether every code but 0 is present."""
        return self.number == self.size - 1

    def append_copies(self, n: int, template: object) -> bool:
        """Add rows up to n for copies of one template; return False if everything must be rebuilt."""
        of_copies, codes = self._of_copies, self._label.codes[self._n : n]
        if n > len(self._codes) or of_copies is None or int(codes.max(initial=0)) >= len(self._nodes):
            return False
        takes_part = of_copies.get(template)
        if takes_part is None:
            nodes = self._eligible()
            takes_part = of_copies[template] = nodes is None or bool(nodes[self._n])
        self._codes[self._n : n] = codes if takes_part else 0
        np.add.at(self._nodes, self._codes[self._n : n], 1)
        self._set_rows(n)
        return True

    def pop(self, n: int) -> None:
        """Remove the rows from n on."""
        np.subtract.at(self._nodes, self._codes[n : self._n], 1)
        self._set_rows(n)

    def _set_rows(self, n: int) -> None:
        self._n = n
        self._number = self._size = -1
        self.version += 1


class DomainTable(Counts):
    """Counts of columns summed by the values of a label, over the eligible nodes."""

    __slots__ = ("_code_cells", "_domains", "_minimum", "_minimum_of", "total")

    def __init__(self, columns: Sequence[CountColumn], n: int, domains: Domains) -> None:
        """Args: the columns, of which only the first n rows are valid."""
        super().__init__(domains.capacity)
        self._domains = domains
        self._code_cells = domains.cells
        self.total = 0
        """Pods in all domains."""
        self._minimum = 0
        self._minimum_of = -1
        if all(column.few is not None for column in columns):
            for column in columns:
                for row, number in (column.few or {}).items():
                    self.add(row, number)
            return
        counts = np.zeros(n, np.int64)
        for column in columns:
            counts += column.vector(n)
        # Weighted counts are floats: exact, as they stay far below 2^53.
        added = np.bincount(domains.codes, weights=counts, minlength=domains.capacity).astype(np.int64)
        added[0] = 0
        self.total = int(added.sum())
        self.take_over(added)

    @property
    def codes(self) -> CodeVector:
        """Per row, the code of the node's domain; 0 for nodes that are not eligible."""
        return self._domains.codes

    @property
    def counts(self) -> Int64Vector:
        """Per code, the pods on its nodes; the value at 0 is meaningless. Not to be changed."""
        return self.vector(self._domains.size)

    @property
    def present(self) -> BoolVector:
        """Per code, whether any eligible node has it; False at 0."""
        return self._domains.present

    @property
    def domains(self) -> int:
        """The number of domains present."""
        return self._domains.number

    def add(self, row: int, amount: int) -> None:
        """Count pods on a row; ignored if the row is not eligible."""
        code = self._code_cells[row]
        if code:
            if self.few is None:
                self.cells[code] += amount
            else:
                self.add_to(code, amount)
            self.total += amount
            self._minimum_of = -1

    def count(self, code: int) -> int:
        """Return the pods in one domain."""
        return self.at(code)

    def add_many(self, rows: Int64Vector, amounts: Int64Vector) -> None:
        """Count pods on several distinct rows."""
        codes = self.codes[rows]
        taking_part = codes != 0
        self.add_to_many(codes[taking_part], amounts[taking_part])
        self.total += int(amounts[taking_part].sum())
        self._minimum_of = -1

    def beside(self, code: int) -> tuple[int, int | None]:
        """Return the number of domains present other than one, and their smallest count; None without any."""
        present = self._domains.present
        here = code < len(present) and bool(present[code])
        others = self.domains - here
        if others <= 0:
            return 0, None
        least = self.minimum()
        if here and self.count(code) <= least:
            present[code] = False
            least = int(self.counts[present].min())
        return others, least

    def minimum(self) -> int:
        """Return the smallest count of the domains present; 0 without any."""
        domains = self._domains
        if self._minimum_of != domains.version:
            few = self.few
            if not domains.number or (few is not None and len(few) < domains.number):
                self._minimum = 0
            elif domains.all_present:
                self._minimum = int(self.counts[1:].min()) if few is None else min(few.values())
            else:
                self._minimum = int(self.counts[domains.present].min())
            self._minimum_of = domains.version
        return self._minimum


class CountColumn(Counts):
    """Per row, the number of pods on the node that a key counts."""

    __slots__ = ("tables",)

    def __init__(self, capacity: int, counts: Int64Vector | None = None) -> None:
        """Args: the capacity in rows, and the counts, which the column takes over; None for zeros."""
        super().__init__(capacity)
        if counts is not None:
            self.take_over(counts)
        self.tables: dict[Hashable, DomainTable] = {}

    def add(self, row: int, amount: int) -> None:
        """Count pods on a row."""
        if self.few is None:
            self.cells[row] += amount
        else:
            self.add_to(row, amount)
        for table in self.tables.values():
            table.add(row, amount)

    def add_many(self, rows: Int64Vector, amounts: Int64Vector) -> None:
        """Count pods on several distinct rows."""
        self.add_to_many(rows, amounts)
        for table in self.tables.values():
            table.add_many(rows, amounts)

    def resize(self, capacity: int) -> None:
        """Grow to more rows; tables are dropped."""
        self.set_length(capacity)
        self.tables = {}
