"""What each new node teaches: its machine's amounts, its startup time, the taints it lost, the template's accuracy.

Looking at the same node again changes nothing, so that a replay that begins anywhere learns the same.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.facts.amounts import amount_text
from kubetide.nodes.facts.machine_amounts import amount_error
from kubetide.nodes.facts.nodes import CONDITION_TAINTS, OWN_TAINTS
from kubetide.nodes.memory import GroupLearned, Join, Joining, Learned, TimeTaken
from kubetide.nodes.reasons import reason
from kubetide.nodes.registry.arrivals import recent_times
from kubetide.nodes.registry.failures import max_startup_time
from kubetide.nodes.state import State
from kubetide.nodes.templates.amounts import (
    IMAGE_LABELS,
    INSTANCE_TYPE_LABELS,
    MOST_IMAGES,
    MOST_TYPES,
    seen_on,
    with_amounts,
)
from kubetide.nodes.templates.build import expected, learn_templates
from kubetide.objects.base import Quantities
from kubetide.objects.node import Node, node_condition
from kubetide.units.quantity import Quantity, milli, whole
from kubetide.units.time import Duration, Instant, after, between, format_duration, hours, instant_of

_YOUNG = hours(1)
"""A node that is older and not well has not just joined."""
_COMPARED = ("cpu", "memory", "pods")
_PASSING = CONDITION_TAINTS | OWN_TAINTS
"""Taints that come and go on any node; templates never have them."""


def learn(state: State, now: Instant) -> tuple[Reason, ...]:
    """Learn from nodes that are new, changed or became ready; return the reasons to record."""
    return (*_look_at_nodes(state, now), *learn_templates(state, now))


def _look_at_nodes(state: State, now: Instant) -> list[Reason]:
    memory = state.memory
    for name in [name for name in memory.joining if name not in state.nodes]:
        del memory.joining[name]
    if not state.unlooked:
        return []
    found: list[Reason] = []
    later: dict[str, None] = {}
    well: list[tuple[Node, str]] = []
    for name in sorted(state.unlooked):
        node = state.nodes.get(name)
        if node is None:
            continue
        health = state.health(name)
        if health.is_good_template(now):
            well.append((node, state.group_of(name) or ""))
            continue
        _note_joining(state, node, now)
        if health.stable_after is not None or name in memory.joining:
            later[name] = None
    # All are compared with what was promised before any of them was seen.
    for node, group in well:
        joining = memory.joining.pop(node.metadata.name, None)
        if joining is None or not group:
            continue
        if not joining.joined:
            found += _note_join(state, node, group, now)
        if not joining.joined or _is_starting(state, node, group, now):
            _note_lost_taints(state, node, group, joining)
            if _may_lose_more(state, node, group):
                memory.joining[node.metadata.name] = replace(joining, joined=True)
    # Most nodes of a group are alike, and share their amounts as they were read.
    alike: dict[tuple[object, ...], tuple[Node, str]] = {}
    for node, group in well:
        alike.setdefault(_likeness(node, group), (node, group))
    for node, group in alike.values():
        _note_amounts(state, node, group, now)
    state.unlooked = later
    return found


def _likeness(node: Node, group_id: str) -> tuple[object, ...]:
    labels = node.metadata.labels or {}
    image = tuple(labels.get(key) for key in (*IMAGE_LABELS, *INSTANCE_TYPE_LABELS))
    return group_id, id(node.status.capacity), id(node.status.allocatable), image


def _note_joining(state: State, node: Node, now: Instant) -> None:
    created, name = instant_of(node.metadata.creation_timestamp), node.metadata.name
    known = state.memory.joining.get(name)
    if known is None and (created is None or after(created, _YOUNG) < now):
        return
    had = known.taints if known is not None else ()
    taints = tuple(sorted({*had, *(taint.key for taint in node.spec.taints or ())}))
    if known is None or taints != had:
        state.memory.joining[name] = Joining(taints)


def _is_starting(state: State, node: Node, group_id: str, now: Instant) -> bool:
    """Return whether a taint that has just gone belongs to the node's start-up; later it may be a person's work."""
    created = instant_of(node.metadata.creation_timestamp)
    limit = max_startup_time(state.groups[group_id], state.settings)
    return created is not None and now <= after(created, limit)


def _note_lost_taints(state: State, node: Node, group_id: str, joining: Joining) -> None:
    former = state.memory.learned.groups.get(group_id, GroupLearned())
    present = {taint.key for taint in node.spec.taints or ()}
    lost = {key for key in joining.taints if key not in present and key not in _PASSING}
    if not lost.issubset(former.startup_taints):
        taints = tuple(sorted({*former.startup_taints, *lost}))
        _put_group(state, group_id, replace(former, startup_taints=taints))


def _may_lose_more(state: State, node: Node, group_id: str) -> bool:
    """Return whether the node has a taint that the cloud's template names: what is lost of these is left out of it."""
    said = state.groups[group_id].template
    named = {taint.key for taint in said.node.spec.taints or ()} if said is not None else set()
    return any(taint.key in named for taint in node.spec.taints or ())


def _note_join(state: State, node: Node, group_id: str, now: Instant) -> list[Reason]:
    learned = state.memory.learned
    former = learned.groups.get(group_id, GroupLearned())
    ready, created = node_condition(node, "Ready"), instant_of(node.metadata.creation_timestamp)
    since = instant_of(ready.last_transition_time) if ready is not None else None
    took = Duration(0)
    if since is not None and created is not None:
        took = Duration(max(0, between(created, since)))
    promise = expected(state, state.groups[group_id])
    promised = {} if promise is None else _compared(promise.node.status.allocatable)
    real = _compared(node.status.allocatable)
    join = Join(
        node=node.metadata.name,
        at=now,
        took=took,
        source="" if promise is None else promise.source,
        promised=promised,
        real=real,
        errors={name: _error(promised[name], real.get(name, "0")) for name in promised},
    )
    taught = replace(
        former,
        joins=former.joins + 1,
        starts=recent_times((*former.starts, TimeTaken(now, took))),
        last_join=join,
    )
    _put_group(state, group_id, taught)
    return [
        reason("NodeJoined", group_id, node=join.node, took=format_duration(took)),
        *(
            reason(
                "TemplateMissed",
                group_id,
                node=join.node,
                resource=name,
                seen=text_of(name, real.get(name, "0")),
                promised=text_of(name, promised[name]),
                source=join.source,
            )
            for name, error in join.errors.items()
            if error
        ),
    ]


def text_of(resource: str, value: str | float) -> str:
    """Return an amount as people write it."""
    return amount_text(resource, milli(value) if resource == "cpu" else whole(value))


def _compared(amounts: Quantities | None) -> Quantities:
    given = amounts or {}
    return {name: given[name] for name in _COMPARED if name in given and not amount_error(name, given[name])}


def _error(promised: str | float, real: str | float) -> float:
    one, other = Quantity.parse(promised), Quantity.parse(real)
    if one.is_zero():
        return 0.0 if other.is_zero() else 1.0
    return round(float(other - one) / float(one), 6)


def _note_amounts(state: State, node: Node, group_id: str, now: Instant) -> None:
    """Note what the machine has, for its group and for its type."""
    learned, seen = state.memory.learned, seen_on(node, group_id, now)
    if seen.instance_type and _has_place(state, seen.instance_type):
        types = with_amounts(learned.types.get(seen.instance_type, ()), seen, MOST_IMAGES)
        if types is not None:
            learned = replace(learned, types={**learned.types, seen.instance_type: types})
            _put(state, learned)
    if group_id:
        taught = state.memory.learned.groups.get(group_id, GroupLearned())
        amounts = with_amounts(taught.amounts, seen, MOST_IMAGES)
        if amounts is not None:
            _put_group(state, group_id, replace(taught, amounts=amounts))


def _has_place(state: State, kind: str) -> bool:
    """Return whether one more type may be remembered; where there are too many the ones without a node are forgotten."""
    types = state.memory.learned.types
    if kind in types or len(types) < MOST_TYPES:
        return True
    there = {seen_on(node, "", Instant(0)).instance_type for node in state.nodes.values()}
    left = {name: entries for name, entries in types.items() if name in there}
    _put(state, replace(state.memory.learned, types=left))
    return len(left) < MOST_TYPES


def _put_group(state: State, group_id: str, taught: GroupLearned) -> None:
    learned = state.memory.learned
    groups = {**learned.groups, group_id: taught}
    if len(groups) > len(state.groups) + MOST_TYPES:
        groups = {name: one for name, one in groups.items() if name in state.groups}
    _put(state, replace(learned, groups=groups))


def _put(state: State, learned: Learned) -> None:
    state.memory.learned = learned
    state.memory.learned_changed = True
