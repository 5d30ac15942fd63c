"""The history of a snapshot's nodes: verdicts on node objects are valid for one lineage."""

from __future__ import annotations

from typing import NamedTuple

from kubetide.scheduling.columns.rows import Rows


class Copies(NamedTuple):
    """Rows from first to last that hold copies of one template, added at once or in successive steps.

    Attributes:
        version: Of the snapshot when the last of them were added.
        begins: How many entries of the lineage come before the first of these copies.
        alone: Rows with one of them and nothing else.
    """

    version: int
    begins: int
    first: int
    last: int
    alone: Rows


class Lineage(NamedTuple):
    """The version of the last change of node objects, and the copies of templates added since."""

    epoch: int
    copies: tuple[Copies, ...]

    def with_copies(self, version: int, first: int, last: int, alone: Rows) -> Lineage:
        """Return the lineage with more copies; neighbours of one template are merged."""
        begins, before = len(self.copies), self.copies[-1:]
        if before and before[0].alone is alone and before[0].last == first:
            begins, first = before[0].begins, before[0].first
        return Lineage(self.epoch, (*self.copies, Copies(version, begins, first, last, alone)))

    @property
    def version(self) -> int:
        """A number that differs for other nodes."""
        return self.copies[-1].version if self.copies else self.epoch
