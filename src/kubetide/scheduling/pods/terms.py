"""A pod's rules about other pods: (anti-)affinity and spreading, compiled once per class.

Source: kube-scheduler v1.36 InterPodAffinity and PodTopologySpread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from kubetide.objects.pod import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from kubetide.units.selectors import Requirement, Selector, SelectorError

_INT32 = (1 << 31) - 1
"""The API's largest number here; what a decoder let through beyond it means the same."""

Namespaces = Mapping[str, Mapping[str, str]]
"""The labels of each Namespace object there is."""


class PodTerm(msgspec.Struct, frozen=True):
    """One term of pod (anti-)affinity: the pods that it matches, and the domain's label.

    Attributes:
        selector: Labels of the pods meant.
        namespaces: Names that are listed, or the pod's own when nothing else is said.
        namespace_selector: Labels of further namespaces; None for no further ones.
        topology_key: Label of nodes whose values are the domains.
    """

    selector: Selector
    namespaces: tuple[str, ...]
    namespace_selector: Selector | None
    topology_key: str

    def counts(self, namespace: str, labels: Mapping[str, str], namespaces: Namespaces, minor: int) -> bool:
        """Return whether a term of the pod to place matches an existing pod.

        The selector of namespaces is asked about Namespace objects and, as v1.36 does, about no labels at all,
        so that one made of negations means every namespace. With v1.37 only an empty one does.
        """
        if namespace not in self.namespaces and not self._names(namespace, namespaces, minor):
            return False
        return self.selector.matches(labels)

    def guards(self, namespace: str, labels: Mapping[str, str], namespaces: Namespaces) -> bool:
        """Return whether a term of an existing pod matches the pod to place.

        A namespace without an object has no labels.
        """
        if namespace not in self.namespaces:
            chosen = self.namespace_selector
            if chosen is None or not chosen.matches(namespaces.get(namespace, {})):
                return False
        return self.selector.matches(labels)

    def _names(self, namespace: str, namespaces: Namespaces, minor: int) -> bool:
        chosen = self.namespace_selector
        if chosen is None:
            return False
        means_all = chosen.is_empty() if minor >= 37 else chosen.matches({})
        return means_all or (namespace in namespaces and chosen.matches(namespaces[namespace]))


class SpreadConstraint(msgspec.Struct, frozen=True):
    """One spread constraint.

    Attributes:
        selector: The pods that are counted, with what matchLabelKeys add.
        self_match: 1 when the pod itself will be counted, else 0.
        honor_affinity: Whether only nodes count that the pod's selector and affinity allow.
        honor_taints: Whether only nodes count whose taints the pod tolerates.
    """

    topology_key: str
    max_skew: int
    min_domains: int
    selector: Selector
    self_match: int
    honor_affinity: bool
    honor_taints: bool

    @property
    def margin(self) -> int:
        """Return how many pods more than the emptiest domain a domain may have to admit one more."""
        return self.max_skew - self.self_match

    def counts_least(self, domains: int) -> bool:
        """Return whether there are enough domains; with fewer the emptiest one counts as empty."""
        return domains >= self.min_domains

    def most(self, least: int, domains: int) -> int:
        """Return the most pods that a domain may have to admit one more.

        Args:
            least: Pods in the least-filled domain.
            domains: How many domains there are.
        """
        margin = self.max_skew - self.self_match  # the hot loop: asking the two above costs twice as much
        return margin + least if domains >= self.min_domains else margin


def is_first_of_its_kind(existing: Iterable[int], matches_itself: bool) -> bool:
    """Return whether required affinity admits a pod in any domain: it matches its own terms, and no existing pod does.

    Args:
        existing: Per term, the pods in any domain that all terms mean.
        matches_itself: Whether all terms mean the pod itself.
    """
    return matches_itself and not any(existing)


def compile_terms(given: PodAffinity | None, namespace: str) -> tuple[PodTerm, ...]:
    """Return the compiled required terms of a pod in the namespace.

    Raises: SelectorError with upstream's message.
    """
    terms = given.required_during_scheduling_ignored_during_execution if given else None
    return tuple(_compile_term(term, namespace) for term in terms or ())


def compile_preferred(given: PodAffinity | None, namespace: str) -> tuple[tuple[PodTerm, int], ...]:
    """Return the compiled preferred terms of a pod in the namespace, each with its weight.

    Raises: SelectorError with upstream's message.
    """
    terms = given.preferred_during_scheduling_ignored_during_execution if given else None
    return tuple((_compile_term(one.pod_affinity_term, namespace), one.weight) for one in terms or ())


def compile_spread(
    given: Iterable[TopologySpreadConstraint],
    labels: Mapping[str, str],
    when_unsatisfiable: str = "DoNotSchedule",
) -> tuple[SpreadConstraint, ...]:
    """Return the compiled constraints of one kind of a pod with these labels: those that filter, or those that score.

    Raises: SelectorError with upstream's message.
    """
    return tuple(
        _compile_constraint(one, labels) for one in given if one.when_unsatisfiable == when_unsatisfiable
    )


def _compile_term(term: PodAffinityTerm, namespace: str) -> PodTerm:
    selector = Selector.from_object(term.label_selector)
    chosen = None if term.namespace_selector is None else Selector.from_object(term.namespace_selector)
    listed = tuple(sorted(dict.fromkeys(term.namespaces or ())))
    if not listed and chosen is None:
        listed = (namespace,)
    return PodTerm(selector, listed, chosen, term.topology_key)


def _compile_constraint(given: TopologySpreadConstraint, labels: Mapping[str, str]) -> SpreadConstraint:
    selector = Selector.from_object(given.label_selector)
    if given.label_selector is not None:
        more = [
            Requirement(key, "in", (labels[key],)) for key in given.match_label_keys or () if key in labels
        ]
        if more:
            every = sorted((*selector.requirements, *more), key=lambda one: one.key)
            selector = Selector(tuple(every))
    return SpreadConstraint(
        topology_key=given.topology_key,
        max_skew=max(-_INT32, min(given.max_skew, _INT32)),
        min_domains=1 if given.min_domains is None else given.min_domains,
        selector=selector,
        self_match=int(selector.matches(labels)),
        honor_affinity=given.node_affinity_policy != "Ignore",
        honor_taints=given.node_taints_policy == "Honor",
    )


def selector_message(error: SelectorError) -> str:
    """Return upstream's message; Go prints an absent list of values as null."""
    return error.detail.replace("Invalid value: []: for 'in'", "Invalid value: null: for 'in'")
