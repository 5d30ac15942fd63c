"""What a filter plugin is.

A static filter judges node objects alone and gives a vector that a snapshot keeps per class. A
capacity filter says how much of which column must be left. Either can say why one node was refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from kubetide.scheduling.pod_class import ColumnKey, PodClass
from kubetide.scheduling.refusal import Refusal
from kubetide.scheduling.rows import BoolVector, Rows


class Filter(Protocol):
    """What every plugin offers: a name, and the reasons of a refusal."""

    @property
    def name(self) -> str:
        """Upstream's name of the plugin."""
        ...

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        """Says why the node of one row does not take the pod, or None when it does."""
        ...

    def failures(self, pod: PodClass, rows: Rows) -> Iterable[tuple[str, BoolVector]]:
        """Gives each reason with the nodes (True) that it holds for, in upstream's order of reasons."""
        ...


class StaticFilter(Filter, Protocol):
    """Judges node objects alone: pods on nodes play no part."""

    def passes(self, pod: PodClass, rows: Rows) -> BoolVector | None:
        """Gives True per node that passes, or None when all do."""
        ...


class Need(NamedTuple):
    """At least ``minimum`` of a column must be left on the node."""

    key: ColumnKey
    minimum: int


class CapacityFilter(Filter, Protocol):
    """Judges what is left on nodes."""

    def needs(self, pod: PodClass, rows: Rows) -> Iterable[Need]:
        """Gives what must be left. May only name columns that exist, or else resources that all nodes lack."""
        ...
