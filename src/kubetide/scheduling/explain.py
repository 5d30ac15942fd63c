"""Why nodes refuse a pod: plugin by plugin, only when asked.

Source: kube-scheduler v1.36: PreFilter of all plugins first, then the filters in order.
"""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.filters.registry import FILTERS, NODE_AFFINITY
from kubetide.scheduling.pod_class import PodClass
from kubetide.scheduling.refusal import ERROR, Refusal
from kubetide.scheduling.rows import Rows

# What kube-scheduler counts for nodes that PreFilter left out.
_LEFT_OUT = f"node(s) didn't satisfy plugin(s) [{NODE_AFFINITY.name}]"


def refused_everywhere(pod_class: PodClass) -> Refusal | None:
    """Gives the refusal that holds for all nodes alike, or None."""
    if pod_class.error:
        return Refusal(
            plugin="NodeResourcesFit",
            reasons=(pod_class.error,),
            code=ERROR,
            phase="PreFilter",
            detail=pod_class.error,
        )
    restriction = NODE_AFFINITY.restriction(pod_class)
    return restriction if isinstance(restriction, Refusal) else None


def first_refusal(pod_class: PodClass, rows: Rows, row: int) -> Refusal | None:
    """Says why the node of one row refuses the class, or None when it does not."""
    everywhere = refused_everywhere(pod_class)
    if everywhere is not None:
        return everywhere
    names = _named(pod_class)
    if names is not None and rows.names[row] not in names:
        detail = f"only {', '.join(names[:3])}{', ...' if len(names) > 3 else ''} may be used"
        return Refusal(plugin=NODE_AFFINITY.name, code="", phase="PreFilterResult", detail=detail)
    for plugin in FILTERS:
        refusal = plugin.refuse(pod_class, rows, row)
        if refusal is not None:
            return refusal
    return None


def count_refusals(pod_class: PodClass, rows: Rows) -> dict[str, int]:
    """Counts the reasons of the first failing plugin of each node, in the plugins' order."""
    everywhere = refused_everywhere(pod_class)
    if everywhere is not None:
        return dict.fromkeys(everywhere.reasons, rows.n) if rows.n else {}
    counts: dict[str, int] = {}
    left = np.ones(rows.n, np.bool_)
    names = _named(pod_class)
    if names is not None:
        left[:] = False
        left[[rows.row_of[name] for name in names if name in rows.row_of]] = True
        _count(counts, _LEFT_OUT, rows.n - int(left.sum()))
    for plugin in FILTERS:
        failed = np.zeros(rows.n, np.bool_)
        for reason, mask in plugin.failures(pod_class, rows):
            _count(counts, reason, int(np.count_nonzero(mask & left)))
            failed |= mask
        left &= ~failed
    return counts


def _named(pod_class: PodClass) -> tuple[str, ...] | None:
    restriction = NODE_AFFINITY.restriction(pod_class)
    return restriction if isinstance(restriction, tuple) else None


def _count(counts: dict[str, int], reason: str, number: int) -> None:
    if number:
        counts[reason] = counts.get(reason, 0) + number
