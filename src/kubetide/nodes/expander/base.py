"""What an expander is: a filter over options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from kubetide.nodes.facts.priorities import PriorityMap
from kubetide.nodes.templates.template import Template
from kubetide.objects.pod import Pod
from kubetide.ports.cloud import NodeGroup, PodPrices


class Option(msgspec.Struct, frozen=True):
    """A number of new nodes of one group, and the pods that would fit on them."""

    group: NodeGroup
    template: Template
    nodes: int
    pods: tuple[Pod, ...]
    similar: tuple[str, ...] = ()
    """Ids of groups that may share the increase."""
    plan: tuple[tuple[Pod, ...], ...] = ()
    """The pods of each new node, where the choice says so: what the next tick goes by until the nodes are there."""


class Warned(msgspec.Struct, frozen=True):
    """A warning that belongs on the ConfigMap of the ``priority`` expander."""

    reason: str
    message: str


class ExpanderFailure(msgspec.Struct, frozen=True):
    """An expander that left all options as it could not choose."""

    expander: str
    why: str
    """Empty where the ConfigMap of ``priority`` is not there."""


class Context(msgspec.Struct, frozen=True):
    """The facts that an expander may use besides the options.

    Attributes:
        nodes: Nodes in the cluster, those on their way not counted.
        gpu_label: The node label of GPU nodes; empty for none.
        pod_prices: What a pod's share of a machine costs.
        priority_map: The ConfigMap of ``priority``.
        warned: Expanders add here what people must know.
        failed: Expanders add themselves here when they cannot choose.
    """

    nodes: int = 0
    gpu_label: str = ""
    pod_prices: PodPrices = msgspec.field(default_factory=PodPrices)
    priority_map: PriorityMap = msgspec.field(default_factory=PriorityMap)
    warned: list[Warned] = msgspec.field(default_factory=list)
    failed: list[ExpanderFailure] = msgspec.field(default_factory=list)


class Expander(Protocol):
    """Returns the best options, in the order given; empty only if no option can be rated."""

    def __call__(self, options: Sequence[Option], context: Context) -> list[Option]:
        """Return the options that are equally best."""
        ...
