"""The subjects that ``kubetide explain`` can ask the node loop about: pods, nodes and node groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubetide.loop import Explainer
from kubetide.nodes.core import NodesCore
from kubetide.units.time import Instant, format_rfc3339

if TYPE_CHECKING:
    from kubetide.nodes.explain.answers import GroupVerdict, PodExplanation
    from kubetide.nodes.explain.group_answers import GroupExplanation
    from kubetide.nodes.explain.node_explanation import NodeExplanation

# What explains one kind is loaded when that kind is asked about: an answer comes sooner.
# ruff: noqa: PLC0415

BY_NODE = "nodes"
"""The view of a pod that says what each node answers, in place of each group."""


def _pod(core: NodesCore, subject: str, now: Instant, view: str) -> list[str]:
    from kubetide.nodes.explain.answers import explain_pod

    namespace, _, name = subject.partition("/")
    if view == BY_NODE:
        from kubetide.nodes.explain.waiting.node_fit import explain_on_nodes
        from kubetide.nodes.explain.waiting.node_lines import node_lines

        return node_lines(explain_on_nodes(core.state, (namespace, name)))
    return _pod_lines(explain_pod(core.state, (namespace, name), now))


def _request(core: NodesCore, subject: str, now: Instant, view: str) -> list[str]:
    from kubetide.nodes.explain.requests import explain_request

    del view
    namespace, _, name = subject.partition("/")
    return explain_request(core.state, (namespace, name), now)


def _buffer(core: NodesCore, subject: str, now: Instant, view: str) -> list[str]:
    from kubetide.nodes.explain.buffers import explain_buffer

    del view
    namespace, _, name = subject.partition("/")
    return explain_buffer(core.state, (namespace, name), now)


def _node(core: NodesCore, subject: str, now: Instant, view: str) -> list[str]:
    from kubetide.nodes.explain.answers import explain_node

    del view
    return _node_lines(explain_node(core.state, subject, now))


def _group(core: NodesCore, subject: str, now: Instant, view: str) -> list[str]:
    from kubetide.nodes.explain.group_answers import explain_group

    del view
    return _group_lines(explain_group(core.state, subject, now))


def _pod_lines(found: PodExplanation) -> list[str]:
    from kubetide.nodes.explain.created_groups import would_be_lines

    lines = [found.sentence]
    if found.room:
        lines.append(f"or {found.room}")
    if found.cost_summary:
        lines.append(found.cost_summary)
    for verdict in found.groups:
        if not verdict.would_be:
            lines += _verdict_lines(verdict)
    if found.no_candidates:
        lines.append(f"no group could be created: {found.no_candidates}")
    return lines + would_be_lines([one for one in found.groups if one.would_be])


def _verdict_lines(verdict: GroupVerdict) -> list[str]:
    lines = [f"group {verdict.group}: {'takes it' if verdict.takes else f'no, {verdict.why}'}"]
    if verdict.template:
        lines.append(f"  template: {verdict.template}")
    if verdict.way_out is not None:
        left = f": then {verdict.way_out.remaining}" if verdict.way_out.remaining else ""
        sure = "verified by deciding again" if verdict.way_out.verified else f"not enough alone{left}"
        if verdict.way_out.verified and verdict.way_out.needs_delivery:
            sure += ", if the cloud then delivers"
        lines.append(f"  would help: {verdict.way_out.text} ({sure})")
    return lines


def _node_lines(found: NodeExplanation) -> list[str]:
    lines = [found.sentence]
    if found.unready:
        lines.append(f"not ready: {found.unready}")
    lines.append(f"group: {found.group or 'none'}")
    if found.failed:
        lines.append(f"failed: {found.failed}")
    lines += found.running
    if found.utilization is not None:
        lines.append(f"utilization: {found.utilization:.3g}")
    if found.reserved:
        lines.append(f"reserved: for {found.reserved}, which count as used")
    if found.since is not None and found.status == "unneeded":
        lines.append(f"unneeded since {format_rfc3339(found.since)}")
    if found.way_out:
        lines.append(f"way out: {found.way_out}{_tried(found.then)}")
    if found.goes:
        lines.append(f"goes: {found.goes}")
    if found.filled:
        lines.append(f"filled: {found.filled}")
    if found.consolidated:
        lines.append(f"consolidation: {found.consolidated}")
    if found.price_per_hour is not None:
        may_go = found.status == "unneeded" or (
            found.then == "" and found.reason != "NodeGroupMinSizeReached"
        )
        saves = "saves" if may_go else "costs"
        lines.append(
            f"{saves}: {found.price_per_hour:.4g} an hour{' when it goes' if saves == 'saves' else ''}"
        )
    return lines


def _tried(then: str | None) -> str:
    """Return what deciding again has found of a way out; empty where it was not tried."""
    if then is None:
        return ""
    return f" (not enough alone: then {then})" if then else " (verified by deciding again)"


def _group_lines(found: GroupExplanation) -> list[str]:
    lines = [
        (
            f"size: {found.target_size} desired, {found.ready} ready, {found.upcoming} on the way, "
            f"bounds {found.min_size} to {found.max_size}"
        ),
    ]
    lines += [f"not ready: {text}" for text in found.unready]
    if found.arrival:
        lines.append(f"on the way: {found.arrival}")
    if found.nodes:
        lines.append(f"nodes: {found.nodes}")
    if found.zones:
        lines.append(f"zones: {found.zones}")
    if found.price_per_hour is not None:
        lines.append(_price_line(found.price_per_hour, found.target_size))
    lines.append(f"template: {found.template or 'none'}")
    if found.allocatable:
        lines.append("  " + ", ".join(f"{name} {value}" for name, value in sorted(found.allocatable.items())))
    lines += [f"  differs: {text}" for text in found.differs]
    lines += [f"  learned: {text}" for text in found.learned]
    lines += found.created
    lines += [f"balance: {text}" for text in found.balance]
    lines += [f"notice: {text}" for text in found.notices]
    lines += [f"cannot grow: {text}" for text in found.obstacles]
    return lines


def _price_line(price_per_hour: float, nodes: int) -> str:
    """Return what a node of a group costs, and what all do that are desired."""
    each = f"price: {price_per_hour:.4g} an hour for a node"
    return f"{each}, {price_per_hour * nodes:.4g} for all {nodes}" if nodes > 1 else each


EXPLAINERS = (
    Explainer(
        "pod",
        _pod,
        lambda core: [f"{namespace}/{name}" for namespace, name in core.state.pods],
        namespaced=True,
        views=(BY_NODE,),
    ),
    Explainer(
        "provisioningrequest",
        _request,
        lambda core: [
            f"{one.metadata.namespace}/{one.metadata.name}" for one in core.state.capacity.requests
        ],
        namespaced=True,
    ),
    Explainer(
        "capacitybuffer",
        _buffer,
        lambda core: [f"{one.metadata.namespace}/{one.metadata.name}" for one in core.state.capacity.buffers],
        namespaced=True,
    ),
    Explainer("node", _node, lambda core: list(core.state.nodes)),
    Explainer("nodegroup", _group, lambda core: list(core.state.groups)),
)
