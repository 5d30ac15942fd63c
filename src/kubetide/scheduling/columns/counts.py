"""Numbers by index, most of them zero: a dict while few are not, then a vector.

Where ten thousand pods each ask about a label of their own, ten thousand vectors as long as the cluster would hold
one number each.
"""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.columns.columns import cells_of
from kubetide.scheduling.thresholds import PLACES_IN_DICT
from kubetide.units.vectors import Int64Vector


class Counts:
    """Counts by index, numbered from 0. Callers that add to it also read the fields.

    Attributes:
        few: Place to number, zeros left out; None when there is a vector.
        cells: The vector's cells.
    """

    __slots__ = ("_length", "_vector", "cells", "few")

    def __init__(self, length: int) -> None:
        """Allocate ``length`` places, all of them zero."""
        self._length = length
        self._vector: Int64Vector | None = None
        self.few: dict[int, int] | None = {}
        self.cells: memoryview = memoryview(b"")

    def add_to(self, place: int, amount: int) -> None:
        """Add at one index."""
        few = self.few
        if few is None:
            self.cells[place] += amount
            return
        number = few.get(place, 0) + amount
        if number:
            few[place] = number
            if len(few) > PLACES_IN_DICT:
                self.set_vector(self.vector(self._length))
        else:
            few.pop(place, None)

    def add_to_many(self, places: Int64Vector, amounts: Int64Vector) -> None:
        """Add at several indexes, which may repeat."""
        if self.few is not None and len(places) > PLACES_IN_DICT:
            self.set_vector(self.vector(self._length))
        if self._vector is not None:
            np.add.at(self._vector, places, amounts)
            return
        for place, amount in zip(places.tolist(), amounts.tolist(), strict=True):
            self.add_to(place, amount)

    def at(self, place: int) -> int:
        """Return the number at one index."""
        few = self.few
        return few.get(place, 0) if few is not None else int(self.cells[place])

    def vector(self, length: int) -> Int64Vector:
        """Return the present numbers of the first places: not to be changed."""
        if self._vector is not None:
            return self._vector[:length]
        found = np.zeros(length, np.int64)
        if self.few:
            found[list(self.few)] = list(self.few.values())
        return found

    def take_over(self, numbers: Int64Vector) -> None:
        """Replace all numbers by these; the counts own them from now on."""
        places = np.flatnonzero(numbers)
        if len(places) > PLACES_IN_DICT:
            self.set_vector(numbers)
        else:
            self._vector, self.cells = None, memoryview(b"")
            self.few = dict(zip(places.tolist(), numbers[places].tolist(), strict=True))

    def set_length(self, length: int) -> None:
        """Grow to ``length`` places."""
        self._length = length
        if self._vector is not None:
            longer = np.zeros(length, np.int64)
            longer[: len(self._vector)] = self._vector
            self.set_vector(longer)

    def set_vector(self, numbers: Int64Vector) -> None:
        """Switch to a vector; the counts own it from now on."""
        self.few = None
        self._vector = numbers
        self.cells = cells_of(numbers)
