"""Scans nodes in name order, so that the answer does not depend on the order in which they joined.

Source: upstream scans nodes in the order of a map, that is in any order; by name is one of them, and always the same.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.snapshot.snapshot import Snapshot
from kubetide.units.vectors import BoolVector

_SINGLE_LOOKS = 16


class NameOrder:
    """The nodes of a snapshot by name. Places are positions in this order; nodes that join later have none.

    Attributes:
        names: The nodes.
        index: Name -> place.
        rows: The snapshot's row of each place.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self.names = sorted(snapshot.node_names)
        self.index = {name: at for at, name in enumerate(self.names)}
        self.rows = np.array(snapshot.rows_of(self.names), dtype=np.intp)

    def among(self, names: Iterable[str]) -> BoolVector:
        """Return (places,): whether the place is one of these nodes, without cordoned ones."""
        found: BoolVector = np.zeros(len(self.names), np.bool_)
        found[[self.index[name] for name in names]] = True
        return found & ~self._snapshot.unschedulable[self.rows]

    def first_fit(self, pod_class: PodClass, start: int, open_places: BoolVector) -> int:
        """Return the first open place, going round once from ``start``, whose node accepts the class, or -1."""
        count = len(self.names)
        # A few single looks first: most pods fit on the first nodes, and a look is cheaper than a vector.
        for place in range(start, min(start + _SINGLE_LOOKS, count)):
            if open_places[place] and self._snapshot.fits(pod_class, self.names[place]):
                return place
        fits = self._snapshot.feasible(pod_class)[self.rows] & open_places
        for first, last in ((start, count), (0, start)):
            if first < last:
                place = first + int(fits[first:last].argmax())
                if fits[place]:
                    return place
        return -1
