"""What an expander is: a filter over options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kubetide.nodes.templates.template import Template
from kubetide.objects.pod import Pod
from kubetide.ports.cloud import NodeGroup


@dataclass(frozen=True, slots=True)
class Option:
    """So many new nodes of one group would hold these pods."""

    group: NodeGroup
    template: Template
    nodes: int
    pods: tuple[Pod, ...]
    similar: tuple[str, ...] = ()
    """Ids of groups that may share the increase."""
    plan: tuple[tuple[Pod, ...], ...] = ()
    """The pods of each new node, where the choice says so: what the next tick goes by until the nodes are there."""


class Expander(Protocol):
    """Keeps the best options, in the order given; never none of a non-empty list."""

    def __call__(self, options: Sequence[Option]) -> list[Option]:
        """Gives the options that are equally best."""
        ...
