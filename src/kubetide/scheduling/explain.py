"""Why nodes reject a pod: plugin by plugin, on demand.

Source: kube-scheduler v1.36: PreFilter of all plugins first, then the filters in order.
"""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.filters.base import WholesaleFilter
from kubetide.scheduling.filters.in_use import filters_in_use
from kubetide.scheduling.filters.registry import (
    NODE_AFFINITY,
    NODE_RESOURCES_FIT,
)
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import Refusal

# What kube-scheduler counts for nodes that PreFilter left out.
_LEFT_OUT = f"node(s) didn't satisfy plugin(s) [{NODE_AFFINITY.name}]"


def refused_everywhere(pod_class: PodClass, rows: Rows) -> Refusal | None:
    """Return the rejection for all nodes, or None."""
    for plugin in filters_in_use().wholesale:
        refusal = plugin.everywhere(pod_class, rows)
        if refusal is not None:
            return refusal
    return None


def first_refusal(pod_class: PodClass, rows: Rows, row: int) -> Refusal | None:
    """Return why the node of one row rejects the class, or None if it does not."""
    everywhere = refused_everywhere(pod_class, rows)
    if everywhere is not None:
        return everywhere
    names = _named(pod_class)
    if names is not None and rows.names[row] not in names:
        detail = f"only {', '.join(names[:3])}{', ...' if len(names) > 3 else ''} may be used"
        return Refusal(plugin=NODE_AFFINITY.name, code="", phase="PreFilterResult", detail=detail)
    for plugin in filters_in_use().every:
        refusal = plugin.refuse(pod_class, rows, row)
        if refusal is not None:
            return refusal
    return None


def amounts_refusal(pod_class: PodClass, rows: Rows, row: int) -> Refusal | None:
    """Return the short amounts on the node of one row, or None: the rejection of NodeResourcesFit."""
    return NODE_RESOURCES_FIT.refuse(pod_class, rows, row)


def count_refusals(pod_class: PodClass, rows: Rows) -> dict[str, int]:
    """Return the counted reasons of the first failing plugin of each node, in the plugins' order."""
    everywhere = refused_everywhere(pod_class, rows)
    if everywhere is not None:
        return dict.fromkeys(everywhere.reasons, rows.n) if rows.n else {}
    counts: dict[str, int] = {}
    left = np.ones(rows.n, np.bool_)
    names = _named(pod_class)
    if names is not None:
        left[:] = False
        left[[rows.row_of[name] for name in names if name in rows.row_of]] = True
        _count(counts, _LEFT_OUT, rows.n - int(left.sum()))
    for plugin in filters_in_use().every:
        found = list(plugin.failures(pod_class, rows))
        if not found:
            continue
        failed = np.zeros(rows.n, np.bool_)
        for reason, mask in found:
            _count(counts, reason, int(np.count_nonzero(mask & left)))
            failed |= mask
        left &= ~failed
    return counts


def refusals_by_plugin(pod_class: PodClass, rows: Rows) -> dict[str, dict[str, Refusal]]:
    """Return every plugin's rejections independently of the others: plugin to node to rejection.

    A plugin that refuses all nodes alike says so under ``*``; plugins that refuse none are left out.
    """
    found: dict[str, dict[str, Refusal]] = {}
    for plugin in filters_in_use().every:
        if isinstance(plugin, WholesaleFilter):
            everywhere = plugin.everywhere(pod_class, rows)
            if everywhere is not None:
                found[plugin.name] = {"*": everywhere}
                continue
        refused = {name: plugin.refuse(pod_class, rows, row) for row, name in enumerate(rows.names)}
        by_node = {name: refusal for name, refusal in refused.items() if refusal is not None}
        if by_node:
            found[plugin.name] = by_node
    return found


def _named(pod_class: PodClass) -> tuple[str, ...] | None:
    restriction = NODE_AFFINITY.restriction(pod_class)
    return restriction if isinstance(restriction, tuple) else None


def _count(counts: dict[str, int], reason: str, number: int) -> None:
    if number:
        counts[reason] = counts.get(reason, 0) + number
