"""How the nodes of a snapshot came to be what they are: what verdicts on node objects hold for."""

from __future__ import annotations

from typing import NamedTuple

from kubetide.scheduling.columns.rows import Rows


class Copies(NamedTuple):
    """Rows from first to last that hold copies of one template, added in one go or in several in a row.

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
    """The version at which node objects changed last, and the copies of templates added since."""

    epoch: int
    copies: tuple[Copies, ...]

    def with_copies(self, version: int, first: int, last: int, alone: Rows) -> Lineage:
        """Return the same lineage with more copies; copies of one template that follow each other are one entry."""
        begins, before = len(self.copies), self.copies[-1:]
        if before and before[0].alone is alone and before[0].last == first:
            begins, first = before[0].begins, before[0].first
        return Lineage(self.epoch, (*self.copies, Copies(version, begins, first, last, alone)))

    @property
    def version(self) -> int:
        """A number that differs for other nodes."""
        return self.copies[-1].version if self.copies else self.epoch
