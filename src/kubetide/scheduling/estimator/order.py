"""The order in which an estimate packs groups of pods: largest share of a node first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubetide.objects.node import Node
from kubetide.scheduling.estimator.unstable_sort import descending_order
from kubetide.scheduling.pods.classes import charges_on_node
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.scheduling.pods.resources import node_allocatable


class Orders:
    """The orders of the same groups for one template after another."""

    def __init__(self, groups: Sequence[PodGroup], minor: int) -> None:
        numbers: dict[tuple[int, int], int] = {}
        sizes: list[int] = []
        for group in groups:
            asked = dict(charges_on_node(group.pods[0], minor))
            sizes.append(numbers.setdefault((asked.get("cpu", 0), asked.get("memory", 0)), len(numbers)))
        self._sizes = np.array(sizes, np.int64)
        self._amounts = list(numbers)
        self._known: dict[bytes, list[int]] = {}

    def of(self, template: Node, groups: Sequence[int]) -> list[int]:
        """Return groups, by number, ordered by the share of the template that one pod requests, largest first.

        Equal scores keep the given order in up to 12 groups; beyond that upstream's sort may move them.
        """
        allocatable = node_allocatable(template)
        by_size = np.zeros(len(self._amounts))
        for at, resource in enumerate(("cpu", "memory")):
            offered = allocatable.get(resource, 0)
            if offered > 0:
                by_size += np.array([amounts[at] / offered for amounts in self._amounts])
        given = np.array(groups, np.int64)
        scores = by_size[self._sizes[given]]
        # What the sort does depends only on how scores compare, which is the same for many templates.
        values, ranks = np.unique(scores, return_inverse=True)
        if len(values) == len(given):
            order: list[int] = given[np.argsort(-scores)].tolist()
            return order
        key = ranks.tobytes()
        positions = self._known.get(key)
        if positions is None:
            positions = self._known[key] = descending_order(ranks.tolist())
        return given[positions].tolist()  # type: ignore[no-any-return]  # numpy does not say
