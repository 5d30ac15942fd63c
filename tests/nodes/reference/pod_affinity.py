"""Required affinity and anti-affinity between pods, over any topology.

Both sides of anti-affinity count: a pod keeps away from others, and others keep it away from themselves.
Source: kube-scheduler v1.36, InterPodAffinity, PreFilter and Filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.nodes.reference.places import Place, labels, namespace
from tests.nodes.reference.selectors import is_empty, selects
from tests.nodes.reference.world import Json

ALONE = "node(s) didn't match pod affinity rules"
CROWDED = "node(s) didn't match pod anti-affinity rules"
SHUNNED = "node(s) didn't satisfy existing pods anti-affinity rules"

Namespaces = Mapping[str, Mapping[str, str]]
"""Labels of each Namespace that exists."""


@dataclass(frozen=True)
class Term:
    """One term of a pod that is to be placed, or of one that has its place."""

    key: str
    selector: Json | None
    namespaces: frozenset[str]
    namespace_selector: Json | None

    @classmethod
    def of(cls, given: Json, pod: Json) -> Term:
        """Return the term of a pod: without namespaces and selector of namespaces it is about the pod's own namespace."""
        names = frozenset(given.get("namespaces") or ())
        selector = given.get("namespaceSelector")
        if not names and selector is None:
            names = frozenset({namespace(pod)})
        return cls(given["topologyKey"], given.get("labelSelector"), names, selector)

    def resolved(self, namespaces: Namespaces) -> Term:
        """Return the term of a pod that is to be placed: with the names of the namespaces that its selector finds.

        The selector stays, and upstream asks it about no labels at all: one that wants a label absent finds everything.
        """
        if self.namespace_selector is None or is_empty(self.namespace_selector):
            return self
        found = {name for name, own in namespaces.items() if selects(self.namespace_selector, own)}
        return Term(self.key, self.selector, self.namespaces | found, self.namespace_selector)

    def matches(self, pod: Json, namespace_labels: Mapping[str, str]) -> bool:
        """Return whether the term is about the pod, in a namespace of these labels."""
        here = namespace(pod) in self.namespaces or selects(self.namespace_selector, namespace_labels)
        return here and selects(self.selector, labels(pod))


def affinity_refusal(pod: Json, place: Place, places: Sequence[Place], namespaces: Namespaces) -> list[str]:
    """Return why the pod must not go to the node because of other pods, by what is on all nodes."""
    near = [one.resolved(namespaces) for one in _terms(pod, "podAffinity")]
    if not _has_its_pods(near, pod, place, places):
        return [ALONE]
    far = [one.resolved(namespaces) for one in _terms(pod, "podAntiAffinity")]
    if any(_meets(one, place, places) for one in far):
        return [CROWDED]
    own = namespaces.get(namespace(pod), {})
    for other, at in _pods(places):
        for term in _terms(other, "podAntiAffinity"):
            if _share(term.key, at, place) and term.matches(pod, own):
                return [SHUNNED]
    return []


def _terms(pod: Json, kind: str) -> list[Term]:
    given = ((pod["spec"].get("affinity") or {}).get(kind) or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return [Term.of(one, pod) for one in given or ()]


def _has_its_pods(terms: list[Term], pod: Json, place: Place, places: Sequence[Place]) -> bool:
    """Return whether every domain of the node has a pod that matches all terms.

    The first pod of a group has nobody to join: if no such pod is in any domain, and the pod itself is one, it may go
    to any node that has all the labels.
    """
    if not all(one.key in place.labels for one in terms):
        return False
    there = [at for other, at in _pods(places) if all(one.matches(other, {}) for one in terms)]
    if all(any(_share(one.key, at, place) for at in there) for one in terms):
        return True
    is_first = not any(one.key in at.labels for one in terms for at in there)
    return is_first and all(one.matches(pod, {}) for one in terms)


def _meets(term: Term, place: Place, places: Sequence[Place]) -> bool:
    """Return whether a pod that the term is about is in the node's domain."""
    return any(_share(term.key, at, place) and term.matches(other, {}) for other, at in _pods(places))


def _pods(places: Sequence[Place]) -> Iterator[tuple[Json, Place]]:
    for place in places:
        for pod in place.pods:
            yield pod, place


def _share(key: str, one: Place, other: Place) -> bool:
    """Return whether both nodes have the label, with one value."""
    return key in one.labels and one.labels[key] == other.labels.get(key)
