"""nodeSelector and required node affinity, compiled once per pod class.

A term that is malformed matches nothing, other terms are still tried. Terms are ORed, requirements
in a term ANDed; a term without requirements matches nothing, and so do no terms at all.

Source: kube-scheduler v1.36 NodeAffinity, component-helpers nodeaffinity, apimachinery labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from kubetide.objects.pod import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
)
from kubetide.scheduling.pods.node_selection_problems import term_problems
from kubetide.units.names import valid_label_key, valid_label_value

HOSTNAME = "kubernetes.io/hostname"

_INTEGER = re.compile(r"[+-]?[0-9]+")


class Requirement(msgspec.Struct, frozen=True):
    """One requirement on a label: ``bound`` is the number of Gt and Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    bound: int = 0

    def holds(self, value: str | None) -> bool:
        """Return whether a node whose label has that value (None: absent) meets the requirement."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                number = parse_int64(value)
                if number is None:
                    return False
                return number > self.bound if self.operator == "Gt" else number < self.bound


class NameRequirement(msgspec.Struct, frozen=True):
    """One requirement on a field: only ``metadata.name`` has a value, others are empty text."""

    value: str
    negated: bool
    on_name: bool

    def holds(self, name: str) -> bool:
        """Return whether a node of that name meets the requirement."""
        return ((name if self.on_name else "") == self.value) != self.negated


class Term(msgspec.Struct, frozen=True):
    """A well-formed term: all of its requirements must hold."""

    labels: tuple[Requirement, ...]
    names: tuple[NameRequirement, ...]

    def holds(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node with these labels and this name meets every requirement."""
        return all(r.holds(labels.get(r.key)) for r in self.labels) and all(r.holds(name) for r in self.names)


class NodeSelection(msgspec.Struct, frozen=True):
    """The nodes that a pod selects.

    Attributes:
        selector: nodeSelector as pairs that must all be equal.
        terms: The well-formed terms of required affinity; None without affinity.
        names: When every term names nodes, all of those names (PreFilter looks at no others).
    """

    selector: tuple[tuple[str, str], ...]
    terms: tuple[Term, ...] | None
    names: tuple[str, ...] | None

    def holds(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node with these labels and this name is selected (Filter alone, without ``names``)."""
        if any(labels.get(key) != value for key, value in self.selector):
            return False
        return self.terms is None or any(term.holds(labels, name) for term in self.terms)

    @property
    def names_nodes(self) -> bool:
        """Whether the verdict may differ between copies of one template, which differ in name only."""
        if self.names is not None or any(key == HOSTNAME for key, _ in self.selector):
            return True
        return any(
            term.names or any(requirement.key == HOSTNAME for requirement in term.labels)
            for term in self.terms or ()
        )


def compile_selection(
    selector: Mapping[str, str] | None, required: NodeSelector | None
) -> NodeSelection | None:
    """Return a pod's compiled nodeSelector and required affinity; None without both."""
    if not selector and required is None:
        return None
    terms = None
    names = None
    if required is not None:
        given = required.node_selector_terms or ()
        terms = tuple(term for term in map(_compile_term, given) if term is not None)
        names = _named_nodes(given)
    return NodeSelection(tuple((selector or {}).items()), terms, names)


def compile_label_terms(required: NodeSelector | None) -> tuple[Term, ...] | None:
    """Return the compiled terms of a volume's node affinity, without fields; None without affinity."""
    if required is None:
        return None
    terms = map(_compile_term, required.node_selector_terms or ())
    return tuple(Term(term.labels, ()) for term in terms if term is not None)


def compile_preference(
    given: Iterable[PreferredSchedulingTerm],
) -> tuple[tuple[tuple[Term, int], ...], str]:
    """Return the compiled preferred terms with their weights; the text is not empty if one cannot be read.

    Terms of weight 0 and empty ones are passed over, whatever they say.
    """
    terms: list[tuple[Term, int]] = []
    problems: list[str] = []
    for at, one in enumerate(given):
        if not one.weight or not (one.preference.match_expressions or one.preference.match_fields):
            continue
        term = _compile_term(one.preference)
        if term is None:
            problems += term_problems(one.preference, f"[{at}]")
        else:
            terms.append((term, one.weight))
    text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else ""
    return tuple(terms), text


def malformed(required: NodeSelector) -> str:
    """Return which term of a selector cannot be read; empty if all can. Empty terms can, and match nothing."""
    for at, term in enumerate(required.node_selector_terms or ()):
        if (term.match_expressions or term.match_fields) and _compile_term(term) is None:
            return f"nodeSelectorTerms[{at}]: invalid requirement"
    return ""


def parse_int64(text: str | None) -> int | None:
    """Return a decimal integer that fits in int64, or None."""
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text) if len(text) <= 64 else int(text.lstrip("+-0")[:64] or "0")
    return number if -(1 << 63) <= number < 1 << 63 else None


def _compile_term(term: NodeSelectorTerm) -> Term | None:
    if not term.match_expressions and not term.match_fields:
        return None
    labels = tuple(map(_compile_label, term.match_expressions or ()))
    names = tuple(map(_compile_name, term.match_fields or ()))
    if any(requirement is None for requirement in (*labels, *names)):
        return None
    return Term(tuple(r for r in labels if r), tuple(r for r in names if r))


def _compile_label(given: NodeSelectorRequirement) -> Requirement | None:
    values = given.values or ()
    if not valid_label_key(given.key) or not all(map(valid_label_value, values)):
        return None
    bound: int | None = 0
    match given.operator:
        case "In" | "NotIn":
            sized = len(values) > 0
        case "Exists" | "DoesNotExist":
            sized = not values
        case "Gt" | "Lt":
            sized = len(values) == 1
            bound = parse_int64(values[0]) if sized else None
        case _:
            sized = False
    if not sized or bound is None:
        return None
    return Requirement(given.key, given.operator, values, bound)


def _compile_name(given: NodeSelectorRequirement) -> NameRequirement | None:
    values = given.values or ()
    if given.operator not in {"In", "NotIn"} or len(values) != 1:
        return None
    return NameRequirement(values[0], given.operator == "NotIn", given.key == "metadata.name")


def _named_nodes(terms: tuple[NodeSelectorTerm, ...]) -> tuple[str, ...] | None:
    """All names that the terms allow, in the order given, or None when a term does not name nodes.

    Upstream's PreFilter takes several values here although its Filter rejects such a term.
    """
    union: dict[str, None] = {}
    for term in terms:
        allowed: list[str] | None = None
        for field in term.match_fields or ():
            if field.key == "metadata.name" and field.operator == "In":
                values = field.values or ()
                allowed = list(values) if allowed is None else [name for name in allowed if name in values]
        if allowed is None:
            return None
        union.update(dict.fromkeys(allowed))
    return tuple(union) if terms else None
