"""Groups whose new nodes are supposed to be other ones: with more labels, or of a larger machine."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from kubetide.nodes.facts.nodes import TEMPLATE_LABEL
from kubetide.nodes.state import State
from kubetide.nodes.templates.learned import seen_template
from kubetide.objects.node import Node


def suppose_labels(state: State, group_id: str, labels: dict[str, str]) -> None:
    """Give the group's template these labels."""
    _change_template(state, group_id, lambda node: _labelled(node, labels))


def suppose_machine(state: State, group_id: str, machine: Node) -> None:
    """Give the group's template the amounts of this machine."""
    _change_template(
        state,
        group_id,
        lambda node: replace(
            node,
            status=replace(
                node.status, capacity=machine.status.capacity, allocatable=machine.status.allocatable
            ),
        ),
    )


def _change_template(state: State, group_id: str, change: Callable[[Node], Node]) -> None:
    """Change what the group's nodes are taken to be, whoever vouches for it."""
    group = state.groups[group_id]
    seen = seen_template(state, group)
    if seen is not None:
        state.memory.templates[group_id] = replace(seen, node=change(seen.node))
        return
    if group.template is not None:
        changed = replace(group.template, node=change(group.template.node))
        state.set_groups({**state.groups, group_id: replace(group, template=changed)}.values())


def _labelled(node: Node, labels: dict[str, str]) -> Node:
    others = {name: value for name, value in (node.metadata.labels or {}).items() if name != TEMPLATE_LABEL}
    return replace(node, metadata=replace(node.metadata, labels={**others, **labels}))
