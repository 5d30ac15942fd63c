"""All templates side by side in one snapshot, grouped by equality: pod classes are evaluated against it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from msgspec.structs import replace

from kubetide.nodes.templates.template import Template
from kubetide.scheduling import ClusterFacts, PodClass, Snapshot
from kubetide.scheduling.pods.classes import classify_unbound
from kubetide.scheduling.pods.node_selection import HOSTNAME
from kubetide.scheduling.refusal import Refusal
from kubetide.units.recent import Recent
from kubetide.units.vectors import Int64Vector

_MOST_PLACES = 64
"""So many sets of labels are cached; pods have few."""
_MOST_BYTES = 32 << 20
"""Of refusals that are cached, roughly, in each of two halves."""

Refusals = dict[int, Refusal]
"""By number of the template: why it does not take a class. Templates that are not there take it. Not to be changed."""


class TemplateMatrix:
    """Templates in one snapshot. Valid while templates and facts are unchanged.

    Attributes:
        templates: In the order given, each with a node name of its own.
        names: Those names.
        all: The snapshot, a row for each template; devices are not looked at in it.
        amounts: By template, a number that is the same for those that have the same of everything.
    """

    def __init__(self, templates: Sequence[Template], facts: ClusterFacts) -> None:
        self.templates = list(templates)
        self.names = [template.node.metadata.name for template in templates]
        self._facts = facts
        # Whether devices can be had is asked in the cluster.
        self.all = Snapshot(replace(facts, devices=None))
        numbers: dict[Hashable, int] = {}
        self._daemons: list[int] = []
        for name, template in zip(self.names, templates, strict=True):
            self.all.add_template(template.node, template.pods, name)
            classes = tuple(classify_unbound(pod) for pod in template.pods)
            own = name if template.keeps_others_away else ""
            self._daemons.append(numbers.setdefault((classes, own), len(numbers)))
        self.amounts = self._alike_in_amounts()
        self._places: dict[tuple[str, ...], Int64Vector] = {}
        self._refusals: Recent[PodClass, list[Refusal | None]] = Recent(_MOST_BYTES, _size_of)
        self._refusals.each = 8 * len(self.names)

    def holds(self, templates: Sequence[Template], facts: ClusterFacts) -> bool:
        """Return whether the matrix was built from these very objects."""
        return (
            facts is self._facts
            and len(templates) == len(self.templates)
            and all(one is other for one, other in zip(templates, self.templates, strict=True))
        )

    def keep(self, pod_class: PodClass, refusals: Refusals) -> None:
        """Cache the refusals of a class that depend on nothing but the templates."""
        # A list takes a fifth of the memory of a dict.
        self._refusals.put(pod_class, [refusals.get(at) for at in range(len(self.names))])

    def find(self, pod_class: PodClass) -> Refusals | None:
        """Return the refusals of a class as they were cached, or None."""
        known = self._refusals.get(pod_class)
        if known is None:
            return None
        return {at: refusal for at, refusal in enumerate(known) if refusal is not None}

    def places(self, keys: tuple[str, ...]) -> Int64Vector:
        """(templates,): equal numbers for templates that are equal to every term about these labels."""
        places = self._places.get(keys)
        if places is None:
            if len(self._places) >= _MOST_PLACES:
                self._places.clear()
            numbers: dict[Hashable, int] = {}
            whole = [
                numbers.setdefault((daemons, self._domains(at, keys)), len(numbers))
                for at, daemons in enumerate(self._daemons)
            ]
            places = self._places[keys] = np.array(whole, np.int64)
        return places

    def _domains(self, at: int, keys: Sequence[str]) -> Hashable:
        """The values of the labels; every new node has a hostname of its own, which is as good as any other."""
        labels = self.templates[at].node.metadata.labels or {}
        return tuple(key in labels if key == HOSTNAME else labels.get(key) for key in keys)

    def _alike_in_amounts(self) -> list[int]:
        there, left = self.all.allocatable, self.all.free
        numbers: dict[Hashable, int] = {}
        columns = [column.tolist() for name in there for column in (there[name], left[name])]
        rows = (tuple(column[at] for column in columns) for at in range(len(self.names)))
        return [numbers.setdefault(row, len(numbers)) for row in rows]


def _size_of(pod_class: PodClass) -> int:
    return 1024 + len(pod_class.key)
