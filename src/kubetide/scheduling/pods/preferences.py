"""A pod's preferences: preferred affinity, soft spreading, and the requests that scoring assumes.

Compiled once per class; filters read none of it.

Source: kube-scheduler v1.36 score plugins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from kubetide.objects.pod import Pod
from kubetide.scheduling.pods.node_selection import Term, compile_preference
from kubetide.scheduling.pods.resources import SCORED, scored_requests
from kubetide.scheduling.pods.terms import PodTerm, SpreadConstraint, compile_spread, selector_message
from kubetide.units.selectors import SelectorError

WeightedTerms = tuple[tuple[PodTerm, int], ...]


class PodTerms(NamedTuple):
    """The terms of a pod about other pods, as it lists them."""

    affinity: tuple[PodTerm, ...]
    anti_affinity: tuple[PodTerm, ...]
    preferred_affinity: WeightedTerms
    preferred_anti_affinity: WeightedTerms


NO_TERMS = PodTerms((), (), (), ())


class PreferredNodes(msgspec.Struct, frozen=True):
    """Preferred node affinity: terms with their weights, or why these cannot be read."""

    terms: tuple[tuple[Term, int], ...]
    error: str = ""


class Preferences(msgspec.Struct, frozen=True, kw_only=True):
    """What scoring reads of a pod class.

    Attributes:
        nodes: Preferred node affinity; None where the pod has no such list.
        pods: Preferred terms about other pods with their weights, negative for anti-affinity.
        asking: By term, what a pod of the class on a node adds to the score of pods that the term means:
            its preferred weights, and 1 for each required affinity term.
        spread: ScheduleAnyway constraints.
        spread_error: Not empty when those cannot be read.
        is_spread: Whether it has constraints of any kind, so that the system adds none.
        requests: By resource of ``SCORED``, what a pod to be placed is taken to need: defaults for
            containers that do not name the resource; pod-level requests play no part.
        unasked: By resource of ``SCORED``, what the defaults add to the requests of one on a node.
    """

    nodes: PreferredNodes | None
    pods: WeightedTerms
    asking: WeightedTerms
    spread: tuple[SpreadConstraint, ...]
    spread_error: str
    is_spread: bool
    requests: tuple[int, ...]
    unasked: tuple[int, ...]


def preferences_of(pod: Pod, requests: Mapping[str, int], terms: PodTerms) -> Preferences:
    """Return what scoring reads of a pod, given its terms and its requests as filters count them."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    preferred = affinity.preferred_during_scheduling_ignored_during_execution if affinity else None
    spread, spread_error = _spread(pod)
    placed, on_node = scored_requests(pod, requests)
    return Preferences(
        nodes=None if preferred is None else PreferredNodes(*compile_preference(preferred)),
        pods=(
            *terms.preferred_affinity,
            *((term, -weight) for term, weight in terms.preferred_anti_affinity),
        ),
        asking=_asking(terms) if terms is not NO_TERMS else (),
        spread=spread,
        spread_error=spread_error,
        is_spread=bool(pod.spec.topology_spread_constraints),
        requests=placed,
        unasked=tuple(amount - requests.get(name, 0) for name, amount in zip(SCORED, on_node, strict=True)),
    )


def _asking(terms: PodTerms) -> WeightedTerms:
    weights: dict[PodTerm, int] = {}
    for term in terms.affinity:
        weights[term] = weights.get(term, 0) + 1
    for term, weight in terms.preferred_affinity:
        weights[term] = weights.get(term, 0) + weight
    for term, weight in terms.preferred_anti_affinity:
        weights[term] = weights.get(term, 0) - weight
    return tuple(weights.items())


def _spread(pod: Pod) -> tuple[tuple[SpreadConstraint, ...], str]:
    given = pod.spec.topology_spread_constraints
    if not given:
        return (), ""
    try:
        return compile_spread(given, pod.metadata.labels or {}, "ScheduleAnyway"), ""
    except SelectorError as error:
        return (), selector_message(error)
