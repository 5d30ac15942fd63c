"""Why nodes reject a pod: plugin by plugin, on demand.

Source: kube-scheduler v1.36 and v1.37: PreFilter of all plugins first, then the filters in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.filters.base import Filter, UnresolvableFilter, WholesaleFilter
from kubetide.scheduling.filters.in_use import filters_in_use
from kubetide.scheduling.filters.registry import (
    NODE_AFFINITY,
    NODE_NAME,
    NODE_RESOURCES_FIT,
)
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.refusal import UNSCHEDULABLE, Refusal
from kubetide.units.vectors import BoolVector, Int64Vector


class Diagnosis(NamedTuple):
    """What all nodes say of a class.

    Attributes:
        reasons: Counted reasons of the first failing plugin of each node, in the plugins' order.
        resolvable: (rows,), True where the removal of pods could help: the refusal's code is ``UNSCHEDULABLE``.
    """

    reasons: dict[str, int]
    resolvable: BoolVector


class _Named(NamedTuple):
    """The nodes that PreFilter leaves, and the plugins that name them."""

    names: tuple[str, ...]
    plugins: str


def refused_everywhere(pod_class: PodClass, rows: Rows) -> Refusal | None:
    """Return the rejection for all nodes, or None."""
    for plugin in filters_in_use().wholesale:
        refusal = plugin.everywhere(pod_class, rows)
        if refusal is not None:
            return refusal
    named = _named(pod_class, rows)
    if named is not None and not named.names:
        reason = f"node(s) didn't satisfy plugin(s) [{named.plugins}] simultaneously"
        return Refusal(plugin=NODE_NAME.name, reasons=(reason,), phase="PreFilter")
    return None


def first_refusal(pod_class: PodClass, rows: Rows, row: int) -> Refusal | None:
    """Return why the node of one row rejects the class, or None if it does not."""
    return first_refusals(pod_class, rows, (row,)).get(row)


def first_refusals(pod_class: PodClass, rows: Rows, asked: Sequence[int]) -> dict[int, Refusal]:
    """Return, by row, why each of the asked nodes rejects the class; nodes that do not are left out. Equal answers are one object."""
    everywhere = refused_everywhere(pod_class, rows)
    if everywhere is not None:
        return dict.fromkeys(asked, everywhere)
    found: dict[int, Refusal] = {}
    named = _named(pod_class, rows)
    if named is not None:
        names, plugin_name = named.names, named.plugins.partition(" ")[0]
        detail = f"only {', '.join(names[:3])}{', ...' if len(names) > 3 else ''} may be used"
        left_out = Refusal(plugin=plugin_name, code="", phase="PreFilterResult", detail=detail)
        found = {row: left_out for row in asked if rows.names[row] not in names}
    plugins = filters_in_use().every
    same: dict[Refusal, Refusal] = {}
    for row in asked:
        if row in found:
            continue
        for plugin in plugins:
            refusal = plugin.refuse(pod_class, rows, row)
            if refusal is not None:
                found[row] = same.setdefault(refusal, refusal)
                break
    return found


def amounts_refusal(pod_class: PodClass, rows: Rows, row: int) -> Refusal | None:
    """Return the short amounts on the node of one row, or None: the rejection of NodeResourcesFit."""
    return NODE_RESOURCES_FIT.refuse(pod_class, rows, row)


def diagnose(pod_class: PodClass, rows: Rows, among: Int64Vector | None = None) -> Diagnosis:
    """Return the counted reasons of nodes, and on which of them the removal of pods could help.

    Args:
        among: The rows that are asked; all of them without it.
    """
    asked = rows.n if among is None else len(among)
    everywhere = refused_everywhere(pod_class, rows)
    if everywhere is not None:
        reasons = dict.fromkeys(everywhere.reasons, asked) if asked else {}
        return Diagnosis(reasons, np.full(rows.n, everywhere.code == UNSCHEDULABLE, np.bool_))
    counts: dict[str, int] = {}
    left, resolvable = np.zeros(rows.n, np.bool_), np.zeros(rows.n, np.bool_)
    left[slice(None) if among is None else among] = True
    named = _named(pod_class, rows)
    if named is not None:
        is_named = np.zeros(rows.n, np.bool_)
        is_named[[rows.row_of[name] for name in named.names if name in rows.row_of]] = True
        left &= is_named
        # What kube-scheduler counts for nodes that PreFilter left out.
        left_out = f"node(s) didn't satisfy plugin(s) [{named.plugins}]"
        _count(counts, left_out, asked - int(left.sum()))
    for plugin in filters_in_use().every:
        if not left.any():
            break
        found = list(plugin.failures(pod_class, rows))
        if not found:
            continue
        failed = np.zeros(rows.n, np.bool_)
        for reason, mask in found:
            of_reason = mask & left
            _count(counts, reason, int(np.count_nonzero(of_reason)))
            _note_resolvable(plugin, pod_class, rows, of_reason & ~failed, resolvable)
            failed |= mask
        left &= ~failed
    return Diagnosis(counts, resolvable)


def _note_resolvable(
    plugin: Filter, pod_class: PodClass, rows: Rows, refused: BoolVector, resolvable: BoolVector
) -> None:
    """Note on which of the nodes that a plugin refuses for one reason the removal of pods could help."""
    at = np.flatnonzero(refused)
    if not len(at):
        return
    if isinstance(plugin, UnresolvableFilter):
        resolvable[at] = ~plugin.unresolvable(pod_class, rows)[at]
        return
    # A reason has the same code on every node.
    refusal = plugin.refuse(pod_class, rows, int(at[0]))
    resolvable[at] = refusal is not None and refusal.code == UNSCHEDULABLE


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


def _named(pod_class: PodClass, rows: Rows) -> _Named | None:
    restriction = NODE_AFFINITY.restriction(pod_class)
    names = restriction if isinstance(restriction, tuple) else None
    only = NODE_NAME.only_node(pod_class, rows)
    if not only:
        return None if names is None else _Named(names, NODE_AFFINITY.name)
    if names is None:
        return _Named((only,), NODE_NAME.name)
    return _Named(tuple(name for name in names if name == only), f"{NODE_AFFINITY.name} {NODE_NAME.name}")


def _count(counts: dict[str, int], reason: str, number: int) -> None:
    if number:
        counts[reason] = counts.get(reason, 0) + number
