"""Topology spread: pods of a kind shared out evenly over zones, hosts or whatever else a label of the nodes names.

Only constraints that forbid scheduling count; kube-scheduler's own defaults are preferences.
Source: kube-scheduler v1.36, PodTopologySpread, PreFilter and Filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.nodes.reference.node_affinity import admits
from tests.nodes.reference.places import Place, labels, namespace
from tests.nodes.reference.selectors import is_empty, selects
from tests.nodes.reference.tolerations import tolerates_all
from tests.nodes.reference.world import Json

UNEVEN = "node(s) didn't match pod topology spread constraints"
UNLABELLED = f"{UNEVEN} (missing required label)"


@dataclass(frozen=True)
class Constraint:
    """A constraint with its defaults."""

    key: str
    max_skew: int
    min_domains: int
    selector: Json | None
    honors_affinity: bool
    honors_taints: bool

    @classmethod
    def of(cls, given: Json, pod: Json) -> Constraint:
        return cls(
            given["topologyKey"],
            given["maxSkew"],
            1 if given.get("minDomains") is None else given["minDomains"],
            _selector(given, pod),
            (given.get("nodeAffinityPolicy") or "Honor") == "Honor",
            (given.get("nodeTaintsPolicy") or "Ignore") == "Honor",
        )

    def counts(self, pod: Json, place: Place) -> bool:
        """Return whether the pods of the node count, and its domain if there are none."""
        if self.honors_affinity and not admits(pod["spec"], place.node):
            return False
        return not self.honors_taints or tolerates_all(pod, place.node)


def _selector(given: Json, pod: Json) -> Json | None:
    """Return the selector, narrowed to pods that have this one's values of the labels that `matchLabelKeys` names.

    A label that the pod does not have does not narrow it.
    """
    selector, own = given.get("labelSelector"), labels(pod)
    keys = [one for one in given.get("matchLabelKeys") or () if one in own]
    if selector is None or not keys:
        return selector
    parts = [{"key": one, "operator": "In", "values": [own[one]]} for one in keys]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *parts]}


def spread_refusal(pod: Json, place: Place, places: Sequence[Place]) -> list[str]:
    """Return why the pod's constraints keep it off the node, among all nodes: the first that does so tells."""
    given = pod["spec"].get("topologySpreadConstraints") or ()
    hard = [Constraint.of(one, pod) for one in given if one["whenUnsatisfiable"] == "DoNotSchedule"]
    with_labels = [one for one in places if all(each.key in one.labels for each in hard)]
    for constraint in hard:
        domain = place.labels.get(constraint.key)
        if domain is None:
            return [UNLABELLED]
        numbers = _numbers(constraint, pod, with_labels)
        least = min(numbers.values(), default=0) if len(numbers) >= constraint.min_domains else 0
        own = 1 if selects(constraint.selector, labels(pod)) else 0
        if numbers.get(domain, 0) + own - least > constraint.max_skew:
            return [UNEVEN]
    return []


def _numbers(constraint: Constraint, pod: Json, places: Sequence[Place]) -> dict[str, int]:
    """Return how many pods of the constraint each domain has."""
    numbers: dict[str, int] = {}
    for one in places:
        if constraint.counts(pod, one):
            domain = one.labels[constraint.key]
            numbers[domain] = numbers.get(domain, 0) + _matching(constraint, pod, one)
    return numbers


def _matching(constraint: Constraint, pod: Json, place: Place) -> int:
    """Count pods of the same namespace that are not about to go. A selector that asks for nothing finds none of them."""
    if is_empty(constraint.selector):
        return 0
    return sum(
        1
        for one in place.pods
        if namespace(one) == namespace(pod)
        and not one["metadata"].get("deletionTimestamp")
        and selects(constraint.selector, labels(one))
    )
