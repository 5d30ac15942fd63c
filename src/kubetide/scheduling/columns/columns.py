"""Columns of a snapshot: one value per node, of a resource or of a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kubetide.scheduling.pods.resources import wrap
from kubetide.units.vectors import Int64Vector

CodeVector = npt.NDArray[np.int32]


def cells_of(vector: npt.NDArray[Any]) -> memoryview:
    """Return the cells of a vector as Python values, to be read and written one by one: much faster than NumPy."""
    return memoryview(vector)  # type: ignore[arg-type]  # numpy arrays have a buffer


class Column:
    """One resource (or host port) on every node: offered and free amounts."""

    __slots__ = ("allocatable", "cells", "free")

    def __init__(self, allocatable: Int64Vector, free: Int64Vector) -> None:
        self.allocatable = allocatable
        self.free = free
        # Single cells are read and written as Python ints through the buffer of ``free``.
        self.cells: memoryview = cells_of(free)

    def take(self, row: int, amount: int) -> None:
        """Subtract an amount from a row's free amount; wraps as int64 does."""
        left = self.cells[row] - amount
        try:
            self.cells[row] = left
        except ValueError:
            self.cells[row] = wrap(left)

    def offer(self, row: int, amount: int) -> None:
        """Set the row's offered amount; the taken amount stays."""
        before = int(self.allocatable[row])
        if before != amount:
            self.take(row, before - amount)
            self.allocatable[row] = amount


class LabelColumn:
    """The values of one label key: code 0 means absent, ``codes[row]`` is the row's value."""

    __slots__ = ("code_of", "codes")

    def __init__(self, capacity: int) -> None:
        self.codes: CodeVector = np.zeros(capacity, np.int32)
        self.code_of: dict[str, int] = {}

    def put(self, row: int, value: str | None) -> None:
        """Set the row's value."""
        self.codes[row] = 0 if value is None else self.code_of.setdefault(value, len(self.code_of) + 1)

    def put_many(self, first: int, values: Sequence[str]) -> None:
        """Set the values of consecutive rows, starting at ``first``."""
        code_of = self.code_of
        codes = [code_of.setdefault(value, len(code_of) + 1) for value in values]
        self.codes[first : first + len(values)] = codes
