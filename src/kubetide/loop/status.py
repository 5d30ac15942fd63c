"""A loop's part of the page of ``kubetide status``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kubetide.units.time import Instant

Cell = str | int | float | None
"""One value; None where it is not known."""


MOST_NAMED: Final = 3
"""Objects that a sentence of a table names."""


class Table(NamedTuple):
    """Rows of one subject.

    Attributes:
        title: What the rows are; in JSON the name of the list.
        columns: Their names.
        rows: A cell for each column.
        sentence: What of them waits or is wrong, for the first lines of the page; empty for nothing.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sentence: str = ""


class Overview(NamedTuple):
    """The loop's part of the page.

    Attributes:
        tables: Returns its tables, of a core and the time; the core is only read.
        holds: Returns why the loop takes nothing away, as sentences.
        after_decision: Whether the tables are made of the core as it is after the decision of that time.
    """

    tables: Callable[[Any, Instant], tuple[Table, ...]]
    holds: Callable[[Any], tuple[str, ...]]
    after_decision: bool = True
