"""Facts that every implementation of the Cluster port must keep, one async function each.

No test framework is needed: run ``await case(cluster, clock)`` for each of ``CASES``; a case that
does not hold raises AssertionError or an ApiError. The docstring of a case is the fact. A case
works in a namespace of its own and assumes nothing of what else the cluster holds, so the battery
can be run against a cluster in use; what controllers do there is waited for.
"""

from __future__ import annotations

from kubetide.testing.cluster_cases import (
    deleting,
    discovery,
    namespaces,
    objects,
    owners,
    pods,
    scale,
    selecting,
    watches,
    writing,
)
from kubetide.testing.cluster_cases.ground import Case

CASES: list[Case] = [
    case
    for module in (objects, writing, selecting, watches, deleting, owners, namespaces, pods, scale, discovery)
    for case in module.CASES
]
"""All cases; their ``__name__`` is unique."""

__all__ = ["CASES", "Case"]
