"""The explanation of a node group: what its nodes look like, where that comes from, and what limits its growth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from kubetide.nodes.capacity.quotas import quotas_of
from kubetide.nodes.explain.balance_lines import balance_lines
from kubetide.nodes.explain.cluster_health import unhealthy_text
from kubetide.nodes.explain.created_groups import created_lines
from kubetide.nodes.explain.learned_lines import learned_lines
from kubetide.nodes.explain.unready_nodes import unready_text
from kubetide.nodes.explain.waiting.awaited_node import upcoming_text
from kubetide.nodes.facts.causes import with_cause
from kubetide.nodes.facts.zones import zone_of
from kubetide.nodes.records.export import without_learned_facts
from kubetide.nodes.registry.backoff import is_backed_off
from kubetide.nodes.registry.cluster_state import observe, upcoming_nodes
from kubetide.nodes.registry.notices import group_notices
from kubetide.nodes.registry.stock_outs import is_out_of_stock, out_of_stock_texts
from kubetide.nodes.scale_up.increase.limits import CLUSTER_WIDE_FLAGS, Headroom
from kubetide.nodes.state import State
from kubetide.nodes.templates.build import template_of
from kubetide.nodes.templates.learned import seen_template
from kubetide.nodes.templates.learning import learn
from kubetide.nodes.templates.template import Template
from kubetide.units.lists import counted, listed
from kubetide.units.quantity import Quantity
from kubetide.units.time import Instant, format_rfc3339

_MOST_NODES: Final = 12
"""Nodes that are named."""
_MOST_UNREADY: Final = 3
"""Nodes that are named of those that are not ready."""


class GroupExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What a group is, what its nodes look like, where that comes from, and what limits its growth."""

    group: str
    min_size: int
    max_size: int
    target_size: int
    ready: int
    upcoming: int
    unready: tuple[str, ...]
    """Its nodes that are not ready, each with since when and why; not those that are on the way."""
    arrival: str
    """When the upcoming nodes are expected, and when they were asked for; empty if there are none."""
    nodes: str
    """The names of its nodes, the first few; empty for none."""
    zones: str
    """The zones of its nodes, with the count of each where there are several; of the template while it has no node."""
    price_per_hour: float | None
    """What a node costs; None where it is not known."""
    template: str
    allocatable: dict[str, str]
    differs: tuple[str, ...]
    """Where a live node differs from what the cloud says."""
    learned: tuple[str, ...]
    """What nodes have taught: start-up taints, how long they take, how right the template was at the last join."""
    notices: tuple[str, ...]
    """What is odd about the group: its spread, malformed settings, a view that is old; which of its offers are out of stock."""
    obstacles: tuple[str, ...]
    created: tuple[str, ...] = ()
    """That the loop created the group, and why; when it goes again."""
    balance: tuple[str, ...] = ()
    """Which groups it is balanced with, and why not with others; nothing where groups are not balanced."""


def explain_group(state: State, group_id: str, now: Instant) -> GroupExplanation:
    """Explain one group. Raises KeyError for an unknown group."""
    copy = without_learned_facts(state)
    cluster = observe(copy, now)
    view = cluster.groups[group_id]
    learn(copy, now)
    group = copy.groups[group_id]
    template = template_of(copy, group, copy.nodes_by_group()[group_id])
    obstacles = [halt.rstrip(".")] if (halt := unhealthy_text(copy, cluster)) else []
    if group.target_size >= group.max_size:
        obstacles.append(f"it is at its maximum of {group.max_size}")
    entry = copy.memory.backoff.get(group_id)
    if entry is not None and is_backed_off(entry, now):
        obstacles.append(
            f"it is in backoff until {format_rfc3339(entry.until)}: {with_cause(entry.cause, entry.error_message)}"
        )
    shortages = out_of_stock_texts(copy, group, now)
    is_out = is_out_of_stock(copy, group, now)
    obstacles += shortages if is_out else []
    if template is not None:
        obstacles += _limits(copy, template, now)
    if not view.healthy:
        obstacles.append("too many of its nodes are missing or not ready")
    if template is None:
        why = group.template_error or "the cloud gives no template"
        obstacles.append(f"nobody can say what its nodes look like: {why}, and none was ever seen")
    return GroupExplanation(
        group=group_id,
        min_size=group.min_size,
        max_size=group.max_size,
        target_size=group.target_size,
        ready=view.counts.ready,
        upcoming=(upcoming := upcoming_nodes(copy, view, now)),
        unready=_unready(copy, group_id, view.counts.not_started),
        arrival=upcoming_text(copy, view, now) if upcoming else "",
        nodes=listed(sorted(copy.nodes_by_group()[group_id]), _MOST_NODES),
        zones=_zones(copy, group_id, template),
        price_per_hour=group.price_per_hour,
        template="" if template is None else template.source,
        allocatable={} if template is None else _texts(template),
        differs=_differences(copy, group_id),
        learned=learned_lines(copy, group_id),
        notices=(*group_notices(group), *(() if is_out else shortages)),
        obstacles=tuple(obstacles),
        created=created_lines(state, group_id),
        balance=balance_lines(copy, group_id),
    )


def _zones(state: State, group_id: str, template: Template | None) -> str:
    """Return the zones of a group's nodes, or where it has none that of its template; empty where no label names one."""
    nodes = [state.nodes[name] for name in state.nodes_by_group()[group_id]]
    if not nodes:
        return "" if template is None else zone_of(template.node)
    counts = Counter(filter(None, map(zone_of, nodes)))
    if len(counts) < 2:
        return "".join(counts)
    return ", ".join(f"{zone} ({counted(count, 'node')})" for zone, count in sorted(counts.items()))


def _unready(state: State, group_id: str, starting: Sequence[str]) -> tuple[str, ...]:
    """Return the nodes of a group that are not ready and not ``starting``, the first few with since when and why."""
    texts = {
        name: text
        for name in state.nodes_by_group()[group_id]
        if name not in starting and not state.is_leaving(name) and (text := unready_text(state, name))
    }
    said = [f"node {name} {text}" for name, text in texts.items()]
    more = len(said) - _MOST_UNREADY
    return (*said[:_MOST_UNREADY], f"{more} more") if more > 0 else tuple(said)


def _limits(state: State, template: Template, now: Instant) -> list[str]:
    """Return the limits over all groups that one node more would pass."""
    nodes, settings = list(state.nodes.values()), state.settings
    for group_id, view in observe(state, now).groups.items():
        if count := upcoming_nodes(state, view, now):
            known = template_of(state, state.groups[group_id], state.nodes_by_group()[group_id])
            nodes += [known.node] * count if known is not None else []
    found = []
    if settings.max_nodes_total and len(nodes) >= settings.max_nodes_total:
        there = (
            "1 node of all groups reaches" if len(nodes) == 1 else f"{len(nodes)} nodes of all groups reach"
        )
        found.append(f"{there} --max-nodes-total={settings.max_nodes_total}")
    headroom = Headroom(settings, nodes, quotas_of(state))
    for name in headroom.exceeded_by(template.capacity):
        flag, unit = CLUSTER_WIDE_FLAGS.get(name, ("gpu-total", 1))
        used, need = headroom.used[name], template.capacity[name]
        most = (used + headroom.left[name]) // unit
        what = "GiB of memory" if name == "memory" else name
        found.append(
            f"all nodes have {used // unit} of at most {most} {what} by --{flag}, and one more needs {-(-need // unit)}"
        )
    for quota, resources in headroom.exceeded_quotas(template.node):
        found.append(f"one node more would pass {quota} on {', '.join(resources)}")
    return found


def _texts(template: Template) -> dict[str, str]:
    found = {name: str(value) for name, value in (template.node.status.allocatable or {}).items()}
    for one in template.slices:
        name = f"devices of {one.spec.driver}"
        found[name] = str(int(found.get(name, "0")) + len(one.spec.devices or ()))
    return found


def _differences(state: State, group_id: str) -> tuple[str, ...]:
    group = state.groups[group_id]
    seen, said = seen_template(state, group), group.template
    if seen is None or said is None:
        return ()
    real, claimed = seen.node.status.allocatable or {}, said.node.status.allocatable or {}
    return tuple(
        f"{name}: {real.get(name, 0)} on node {seen.from_node}, {claimed[name]} by {said.source}"
        for name in sorted(claimed)
        if Quantity.parse(real.get(name, 0)) != Quantity.parse(claimed[name])
    )
