"""Which groups' empty nodes take which classes of pods, for one search: a row of groups for each class.

Node objects and amounts are compared by vectors. Rules about other pods, here about those of DaemonSets, and devices
are asked of a template by itself, only where the search needs to know, and once for templates that are equal to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from kubetide.nodes.templates.matrix import TemplateMatrix
from kubetide.nodes.templates.template import Template
from kubetide.scheduling import PodClass, Snapshot
from kubetide.units.vectors import BoolVector, Int64Vector


class _Row:
    """What is known of a class.

    Attributes:
        takes: (groups,) whether an empty node takes it, as far as has been asked.
        unasked: Groups of which one must still be asked; None for none.
        places: Equal numbers for groups whose answer is the same.
    """

    __slots__ = ("places", "takes", "unasked")

    def __init__(self, takes: BoolVector, places: Int64Vector | None) -> None:
        self.takes = takes
        self.places = places
        self.unasked = None if places is None else takes.copy()


class FeasibleGroups:
    """Answers for the templates of one tick; ``forget`` ends it."""

    def __init__(self, snapshot: Snapshot, templates: Mapping[str, Template | None]) -> None:
        known = {group: template for group, template in templates.items() if template is not None}
        self._templates = list(known.values())
        self._matrix = TemplateMatrix(self._templates, snapshot.facts)
        self._rows: dict[PodClass, _Row] = {}
        self._asked: dict[int, None] = {}
        devices = snapshot.facts.devices
        self._knows_devices = snapshot.devices is not None
        self._has_shared_devices = any(not one.spec.node_name for one in devices.slices) if devices else False
        self.number_of = {group: at for at, group in enumerate(known)}
        """The place of each group in all vectors."""

    def for_all(self, pod_classes: Iterable[PodClass], among: BoolVector) -> BoolVector:
        """Return which of some groups have empty nodes that take each of the classes, as far as is known before it is tried.

        Args:
            pod_classes: A node that takes each of them may still have no capacity for all of them.
            among: (groups,) which groups are asked; the others are False in the new vector that is returned.
        """
        takes = among.copy()
        for pod_class in pod_classes:
            row = self._rows.get(pod_class)
            if row is None:
                row = self._rows[pod_class] = self._row(pod_class)
            takes &= row.takes
            if row.unasked is not None and self._ask(pod_class, row, row.unasked & takes):
                takes &= row.takes
        return takes

    def forget(self) -> None:
        """Leave the templates, which later ticks use again, as they were."""
        for at in self._asked:
            self._templates[at].fresh.forget_classes()

    def _row(self, pod_class: PodClass) -> _Row:
        """Return what holds by node objects and amounts, and where more must be asked."""
        every = self._matrix.all
        if pod_class.names_nodes or pod_class.devices is not None:
            return self._one_by_one()
        if not every.has_inter_pod_rules(pod_class):
            return _Row(every.fits_alone(pod_class), None)
        keys = every.topology_keys(pod_class)
        if keys is None or pod_class.claims or pod_class.disks:
            return self._one_by_one()
        return _Row(every.fits_alone(pod_class), self._matrix.places(keys))

    def _one_by_one(self) -> _Row:
        number = len(self._templates)
        return _Row(np.ones(number, np.bool_), np.arange(number))

    def _ask(self, pod_class: PodClass, row: _Row, needed: BoolVector) -> bool:
        """Ask one of each place that is needed; False if there was nothing to ask."""
        asked = np.flatnonzero(needed).tolist()
        for at in asked:
            if row.unasked is None or row.places is None or not row.unasked[at]:
                continue
            equal = row.unasked & (row.places == row.places[at])
            row.unasked &= ~equal
            if not self._takes(pod_class, at):
                row.takes &= ~equal
        if row.unasked is not None and not row.unasked.any():
            row.unasked = None
        return bool(asked)

    def _takes(self, pod_class: PodClass, at: int) -> bool:
        template = self._templates[at]
        self._asked[at] = None
        takes = template.fresh.fits(pod_class, template.node.metadata.name)
        claims = pod_class.devices is not None and bool(pod_class.devices.claims)
        if claims and self._knows_devices:
            # Which devices are free is found when the pod is put there.
            takes &= bool(template.slices) or self._has_shared_devices
        return takes
