"""What a filter plugin is.

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
    """What every plugin offers: a name, and the reasons of a refusal."""

    @property
    def name(self) -> str:
        """Upstream's name of the plugin."""
        ...

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        """Say why the node of one row does not take the pod, or None when it does."""
        ...

    def failures(self, pod: PodClass, rows: Rows) -> Iterable[tuple[str, BoolVector]]:
        """Return each reason with the nodes (True) that it holds for, in upstream's order of reasons."""
        ...


@runtime_checkable
class WholesaleFilter(Protocol):
    """Can refuse a pod for all nodes alike, before any is looked at (PreFilter)."""

    def everywhere(self, pod: PodClass, rows: Rows) -> Refusal | None:
        """Return the refusal that holds for every node, or None."""
        ...


@runtime_checkable
class StaticFilter(Filter, Protocol):
    """Reads node objects alone: pods on nodes play no part."""

    def passes(self, pod: PodClass, rows: Rows) -> BoolVector | None:
        """Return True per node that passes, or None when all do."""
        ...


@runtime_checkable
class CapacityFilter(Filter, Protocol):
    """Reads what is left on nodes."""

    def needs(self, pod: PodClass, rows: Rows) -> Iterable[Need]:
        """Return what must be left. May only name columns that exist, or else resources that all nodes lack."""
        ...


class Term(Protocol):
    """One condition of a judge about the domains of a node label; what an estimate calculates with."""

    @property
    def topology_key(self) -> str:
        """The label; empty when the term is about the node itself or about several labels."""
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
        """Return whether each node passes now, from row ``first`` on; a fresh vector."""
        ...

    def quota(self, row: int) -> int:
        """Return how many pods of the class the node lets in one after another, ``UNLIMITED`` at most."""
        ...


UNLIMITED = 1 << 62
"""More pods than there can be."""


class Judge(Protocol):
    """The verdict of a moving filter on one class: holds until nodes change, reads counts as they are.

    A judge that has ``takes_in_copies`` and says True also holds while copies of a template are added at the
    end and taken away: it keeps nothing by row but label columns and tables, and reads ``Rows.n`` each time.
    """

    @property
    def only_tightens(self) -> bool:
        """Whether pods that are added can only make it stricter."""
        ...

    @property
    def terms(self) -> Sequence[Term] | None:
        """Its conditions, all of which must hold; None when it has no such form and is evaluated pod by pod."""
        ...

    def nodes(self) -> BoolVector:
        """Return whether each node passes now; a fresh vector."""
        ...

    def node(self, row: int) -> bool:
        """Return whether one node passes now."""
        ...


@runtime_checkable
class MovingFilter(Filter, Protocol):
    """Reads the pods that are on this node and on others."""

    def judge(self, pod: PodClass, rows: Rows) -> Judge | None:
        """Return the judge of a class, or None when every node passes, whatever pods are added of other classes."""
        ...
