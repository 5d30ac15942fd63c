"""Names of nodes that do not exist yet: a group's template node, and its upcoming nodes."""

from __future__ import annotations


def template_name(group: str) -> str:
    """Return the name of a group's template node."""
    return f"template-node-for-{group}"


def upcoming_name(group: str, number: int) -> str:
    """Return the name of one of the group's upcoming nodes, counted from 0."""
    return f"{template_name(group)}-upcoming-{number:04d}"


def upcoming_number(group: str, name: str) -> int | None:
    """Return the number of the group's upcoming node of this name; None for any other node."""
    prefix = f"{template_name(group)}-upcoming-"
    number = name.removeprefix(prefix)
    return int(number) if name.startswith(prefix) and number.isdecimal() else None
