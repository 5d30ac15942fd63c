"""A rejection of a pod by a node: the plugin, upstream's words, and the numbers behind them."""

from __future__ import annotations

import msgspec

UNSCHEDULABLE = "Unschedulable"
"""Removing pods from the node could help."""

UNRESOLVABLE = "UnschedulableAndUnresolvable"
"""Nothing that happens to the node's pods could help."""

ERROR = "Error"
"""The pod cannot be evaluated; ``detail`` says why."""


class Shortfall(msgspec.Struct, frozen=True, gc=False):
    """The requested and the present amount of a node: milli-CPU, bytes or counts."""

    resource: str
    requested: int
    free: int
    allocatable: int


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """The first plugin that rejects a pod on a node.

    Attributes:
        plugin: Name of the kube-scheduler plugin.
        reasons: Upstream's words in upstream's order; none where PreFilter left the node out.
        code: One of the constants of this module; empty where PreFilter left the node out.
        phase: ``Filter``; ``PreFilter`` when the pod fails on every node alike; ``PreFilterResult``
            when the pod names other nodes.
        numbers: For each resource that is short, what was asked and what there is.
        detail: What refused, e.g. the taint or the label.
    """

    plugin: str
    reasons: tuple[str, ...] = ()
    code: str = UNRESOLVABLE
    phase: str = "Filter"
    numbers: tuple[Shortfall, ...] = ()
    detail: str = ""
