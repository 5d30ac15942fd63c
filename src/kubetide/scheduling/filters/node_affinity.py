"""NodeAffinity: nodeSelector and required node affinity."""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.columns.node_rows import labels_of
from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.node_selection import NodeSelection, Requirement, Term
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import Refusal
from kubetide.units.vectors import BoolVector

REASON = "node(s) didn't match Pod's node affinity/selector"
CONFLICT = "pod affinity terms conflict"


class NodeAffinity:
    """Source: kube-scheduler v1.36 NodeAffinity. Checks first whether the pod names nodes at all (PreFilter)."""

    name = "NodeAffinity"

    def restriction(self, pod: PodClass) -> tuple[str, ...] | Refusal | None:
        """Return the only nodes that the pod names (PreFilter), a rejection for all nodes, or None."""
        names = pod.selection.names if pod.selection else None
        if names == ():
            return Refusal(plugin=self.name, reasons=(CONFLICT,), phase="PreFilter")
        return names

    def everywhere(self, pod: PodClass, rows: Rows) -> Refusal | None:  # noqa: ARG002  # the protocol's form
        restriction = self.restriction(pod)
        return restriction if isinstance(restriction, Refusal) else None

    def passes(self, pod: PodClass, rows: Rows) -> BoolVector | None:
        selection = pod.selection
        if selection is None:
            return None
        if selection.names is not None:
            return _passes_named(selection, rows)
        passes = np.ones(rows.n, np.bool_)
        for key, value in selection.selector:
            label = rows.label(key)
            passes &= label.codes[: rows.n] == label.code_of.get(value, -1)
        if selection.terms is not None:
            matched = np.zeros(rows.n, np.bool_)
            for term in selection.terms:
                matched |= term_holds(term, rows)
            passes &= matched
        return passes

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        selection = pod.selection
        node = rows.nodes[row]
        if selection is None or selection.holds(labels_of(node), node.metadata.name):
            return None
        detail = "required node affinity"
        for key, value in selection.selector:
            found = labels_of(node).get(key)
            if found != value:
                detail = f"{key}={value} is asked for, the node has " + (
                    "no such label" if found is None else f"{found!r}"
                )
                break
        return Refusal(plugin=self.name, reasons=(REASON,), detail=detail)

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        passes = self.passes(pod, rows)
        return [] if passes is None else [(REASON, ~passes)]


def _passes_named(selection: NodeSelection, rows: Rows) -> BoolVector:
    """Only the named nodes are looked at: pods pinned to a node stay cheap however many nodes there are."""
    passes = np.zeros(rows.n, np.bool_)
    for name in selection.names or ():
        row = rows.row_of.get(name)
        if row is not None:
            passes[row] = selection.holds(labels_of(rows.nodes[row]), name)
    return passes


def term_holds(term: Term, rows: Rows) -> BoolVector:
    """Return whether each node meets every requirement of a term; a new vector."""
    holds = np.ones(rows.n, np.bool_)
    for requirement in term.labels:
        holds &= _label_holds(requirement, rows)
    for name in term.names:
        # A field other than metadata.name is empty text on every node.
        default = name.holds("") if not name.on_name else name.negated
        named = np.full(rows.n, default, np.bool_)
        row = rows.row_of.get(name.value) if name.on_name else None
        if row is not None:
            named[row] = not name.negated
        holds &= named
    return holds


def _label_holds(requirement: Requirement, rows: Rows) -> BoolVector:
    """Evaluate each distinct value once, then spreads the verdicts over the nodes."""
    label = rows.label(requirement.key)
    verdicts = np.zeros(len(label.code_of) + 1, np.bool_)
    if requirement.operator in {"Gt", "Lt"}:
        for value, code in label.code_of.items():
            verdicts[code] = requirement.holds(value)
    else:
        # The listed values are looked up: a key like the hostname has a value per node.
        listed = requirement.operator in {"In", "DoesNotExist"}
        verdicts[1:] = requirement.operator in {"NotIn", "Exists"}
        verdicts[0] = requirement.operator in {"NotIn", "DoesNotExist"}
        for value in requirement.values:
            code = label.code_of.get(value, 0)
            if code:
                verdicts[code] = listed
    return verdicts.take(label.codes[: rows.n])
