"""Which nodes a pod asks for: its selector and its required affinity to nodes."""

from __future__ import annotations

from tests.nodes.reference.selectors import holds
from tests.nodes.reference.world import Json


def admits(spec: Json, node: Json) -> bool:
    """Return whether the spec of a pod lets it run on the node, by the node's labels and name."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(name) != value for name, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_term_holds(one, node) for one in required.get("nodeSelectorTerms") or ())


def _term_holds(term: Json, node: Json) -> bool:
    """All parts of a term must hold; one without parts holds nowhere."""
    labels = node["metadata"].get("labels") or {}
    parts = term.get("matchExpressions") or ()
    return bool(parts) and all(holds(one, labels) for one in parts)
