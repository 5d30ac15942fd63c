"""Which pods a new node of each group accepts, for all groups at once.

With hundreds of groups, asking each template about each class is most of a tick. So templates stand in
one snapshot, and a class is compared with all of them by vectors: node objects and amounts. Reasons are
asked for only where a template refuses, and once for templates of the same amounts. What rules classes have about
other pods is the same for templates that pass so far and have the same values of the labels that matter
and the same DaemonSet pods, and for classes that stand alike to other pods: one is asked, in the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from kubetide.nodes.templates.matrix import Refusals, TemplateMatrix
from kubetide.scheduling import PodClass, Snapshot
from kubetide.scheduling.estimator.template import check_in_cluster
from kubetide.scheduling.filters.in_use import filters_in_use
from kubetide.scheduling.filters.registry import FIRST_FILTERS
from kubetide.scheduling.refusal import Refusal
from kubetide.units.vectors import BoolVector


def evaluate_templates(
    snapshot: Snapshot, template_matrix: TemplateMatrix, pod_classes: Iterable[PodClass]
) -> dict[PodClass, Refusals]:
    """Return, per pod class, why each node template rejects it.

    A class with inter-pod rules is evaluated as if the node had joined the cluster. The snapshot is left as
    found.

    Args:
        snapshot: The cluster.
        matrix: The templates.
        pod_classes: What is to be placed.
    """
    together = _Together(snapshot, template_matrix)
    classes = dict.fromkeys(pod_classes)
    found = {pod_class: together.evaluate(pod_class) for pod_class in classes}
    together.ask_in_cluster()
    together.forget_classes()
    return {pod_class: together.whole(refusals) for pod_class, refusals in found.items()}


class _Question:
    """What a template is asked in the cluster about a class, for other classes and templates too, and the answer."""

    __slots__ = ("answer", "pod_class")

    def __init__(self, pod_class: PodClass) -> None:
        self.pod_class = pod_class
        self.answer: Refusal | None = None


class _Evaluated:
    """What is said of a class: refusals that are known, and questions whose answer holds for some templates."""

    __slots__ = ("asked", "refusals")

    def __init__(self) -> None:
        self.refusals: Refusals = {}
        self.asked: list[tuple[_Question, Sequence[int]]] = []


class _Family(NamedTuple):
    """What is the same for all classes that differ in amounts alone.

    Attributes:
        in_cluster: Whether they must be asked about in the cluster.
        keys: The labels by which pods of other nodes bear on them; None where templates must be asked one by one.
        static: (templates,) whether the node object lets them in; None where amounts are not all that else counts.
    """

    in_cluster: bool
    keys: tuple[str, ...] | None
    static: BoolVector | None


class _Together:
    """What is found out in one call: refusals by class, and what is still to be asked in the cluster."""

    def __init__(self, snapshot: Snapshot, template_matrix: TemplateMatrix) -> None:
        self._snapshot = snapshot
        self._template_matrix = template_matrix
        self._templates, self._names, self._all = (
            template_matrix.templates,
            template_matrix.names,
            template_matrix.all,
        )
        self._questions: dict[int, list[_Question]] = {}
        self._asked_alone: dict[int, None] = {}
        # Memos of this call: templates by place, questions and refusals that hold for more than one.
        self._by_place: dict[tuple[tuple[str, ...], bytes], list[tuple[int, list[int]]]] = {}
        self._same: dict[tuple[bytes, tuple[str, ...], int], _Question] = {}
        self._short: dict[tuple[Hashable, int], Refusal] = {}
        self._families: dict[tuple[bytes, bytes], _Family] = {}
        self._free = template_matrix.all.free

    def evaluate(self, pod_class: PodClass) -> _Evaluated:
        """Return the refusals by node objects and amounts; notes what must be asked in the cluster."""
        evaluated = _Evaluated()
        known = self._template_matrix.find(pod_class)
        if known is not None and not self._is_asked_in_cluster(pod_class):
            evaluated.refusals = known
            return evaluated
        family = self._family_of(pod_class)
        if family.keys is None:
            self._evaluate_one_by_one(evaluated, family, pod_class)
            return evaluated
        passes = self._passes(family, pod_class)
        refused = np.flatnonzero(~passes).tolist()
        if refused:
            by_node = self._refused_by_node(family, pod_class)
            refusal_of = self._refusal_of(family, pod_class)
            for at in refused:
                refusal = by_node.get(at) or refusal_of(at)
                if refusal is not None:
                    evaluated.refusals[at] = refusal
                if family.in_cluster and (refusal is None or refusal.plugin not in FIRST_FILTERS):
                    self._ask(evaluated, at, pod_class, [at])
        if family.in_cluster:
            for place, these in self._at_places(family.keys, passes):
                self._ask_once(evaluated, pod_class, family.keys, place, these)
        elif filters_in_use().shares_verdicts:
            self._template_matrix.keep(pod_class, evaluated.refusals)
        return evaluated

    def _evaluate_one_by_one(self, evaluated: _Evaluated, family: _Family, pod_class: PodClass) -> None:
        for at in range(len(self._templates)):
            if family.in_cluster:
                self._ask(evaluated, at, pod_class, [at])
            else:
                refusal = self._by_itself(at, pod_class)
                if refusal is not None:
                    evaluated.refusals[at] = refusal

    def _family_of(self, pod_class: PodClass) -> _Family:
        """Return what holds for all classes that differ from this one in amounts alone."""
        if not filters_in_use().shares_verdicts:
            return self._family(pod_class, by_amounts=False)
        if pod_class.ports or pod_class.inter_pod_key is None or pod_class.node_key is None:
            return self._family(pod_class, by_amounts=False)
        name = (pod_class.node_key, pod_class.inter_pod_key)
        family = self._families.get(name)
        if family is None:
            family = self._families[name] = self._family(pod_class, by_amounts=True)
        return family

    def _family(self, pod_class: PodClass, *, by_amounts: bool) -> _Family:
        in_cluster = self._is_asked_in_cluster(pod_class)
        keys = self._snapshot.topology_keys(pod_class)
        if _is_special(pod_class) or (not in_cluster and self._all.has_inter_pod_rules(pod_class)):
            keys = None
        return _Family(in_cluster, keys, self._all.static_part(pod_class) if by_amounts else None)

    def _is_asked_in_cluster(self, pod_class: PodClass) -> bool:
        snapshot = self._snapshot
        return snapshot.has_inter_pod_rules(pod_class) or snapshot.asks_for_devices(pod_class)

    def _passes(self, family: _Family, pod_class: PodClass) -> BoolVector:
        """(templates,): whether node object and amounts let the class in."""
        if family.static is None:
            return self._all.fits_alone(pod_class)
        passes = family.static.copy()
        for name, amount in pod_class.needs:
            free = self._free.get(str(name))
            if free is None:
                passes[:] = False
                break
            passes &= free >= amount
        return passes

    def ask_in_cluster(self) -> None:
        """Answer what was noted: each template joins the cluster once."""
        for at, questions in self._questions.items():
            template = self._templates[at]
            classes = [question.pod_class for question in questions]
            refusals = check_in_cluster(self._snapshot, template.node, template.pods, classes)
            for question, refusal in zip(questions, refusals, strict=True):
                question.answer = refusal

    def whole(self, evaluated: _Evaluated) -> Refusals:
        """Return all refusals in order of the templates, once questions are answered.

        Templates that are spoken for by one of them pass by themselves: only a question about one alone may take a refusal back.
        """
        refusals = evaluated.refusals
        changed = False
        for question, these in evaluated.asked:
            if question.answer is not None:
                refusals.update(dict.fromkeys(these, question.answer))
                changed = True
            elif len(these) == 1:
                refusals.pop(these[0], None)
        return {at: refusals[at] for at in sorted(refusals)} if changed else refusals

    def _ask(self, evaluated: _Evaluated, at: int, pod_class: PodClass, these: Sequence[int]) -> _Question:
        question = _Question(pod_class)
        self._questions.setdefault(at, []).append(question)
        evaluated.asked.append((question, these))
        return question

    def _ask_once(
        self, evaluated: _Evaluated, pod_class: PodClass, keys: tuple[str, ...], place: int, these: list[int]
    ) -> None:
        if pod_class.inter_pod_key is None or not filters_in_use().shares_verdicts:
            self._ask(evaluated, these[0], pod_class, these)
            return
        key = (pod_class.inter_pod_key, keys, place)
        known = self._same.get(key)
        if known is None:
            self._same[key] = self._ask(evaluated, these[0], pod_class, these)
        else:
            evaluated.asked.append((known, these))

    def forget_classes(self) -> None:
        """Leave the templates, which later calls use again, as they were."""
        self._all.forget_classes()
        for at in self._asked_alone:
            self._templates[at].fresh.forget_classes()

    def _by_itself(self, at: int, pod_class: PodClass) -> Refusal | None:
        self._asked_alone[at] = None
        return self._templates[at].fresh.first_refusal(pod_class, self._names[at])

    def _refused_by_node(self, family: _Family, pod_class: PodClass) -> dict[int, Refusal]:
        """Return why templates refuse whose node object does not let the class in, where that is known."""
        if family.static is None:
            return {}
        return self._all.first_refusals(pod_class, np.flatnonzero(~family.static).tolist())

    def _refusal_of(self, family: _Family, pod_class: PodClass) -> Callable[[int], Refusal | None]:
        """Return what says why a template refuses; where only amounts can be short, the same for templates with the same of all."""
        if family.static is None:
            return lambda at: self._by_itself(at, pod_class)
        asked = tuple(pod_class.requests.items())

        def refusal_of(at: int) -> Refusal | None:
            key = (asked, self._template_matrix.amounts[at])
            refusal = self._short.get(key)
            if refusal is None:
                refusal = self._templates[at].fresh.amounts_refusal(pod_class, self._names[at])
                if refusal is not None:
                    self._short[key] = refusal
            return refusal

        return refusal_of

    def _at_places(self, keys: tuple[str, ...], passes: BoolVector) -> list[tuple[int, list[int]]]:
        """Return the templates that pass, grouped by these labels as far as a term distinguishes them."""
        known = (keys, passes.tobytes())
        found = self._by_place.get(known)
        if found is None:
            places = self._template_matrix.places(keys)
            by_place: dict[int, list[int]] = {}
            for at in np.flatnonzero(passes).tolist():
                by_place.setdefault(int(places[at]), []).append(at)
            found = self._by_place[known] = list(by_place.items())
        return found


def _is_special(pod_class: PodClass) -> bool:
    """Return whether its verdict on a template may depend on more than that template's labels, taints and amounts."""
    return (
        pod_class.names_nodes
        or pod_class.devices is not None
        or bool(pod_class.claims or pod_class.disks or pod_class.features)
    )
