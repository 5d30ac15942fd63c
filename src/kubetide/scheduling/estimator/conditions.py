"""Inter-pod rules as integers, for the new nodes of an estimate.

New nodes of one estimate have the same labels but for their hostnames. So a condition about any other
label is about one domain, and says how many pods of some kind that may have at the most, or that it must
have one. A condition about the hostname is about the pods on the node itself, and a new node has none.

Which numbers these are depends on a template's values of the labels that conditions are about, and on
which spreads its nodes take part in: templates that are alike in this share a ``Site``. A tally is a table
of counts, as far as new nodes change it: one number for all of them, or one for each (its own).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling.columns.columns import LabelColumn
from kubetide.scheduling.columns.counting import DomainTable
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.filters.base import UNLIMITED
from kubetide.scheduling.filters.inter_pod_terms import (
    ApartTerm,
    Counted,
    Eligible,
    InterPodTerms,
    NearTerm,
    SpreadTerm,
)
from kubetide.scheduling.pods.classes import classify_unbound
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.pods.terms import SpreadConstraint
from kubetide.scheduling.snapshot.snapshot import Snapshot

_NO_LABELS: Mapping[str, str] = {}
Limit = tuple[int, int]
"""A shared tally, and how much it may be for one more pod."""

_NOTHING = 0
"""The shared tally that stays 0."""
_NEVER: Limit = (_NOTHING, -1)


class OwnSpread(NamedTuple):
    """A hostname spread in which the new nodes are eligible.

    Attributes:
        rule: The constraint.
        tally: Of the pods on each new node.
        least: Pods on the least-filled of the existing nodes; ``UNLIMITED`` where none takes part.
        domains: How many of these there are.
    """

    rule: SpreadConstraint
    tally: int
    least: int
    domains: int


class Conditions(NamedTuple):
    """All inter-pod rules of a pod kind at a site, and the tallies that its pods add to.

    Attributes:
        limits: What shared tallies may be at the most.
        apart: Own tallies that must be 0.
        spread: Spreads by hostname.
        near: Shared tallies of which none may be 0.
        near_own: Own tallies of which none may be 0.
        may_begin: Whether a pod is the first of its kind while all tallies of ``near`` and ``near_own`` are 0.
        skew_limits, skew: Those of ``limits`` and ``spread`` by which PodTopologySpread finds a skew.
        adds, adds_own: Tallies that count a pod; one that counts it twice is there twice.
        binding: Whether anything above can refuse a pod.
    """

    limits: tuple[Limit, ...] = ()
    apart: tuple[int, ...] = ()
    spread: tuple[OwnSpread, ...] = ()
    near: tuple[int, ...] = ()
    near_own: tuple[int, ...] = ()
    may_begin: bool = False
    skew_limits: tuple[Limit, ...] = ()
    skew: tuple[OwnSpread, ...] = ()
    adds: tuple[int, ...] = ()
    adds_own: tuple[int, ...] = ()
    binding: bool = True


REFUSED = Conditions(limits=(_NEVER,))
"""Of pods that no new node takes."""


class _Tally(NamedTuple):
    number: int
    table: DomainTable
    key: str
    label: LabelColumn
    eligible: int
    """Number of the eligible nodes that take part; -1 where all with the label do."""


class Terms:
    """The inter-pod terms of classes, read from a snapshot; valid while it is unchanged."""

    def __init__(self, snapshot: Snapshot, terms: Mapping[PodClass, InterPodTerms]) -> None:
        """Args: classes with all their terms, see ``plain_terms``."""
        self._snapshot = snapshot
        self._tallies: dict[DomainTable, _Tally] = {}
        self.own = 0
        self._shared: list[_Tally] = []
        self._eligible: dict[Eligible, int] = {}
        self._sites: dict[tuple[object, ...], Site] = {}
        self._terms: dict[Hashable, InterPodTerms] = {}
        for pod_class, found in terms.items():
            if self._terms.setdefault(_alike(pod_class), found) is found:
                for read in found.reads:
                    self._note(read)
        self._keys = list(dict.fromkeys(tally.key for tally in self._shared))

    def site(self, node: Node, alone: Rows) -> Site:
        """Return the site of a template.

        Args:
            node: A copy of the template, with a hostname.
            alone: That node by itself.
        """
        labels = node.metadata.labels or _NO_LABELS
        part = tuple(bool(eligible.among(alone)[0]) for eligible in self._eligible)
        name = (*map(labels.get, self._keys), *part)
        found = self._sites.get(name)
        if found is None:
            found = self._sites[name] = Site(self, labels, part)
        return found

    def counts_any(self, pods: Iterable[Pod]) -> bool:
        """Return whether a tally counts any of the pods, or any of them repels others."""
        classes = map(classify_unbound, pods)
        return any(one.anti_affinity or self.counting(one) for one in classes)

    @property
    def shared(self) -> Sequence[_Tally]:
        """The shared tallies except the first."""
        return self._shared

    def of(self, pod_class: PodClass) -> InterPodTerms:
        """Return the terms of one of the classes."""
        return self._terms[_alike(pod_class)]

    def tally(self, table: DomainTable) -> _Tally:
        """Return the tally of a table that a judge reads."""
        return self._tallies[table]

    def counting(self, pod_class: PodClass) -> list[_Tally]:
        """Return the tallies that count a pod of the class."""
        tables = self._snapshot.counted_in(pod_class)
        return [self._tallies[table] for table in tables if table in self._tallies]

    def _note(self, read: Counted) -> None:
        table, key, label, eligible = read
        if table in self._tallies:
            return
        number = -1 if eligible is None else self._eligible.setdefault(eligible, len(self._eligible))
        if key == HOSTNAME:
            self._tallies[table] = _Tally(self.own, table, key, label, number)
            self.own += 1
        else:
            tally = self._tallies[table] = _Tally(len(self._shared) + 1, table, key, label, number)
            self._shared.append(tally)


class Site:
    """Properties that all new nodes share and conditions depend on.

    Attributes:
        counts: What shared tallies are before anything is placed.
    """

    def __init__(self, terms: Terms, labels: Mapping[str, str], part: Sequence[bool]) -> None:
        self._terms = terms
        self._labels = labels
        self._part = part
        self._known: dict[Hashable, Conditions] = {}
        self.counts = [0, *(self._count(tally) for tally in terms.shared)]

    def conditions_of(self, pod_class: PodClass) -> Conditions:
        """Return the conditions of one of the classes whose terms were read."""
        alike = _alike(pod_class)
        found = self._known.get(alike)
        if found is None:
            found = self._known[alike] = self._conditions(pod_class)
        return found

    def _conditions(self, pod_class: PodClass) -> Conditions:
        counting = [tally for tally in self._terms.counting(pod_class) if self._takes_part(tally)]
        found = Conditions(
            adds=tuple(tally.number for tally in counting if tally.key != HOSTNAME),
            adds_own=tuple(tally.number for tally in counting if tally.key == HOSTNAME),
        )
        terms = self._terms.of(pod_class)
        found = self._with_apart(self._with_spread(found, terms.spread), terms.apart)
        if terms.near is not None:
            found = self._with_near(found, terms.near)
        binding = any((found.limits, found.apart, found.spread, found.near, found.near_own))
        return found._replace(binding=binding)

    def _with_spread(self, found: Conditions, terms: Iterable[SpreadTerm]) -> Conditions:
        limits: list[Limit] = []
        own: list[OwnSpread] = []
        for term in terms:
            # The first constraint that fails is the one that speaks, and of a label that is missing it says so.
            if not self._has(term.topology_key):
                return found._replace(limits=(_NEVER,), skew_limits=tuple(limits), skew=tuple(own))
            if term.topology_key == HOSTNAME:
                self._add_own_spread(term, limits, own)
            else:
                self._add_spread(term, limits)
        every = tuple(limits)
        return found._replace(
            limits=(*found.limits, *every), spread=tuple(own), skew_limits=every, skew=tuple(own)
        )

    def _add_spread(self, term: SpreadTerm, limits: list[Limit]) -> None:
        tally = self._terms.tally(term.table)
        if self._takes_part(tally):
            most = term.most_in(self._code(tally))
            if most < UNLIMITED:
                limits.append((tally.number, most))
        elif self._count(tally) > term.most():
            limits.append(_NEVER)

    def _add_own_spread(self, term: SpreadTerm, limits: list[Limit], own: list[OwnSpread]) -> None:
        tally, table = self._terms.tally(term.table), term.table
        if self._takes_part(tally):
            least = table.minimum() if table.domains else UNLIMITED
            own.append(OwnSpread(term.rule, tally.number, least, table.domains))
        elif term.most() < 0:
            limits.append(_NEVER)

    def _with_apart(self, found: Conditions, terms: Iterable[ApartTerm]) -> Conditions:
        tallies = [self._terms.tally(term.table) for term in terms if self._has(term.topology_key)]
        return found._replace(
            limits=(*found.limits, *((tally.number, 0) for tally in tallies if tally.key != HOSTNAME)),
            apart=tuple(tally.number for tally in tallies if tally.key == HOSTNAME),
        )

    def _with_near(self, found: Conditions, near: NearTerm) -> Conditions:
        if not all(self._has(read.topology_key) for read in near.reads):
            return found._replace(limits=(_NEVER,))
        tallies = [self._terms.tally(read.table) for read in near.reads]
        return found._replace(
            near=tuple(tally.number for tally in tallies if tally.key != HOSTNAME),
            near_own=tuple(tally.number for tally in tallies if tally.key == HOSTNAME),
            may_begin=near.is_first(),
        )

    def _has(self, key: str) -> bool:
        return key == HOSTNAME or key in self._labels

    def _takes_part(self, tally: _Tally) -> bool:
        return self._has(tally.key) if tally.eligible < 0 else self._part[tally.eligible]

    def _code(self, tally: _Tally) -> int:
        return tally.label.code_of.get(self._labels.get(tally.key, ""), 0) if self._has(tally.key) else 0

    def _count(self, tally: _Tally) -> int:
        """Pods in the domain that the new nodes will be in."""
        code, counts = self._code(tally), tally.table.counts
        return int(counts[code]) if 0 < code < len(counts) else 0


def _alike(pod_class: PodClass) -> Hashable:
    """Equal for classes of the same conditions."""
    return pod_class if pod_class.inter_pod_key is None else pod_class.inter_pod_key
