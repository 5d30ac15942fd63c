"""The interface of a filter plugin.

A static filter reads node objects alone and returns a vector that a snapshot keeps per class. A
capacity filter says how much of which column must be left. A moving filter reads where other
pods are: it returns a judge that reads counts and is asked anew after every change. All can say why one
node was refused, and a filter may refuse a pod for all nodes at once (``everywhere``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.pod_class import Need, PodClass
from kubetide.scheduling.refusal import Refusal
from kubetide.units.vectors import BoolVector


class Filter(Protocol):
    """Common part of every plugin: a name, and the reasons of a rejection."""

    @property
    def name(self) -> str:
        """Upstream's name of the plugin."""
        ...

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        """Return why the node of one row rejects the pod, or None if it does not."""
        ...

    def failures(self, pod: PodClass, rows: Rows) -> Iterable[tuple[str, BoolVector]]:
        """Return each reason with the nodes (True) that it applies to, in upstream's order of reasons."""
        ...


@runtime_checkable
class WholesaleFilter(Protocol):
    """Can reject a pod for all nodes before any is evaluated (PreFilter)."""

    def everywhere(self, pod: PodClass, rows: Rows) -> Refusal | None:
        """Return the rejection for every node, or None."""
        ...


@runtime_checkable
class UnresolvableFilter(Filter, Protocol):
    """Refuses some nodes as unschedulable and others as unresolvable for the same reason; with any other filter a reason has one code."""

    def unresolvable(self, pod: PodClass, rows: Rows) -> BoolVector:
        """Return (rows,): of the nodes that the filter refuses, those on which the removal of pods cannot help."""
        ...


@runtime_checkable
class StaticFilter(Filter, Protocol):
    """Reads node objects only, not the pods on nodes."""

    def passes(self, pod: PodClass, rows: Rows) -> BoolVector | None:
        """Return (rows,): whether the node passes; None if all do."""
        ...


@runtime_checkable
class CapacityFilter(Filter, Protocol):
    """Reads free amounts of nodes."""

    def needs(self, pod: PodClass, rows: Rows) -> Iterable[Need]:
        """Return the amounts that must be free. Names only columns that exist, or resources that all nodes lack."""
        ...


class Term(Protocol):
    """One condition of a judge about the domains of a node label; the unit of estimates."""

    @property
    def topology_key(self) -> str:
        """The label; empty if the term is about the node itself or several labels."""
        ...

    @property
    def counted(self) -> bool:
        """Whether pods of the class change the verdict for later ones."""
        ...

    @property
    def level(self) -> bool:
        """Whether the verdict on one domain depends on the counts of all others (spreading)."""
        ...

    def nodes(self, first: int = 0) -> BoolVector:
        """Return whether each node passes now, from row ``first`` on; a new vector."""
        ...

    def quota(self, row: int) -> int:
        """Return how many pods of the class the node admits one after another, ``UNLIMITED`` at most."""
        ...


UNLIMITED = 1 << 62
"""More pods than there can be."""


class Judge(Protocol):
    """The verdict of a moving filter on one class: valid until nodes change, reads present counts.

    A judge that has ``takes_in_copies`` and says True also holds while copies of a template are added at the
    end and taken away: it keeps nothing by row but label columns and tables, and reads ``Rows.n`` each time.
    """

    @property
    def only_tightens(self) -> bool:
        """Whether added pods can only make the verdict stricter."""
        ...

    @property
    def terms(self) -> Sequence[Term] | None:
        """Its conditions, all of which must hold; None if it has no such form and is evaluated pod by pod."""
        ...

    def nodes(self) -> BoolVector:
        """Return whether each node passes now; a new vector."""
        ...

    def node(self, row: int) -> bool:
        """Return whether one node passes now."""
        ...


@runtime_checkable
class MovingFilter(Filter, Protocol):
    """Reads the pods on the node and on others."""

    def judge(self, pod: PodClass, rows: Rows) -> Judge | None:
        """Return the judge of a class, or None if every node passes, whatever pods of other classes are added."""
        ...
