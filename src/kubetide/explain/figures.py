"""Figures of a tick: numbers with a history, besides its decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class FigureTable(msgspec.Struct, frozen=True):
    """Numbers of several objects of one kind, in columns.

    Attributes:
        kind: What the objects are: ``cluster``, ``nodegroup``, ``hpa`` ...
        names: Of the objects; the very same sequence as in the tick before where they are the same.
        columns: By figure, a number for each object; NaN or None where it is not known.
    """

    kind: str
    names: Sequence[str]
    columns: Mapping[str, Sequence[float | None]]
