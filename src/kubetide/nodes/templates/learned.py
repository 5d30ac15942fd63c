"""Cloud templates corrected by learned facts: which source is trusted, and what holds for all offers of the next node.

In order of trust: what nodes of this very group have shown, what nodes of the instance type have shown
anywhere, what the cloud says. Labels and taints are the cloud's word in any case: a group decides them.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from kubetide.nodes.memory import GroupLearned, SeenAmounts, SeenTemplate
from kubetide.nodes.state import State
from kubetide.nodes.templates.amounts import (
    MACHINE_AMOUNTS,
    corrected,
    instance_type,
    least_of,
    of_image,
    without_amounts,
)
from kubetide.objects.base import Quantities
from kubetide.objects.node import Node, Taint
from kubetide.ports.cloud import NodeGroup, Offering
from kubetide.units.quantity import Quantity, quantity_error
from kubetide.units.time import format_rfc3339

_NOTHING = GroupLearned()


def seen_template(state: State, group: NodeGroup) -> SeenTemplate | None:
    """Return how the group's nodes looked; None where none was seen, or the next one is another machine.

    Without a live node the cloud knows better where it names an instance type that the last node did not have.
    """
    seen = state.memory.templates.get(group.id)
    if seen is None or seen.live or group.template is None or not state.settings.templates_by_instance_type:
        return seen
    then, next_one = instance_type(seen.node), instance_type(group.template.node)
    is_other = bool(then and next_one) and then not in {next_one, *offered_types(group)}
    return None if is_other else seen


def template_inputs(state: State, group: NodeGroup) -> tuple[object, ...]:
    """Return all input of the group's template besides settings, facts and DaemonSets."""
    seen = seen_template(state, group)
    learned = state.memory.learned
    said = group.template if seen is None or state.settings.provider == "aws" else None
    if not state.settings.templates_by_instance_type:
        return seen, said
    types = tuple(learned.types.get(name) for name in offered_types(group))
    if seen is not None:
        return seen, said, types
    own = "" if group.template is None else instance_type(group.template.node)
    entries = learned.types.get(own, ())
    sources = tuple(_said_of(state, entry.from_group) for entry in entries)
    return seen, group.template, types, entries, sources, learned.groups.get(group.id)


def corrected_by_machines(
    state: State, group: NodeGroup, node: Node, said: str
) -> tuple[Node, Literal["group", "type", "cloud"], str]:
    """Return the cloud template's node as machines have shown it, its source, and that in words.

    ``said`` is who says so for the cloud.
    """
    cloud = f"cloud: {said}"
    if not state.settings.templates_by_instance_type:
        return node, "cloud", cloud
    taught = state.memory.learned.groups.get(group.id, _NOTHING)
    node = _without_taints(node, taught.startup_taints)
    kind, labels = instance_type(node), node.metadata.labels or {}
    own = of_image((one for one in taught.amounts if one.instance_type == kind), labels)
    if own is not None:
        words = f"learned by group: node {own.from_node} at {format_rfc3339(own.seen_at)}"
        return corrected(node, own, own=True), "group", f"{words}; labels and taints by {cloud}"
    found = _of_type(state, kind, node)
    differ = set() if found is None else _said_otherwise(node, _said_of(state, found.from_group))
    # Where the machines differ, the instance type of the labels is not the machine, and neither group teaches the other.
    if found is None or not differ.isdisjoint(MACHINE_AMOUNTS):
        return node, "cloud", cloud
    where = f" of group {found.from_group}" if found.from_group else ""
    words = (
        f"learned by instance type {kind}: node {found.from_node}{where} at {format_rfc3339(found.seen_at)}"
    )
    return corrected(node, without_amounts(found, differ)), "type", f"{words}; labels and taints by {cloud}"


def over_types(state: State, group: NodeGroup, node: Node) -> tuple[Node, str]:
    """Return the node with the minimum over the types that the group's next node may have, and a text for it.

    Types of which no machine was ever seen do not count: nobody can say what they have.
    """
    types = offered_types(group)
    if len(types) < 2 or not state.settings.templates_by_instance_type:
        return node, ""
    kind = instance_type(node)
    others = {
        name: corrected(node, found)
        for name in types
        if name != kind and (found := _of_type(state, name, node)) is not None
    }
    if not others:
        return node, ""
    return least_of(node, others.values()), f"; the least of {', '.join(sorted({kind, *others} - {''}))}"


def offered_types(group: NodeGroup) -> tuple[str, ...]:
    """Return the instance types that the group's next node may have, in order; none if the cloud does not say."""
    return tuple(sorted({one.instance_type for one in _open(group)} - {""}))


def offered_zones(group: NodeGroup) -> tuple[str, ...]:
    """Return the zones that the group's next node may be in, in order; none if the cloud does not say."""
    return tuple(sorted({one.zone for one in _open(group)} - {""}))


def _open(group: NodeGroup) -> list[Offering]:
    return [one for one in group.offerings or () if one.share != 0 and one.count != 0]


def _of_type(state: State, kind: str, node: Node) -> SeenAmounts | None:
    return of_image(state.memory.learned.types.get(kind, ()), node.metadata.labels or {}) if kind else None


def _said_of(state: State, group_id: str) -> Quantities | None:
    """Return the capacity that the cloud says a group's nodes have; None where it says nothing, or the group is gone."""
    group = state.groups.get(group_id)
    return None if group is None or group.template is None else group.template.node.status.capacity


def _said_otherwise(node: Node, said: Quantities | None) -> set[str]:
    """Return the amounts that the cloud states for the node's group and, with another value, for the group that taught.

    Disks and accelerators are settings of a group. An amount that is stated for one group only is not among them.
    """
    mine = node.status.capacity or {}
    return {name for name in mine if said is not None and name in said and not _equal(mine[name], said[name])}


def _equal(one: str | float, other: str | float) -> bool:
    if one == other:
        return True
    readable = quantity_error(one) is None and quantity_error(other) is None
    return readable and Quantity.parse(one) == Quantity.parse(other)


def _without_taints(node: Node, keys: tuple[str, ...]) -> Node:
    """Return the node without taints that nodes of the group have lost once they were well."""
    if not any(taint.key in keys for taint in node.spec.taints or ()):
        return node
    left: tuple[Taint, ...] = tuple(taint for taint in node.spec.taints or () if taint.key not in keys)
    return replace(node, spec=replace(node.spec, taints=left or None))
