"""How many pods of some kind are on each node, and in each domain: columns kept up to date pod by pod.

A count key says which pods are meant. Its column is made when somebody first asks, from the pods
that are there, and from then on every pod that comes or goes changes one cell, and one cell of each
table of domains; taking a change back is the same step with the other sign. So forks need no copy.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from kubetide.scheduling.cluster_facts import ClusterFacts
from kubetide.scheduling.kinds import Mark
from kubetide.scheduling.pod_class import PodClass
from kubetide.scheduling.pod_terms import PodTerm
from kubetide.units.selectors import Selector

Int64Vector = npt.NDArray[np.int64]
CodeVector = npt.NDArray[np.int32]
BoolVector = npt.NDArray[np.bool_]


class CountKey(Hashable, Protocol):
    """Says which pods a column counts. Equal keys count the same pods."""

    def counts(self, pod: PodClass, facts: ClusterFacts, *, terminating: bool) -> bool:
        """Whether a pod of the class is one of them."""
        ...

    def marks(self) -> tuple[Mark, ...]:
        """What each of them bears, see ``kinds``; of nothing, any pod may be one."""
        ...


class SpreadPods(msgspec.Struct, frozen=True):
    """The pods that a spread constraint counts: those of the namespace that are not being deleted."""

    namespace: str
    selector: Selector

    def counts(self, pod: PodClass, facts: ClusterFacts, *, terminating: bool) -> bool:  # noqa: ARG002
        """Whether a pod of the class is counted. The selector that matches everything counts none."""
        if terminating or pod.namespace != self.namespace or self.selector.is_empty():
            return False
        return self.selector.matches(pod.labels)

    def marks(self) -> tuple[Mark, ...]:
        """The labels of which the selector says the value."""
        return tuple(self.selector.exact_values().items())


class MatchingPods(msgspec.Struct, frozen=True):
    """The pods that all of these terms mean."""

    terms: tuple[PodTerm, ...]

    def counts(self, pod: PodClass, facts: ClusterFacts, *, terminating: bool) -> bool:  # noqa: ARG002
        """Whether a pod of the class is one of them; pods that are being deleted are."""
        return all(term.counts(pod.namespace, pod.labels, facts.namespaces) for term in self.terms)

    def marks(self) -> tuple[Mark, ...]:
        """The labels of which the selectors say the value."""
        return tuple(one for term in self.terms for one in term.selector.exact_values().items())


class GuardingPods(msgspec.Struct, frozen=True):
    """The pods that have this term as required anti-affinity."""

    term: PodTerm

    def counts(self, pod: PodClass, facts: ClusterFacts, *, terminating: bool) -> bool:  # noqa: ARG002
        """Whether a pod of the class is one of them."""
        return self.term in pod.anti_affinity

    def marks(self) -> tuple[Mark, ...]:
        """The term."""
        return (self.term,)


class Domains:
    """The values of a label over the nodes that take part: the same for all counts, until nodes change.

    Attributes:
        codes: Per row, the code of the node's domain; 0 for nodes that take no part.
        present: Per code, whether any node takes part; False at 0.
        number: How many are present.
    """

    __slots__ = ("all_present", "codes", "number", "present")

    def __init__(self, codes: CodeVector, size: int) -> None:
        self.codes = codes
        self.present: BoolVector = np.bincount(codes, minlength=size) > 0
        self.present[0] = False
        self.number = int(np.count_nonzero(self.present))
        self.all_present = self.number == size - 1


class DomainTable:
    """The counts of one column added up by the values of a label, over the nodes that take part.

    Attributes:
        codes: Per row, the code of the node's domain; 0 for nodes that take no part.
        counts: Per code, the pods on its nodes; what stands at 0 means nothing.
        present: Per code, whether any node takes part; False at 0.
        domains: How many are present.
        total: Pods in all domains.
    """

    __slots__ = (
        "_all_present",
        "_code_cells",
        "_count_cells",
        "_minimum",
        "codes",
        "counts",
        "domains",
        "present",
        "total",
    )

    def __init__(self, counts: Int64Vector, domains: Domains) -> None:
        codes = self.codes = domains.codes
        size = len(domains.present)
        self.counts: Int64Vector
        if counts.any():
            # Weighted counts are floats: exact, as they stay far below 2^53.
            self.counts = np.bincount(codes, weights=counts, minlength=size).astype(np.int64)
            self.counts[0] = 0
        else:
            self.counts = np.zeros(size, np.int64)
        self.present = domains.present
        self.domains = domains.number
        self.total = int(self.counts.sum())
        self._all_present = domains.all_present
        self._count_cells: memoryview = memoryview(self.counts)  # type: ignore[arg-type]  # numpy arrays have a buffer
        self._code_cells: memoryview = memoryview(codes)  # type: ignore[arg-type]  # numpy arrays have a buffer
        self._minimum: int | None = None

    def add(self, row: int, amount: int) -> None:
        """Counts pods on a row; none where the row takes no part."""
        code = self._code_cells[row]
        if code:
            self._count_cells[code] += amount
            self.total += amount
            self._minimum = None

    def count(self, code: int) -> int:
        """Pods in one domain."""
        return int(self._count_cells[code])

    def add_many(self, rows: Int64Vector, amounts: Int64Vector) -> None:
        """Counts pods on several rows, each named once."""
        codes = self.codes[rows]
        taking_part = codes != 0
        np.add.at(self.counts, codes[taking_part], amounts[taking_part])
        self.total += int(amounts[taking_part].sum())
        self._minimum = None

    def minimum_beside(self, code: int) -> int | None:
        """The smallest count of the domains present other than one; None when there is no other."""
        others = self.present.copy()
        others[code] = False
        return int(self.counts[others].min()) if others.any() else None

    def minimum(self) -> int:
        """The smallest count of the domains present; 0 without any."""
        if self._minimum is None:
            if not self.domains:
                self._minimum = 0
            elif self._all_present:
                self._minimum = int(self.counts[1:].min())
            else:
                self._minimum = int(self.counts[self.present].min())
        return self._minimum


class CountColumn:
    """Per row, how many of the pods that a key means are on the node."""

    __slots__ = ("cells", "counts", "tables")

    def __init__(self, counts: Int64Vector) -> None:
        self.counts = counts
        self.cells: memoryview = memoryview(counts)  # type: ignore[arg-type]  # numpy arrays have a buffer
        self.tables: dict[Hashable, DomainTable] = {}

    def add(self, row: int, amount: int) -> None:
        """Counts pods on a row."""
        self.cells[row] += amount
        for table in self.tables.values():
            table.add(row, amount)

    def add_many(self, rows: Int64Vector, amounts: Int64Vector) -> None:
        """Counts pods on several rows, each named once."""
        self.counts[rows] += amounts
        for table in self.tables.values():
            table.add_many(rows, amounts)

    def resize(self, capacity: int) -> None:
        """Makes room for more rows; tables are dropped."""
        counts = np.zeros(capacity, np.int64)
        counts[: len(self.counts)] = self.counts
        self.counts = counts
        self.cells = memoryview(counts)  # type: ignore[arg-type]  # numpy arrays have a buffer
        self.tables = {}
