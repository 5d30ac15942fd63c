"""What pods mind of other pods, as whole numbers for the new nodes of an estimate.

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
from kubetide.scheduling.filters.base import UNLIMITED, Judge
from kubetide.scheduling.filters.inter_pod_affinity import AffinityJudge, ApartTerm, NearTerm
from kubetide.scheduling.filters.pod_topology_spread import SpreadJudge, SpreadTerm, takes_part
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
    """A spread by hostname in which the new nodes take part.

    Attributes:
        tally: Of the pods on each new node.
        margin: How many pods a node may have more than the least-filled one for one more to be let in.
        least: Pods on the least-filled of the existing nodes; ``UNLIMITED`` where none takes part.
        domains: How many of these there are.
        min_domains: With fewer nodes in all, the least-filled counts as empty.
    """

    tally: int
    margin: int
    least: int
    domains: int
    min_domains: int


class Conditions(NamedTuple):
    """All that pods of a kind mind of others at a site, and what they add to.

    Attributes:
        limits: What shared tallies may be at the most.
        apart: Own tallies that must be 0.
        spread: Spreads by hostname.
        near: Shared tallies of which none may be 0.
        near_own: Own tallies of which none may be 0.
        may_begin: Whether a pod may stand anywhere while all tallies of ``near`` and ``near_own`` are 0.
        skew_limits, skew: Those of ``limits`` and ``spread`` by which PodTopologySpread finds a skew.
        adds, adds_own: Tallies that count a pod; one that counts it twice is there twice.
        minds: Whether anything above is asked.
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
    minds: bool = True


REFUSED = Conditions(limits=(_NEVER,))
"""Of pods that no new node takes."""


class _Tally(NamedTuple):
    number: int
    table: DomainTable
    key: str
    label: LabelColumn
    spread: int
    """Number of the spread that says which nodes take part; -1 where all with the label do."""


class Minds:
    """What classes mind, read from a snapshot; holds while that is not changed."""

    def __init__(self, snapshot: Snapshot, classes: Iterable[PodClass]) -> None:
        """Take classes of which each was found to be ``reckonable``."""
        self._snapshot = snapshot
        self._tallies: dict[int, _Tally] = {}
        self.own = 0
        self._shared: list[_Tally] = []
        self._spreads: dict[object, tuple[int, PodClass, SpreadConstraint]] = {}
        self._sites: dict[tuple[object, ...], Site] = {}
        self._judges: dict[Hashable, Sequence[Judge]] = {}
        for pod_class in classes:
            alike = _alike(pod_class)
            if alike not in self._judges:
                judges = self._judges[alike] = snapshot.prepare(pod_class).judges
                self._note(pod_class, judges)
        self._keys = list(dict.fromkeys(tally.key for tally in self._shared))

    def site(self, node: Node, alone: Rows) -> Site:
        """Return the site of a template.

        Args:
            node: A copy of the template, with a hostname.
            alone: That node by itself.
        """
        labels = node.metadata.labels or _NO_LABELS
        part = tuple(
            bool(takes_part({one.topology_key for one in pod_class.spread}, rule, pod_class, alone)[0])
            for _, pod_class, rule in self._spreads.values()
        )
        name = (*map(labels.get, self._keys), *part)
        found = self._sites.get(name)
        if found is None:
            found = self._sites[name] = Site(self, labels, part)
        return found

    def counts_any(self, pods: Iterable[Pod]) -> bool:
        """Return whether a tally counts any of the pods, or any keeps others away."""
        classes = map(classify_unbound, pods)
        return any(one.anti_affinity or self.counting(one) for one in classes)

    @property
    def shared(self) -> Sequence[_Tally]:
        """The shared tallies but for the first."""
        return self._shared

    def judges(self, pod_class: PodClass) -> Sequence[Judge]:
        """Return the judges of one of the classes."""
        return self._judges[_alike(pod_class)]

    def tally(self, table: DomainTable) -> _Tally:
        """Return the tally of a table that a judge reads."""
        return self._tallies[id(table)]

    def counting(self, pod_class: PodClass) -> list[_Tally]:
        """Return the tallies that count a pod of the class."""
        found = (self._tallies.get(id(table)) for table in self._snapshot.counted_in(pod_class))
        return [tally for tally in found if tally is not None]

    def _note(self, pod_class: PodClass, judges: Iterable[Judge]) -> None:
        for judge in judges:
            if isinstance(judge, SpreadJudge):
                for term in judge.terms:
                    known = self._spreads.setdefault(
                        term.eligibility, (len(self._spreads), pod_class, term.rule)
                    )
                    self._note_table(term.table, term.topology_key, term.label, known[0])
            elif isinstance(judge, AffinityJudge):
                for apart in (*judge.apart, *judge.guards):
                    self._note_table(apart.table, apart.topology_key, apart.label, -1)
                near = judge.near
                if near is not None:
                    for table, key, label in zip(near.tables, near.topology_keys, near.labels, strict=True):
                        self._note_table(table, key, label, -1)

    def _note_table(self, table: DomainTable, key: str, label: LabelColumn, spread: int) -> None:
        if id(table) in self._tallies:
            return
        if key == HOSTNAME:
            number = self.own
            self.own += 1
        else:
            number = len(self._shared) + 1
        tally = self._tallies[id(table)] = _Tally(number, table, key, label, spread)
        if key != HOSTNAME:
            self._shared.append(tally)


class Site:
    """What all new nodes have in common that bears on conditions.

    Attributes:
        counts: What shared tallies are before anything is placed.
    """

    def __init__(self, minds: Minds, labels: Mapping[str, str], part: Sequence[bool]) -> None:
        self._minds = minds
        self._labels = labels
        self._part = part
        self._known: dict[Hashable, Conditions] = {}
        self.counts = [0, *(self._count(tally) for tally in minds.shared)]

    def conditions_of(self, pod_class: PodClass) -> Conditions:
        """Return the conditions of one of the classes that the minds were read for."""
        alike = _alike(pod_class)
        found = self._known.get(alike)
        if found is None:
            found = self._known[alike] = self._conditions(pod_class)
        return found

    def _conditions(self, pod_class: PodClass) -> Conditions:
        counting = [tally for tally in self._minds.counting(pod_class) if self._takes_part(tally)]
        found = Conditions(
            adds=tuple(tally.number for tally in counting if tally.key != HOSTNAME),
            adds_own=tuple(tally.number for tally in counting if tally.key == HOSTNAME),
        )
        for judge in self._minds.judges(pod_class):
            if isinstance(judge, SpreadJudge):
                found = self._with_spread(found, judge.terms)
            elif isinstance(judge, AffinityJudge):
                found = self._with_apart(found, (*judge.apart, *judge.guards))
                if judge.near is not None:
                    found = self._with_near(found, judge.near)
        minds = any((found.limits, found.apart, found.spread, found.near, found.near_own))
        return found._replace(minds=minds)

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
        tally, rule, table = self._minds.tally(term.table), term.rule, term.table
        margin = rule.max_skew - rule.self_match
        if not self._takes_part(tally):
            if self._count(tally) > term.most():
                limits.append(_NEVER)
            return
        others, least = _beside(table, self._code(tally))
        if others + 1 < rule.min_domains:
            limits.append((tally.number, margin))
        elif margin < 0:
            limits.append(_NEVER)
        elif others:
            # While the domain has fewer pods than any other it is the least-filled itself.
            limits.append((tally.number, margin + least))

    def _add_own_spread(self, term: SpreadTerm, limits: list[Limit], own: list[OwnSpread]) -> None:
        tally, rule, table = self._minds.tally(term.table), term.rule, term.table
        if not self._takes_part(tally):
            if term.most() < 0:
                limits.append(_NEVER)
            return
        least = table.minimum() if table.domains else UNLIMITED
        margin = rule.max_skew - rule.self_match
        own.append(OwnSpread(tally.number, margin, least, table.domains, rule.min_domains))

    def _with_apart(self, found: Conditions, terms: Iterable[ApartTerm]) -> Conditions:
        tallies = [self._minds.tally(term.table) for term in terms if self._has(term.topology_key)]
        return found._replace(
            limits=(*found.limits, *((tally.number, 0) for tally in tallies if tally.key != HOSTNAME)),
            apart=tuple(tally.number for tally in tallies if tally.key == HOSTNAME),
        )

    def _with_near(self, found: Conditions, near: NearTerm) -> Conditions:
        if not all(map(self._has, near.topology_keys)):
            return found._replace(limits=(_NEVER,))
        tallies = [self._minds.tally(table) for table in near.tables]
        return found._replace(
            near=tuple(tally.number for tally in tallies if tally.key != HOSTNAME),
            near_own=tuple(tally.number for tally in tallies if tally.key == HOSTNAME),
            may_begin=near.is_first(),
        )

    def _has(self, key: str) -> bool:
        return key == HOSTNAME or key in self._labels

    def _takes_part(self, tally: _Tally) -> bool:
        return self._has(tally.key) if tally.spread < 0 else self._part[tally.spread]

    def _code(self, tally: _Tally) -> int:
        return tally.label.code_of.get(self._labels.get(tally.key, ""), 0) if self._has(tally.key) else 0

    def _count(self, tally: _Tally) -> int:
        """Pods in the domain that the new nodes will be in."""
        code, counts = self._code(tally), tally.table.counts
        return int(counts[code]) if 0 < code < len(counts) else 0


def _alike(pod_class: PodClass) -> Hashable:
    """Equal for classes of the same conditions."""
    return pod_class if pod_class.minding is None else pod_class.minding


def _beside(table: DomainTable, code: int) -> tuple[int, int]:
    """Return how many domains there are beside one, and the smallest count of these."""
    present = table.present
    here = code < len(present) and bool(present[code])
    others = table.domains - here
    least = (table.minimum_beside(code) if here else table.minimum()) if others else 0
    return others, least or 0
