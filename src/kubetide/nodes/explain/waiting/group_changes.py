"""Changes of a node group that make it take a pod as it is: another group like it.

A cloud sets the labels of a zone or an architecture, and a machine type its amounts; nobody can put them on the nodes
that there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kubetide.nodes.explain.waiting.pod_changes import Change, labels_text
from kubetide.nodes.facts.amounts import amount_text
from kubetide.objects.node import Node
from kubetide.scheduling import Refusal

ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
SET_BY_THE_CLOUD = frozenset(
    {
        *ZONES,
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region",
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
    }
)
"""Labels that say what a machine is. Source: Kubernetes, "Well-Known Labels, Annotations and Taints"."""

ANOTHER_GROUP = "another group"
NEW_GROUPS = frozenset({"group", ANOTHER_GROUP})
"""Kinds of changes that ask for a new group; the second has no other way out, so the group as it is does not count."""

_SIZES = frozenset({"cpu", "memory", "ephemeral-storage"})
"""What each machine has some of; of other resources most have none."""

_LEAST_SHARE = 4
"""A pod that would have to ask for less than this part of what it asks for is another pod."""


def change_of_labels(missing: Mapping[str, str], group: str) -> tuple[Change, ...]:
    """Return the change that gives nodes of a group the missing labels: at most one change of each kind."""
    fixed = {key: value for key, value in missing.items() if key in SET_BY_THE_CLOUD}
    free = {key: value for key, value in missing.items() if key not in SET_BY_THE_CLOUD}
    changes = []
    if free:
        labels = f"label {labels_text(free)}"
        changes.append(Change("label", f"add {labels} to the nodes of group {group}", nodes=labels))
    if fixed:
        dropped = f"drop {labels_text(fixed)} from the pod's node selector"
        zone = next((fixed[key] for key in ZONES if key in fixed), "")
        if "kubernetes.io/hostname" in fixed:
            changes.append(Change("selector", dropped))
        elif zone and len(fixed) == 1:
            text = f"add a group like {group} in zone {zone}, or {dropped}"
            changes.append(Change("group", text, nodes=f"zone {zone}"))
        else:
            labels = labels_text(fixed)
            changes.append(
                Change("group", f"add a group like {group} with {labels}, or {dropped}", nodes=labels)
            )
    return tuple(changes)


def in_one_group(changes: Sequence[Change], group: str) -> tuple[Change, ...]:
    """Return the changes; where one needs a new group, what else its nodes need is part of it.

    What only the group as it is needs is left out: a higher maximum, the end of its backoff.
    """
    if not any(change.kind == ANOTHER_GROUP for change in changes):
        return tuple(changes)
    of_nodes = [change.nodes for change in changes if change.nodes]
    rest = [change for change in changes if not change.nodes and change.kind not in {"max_size", "backoff"}]
    new = next(change for change in changes if change.kind == ANOTHER_GROUP)
    if len(of_nodes) > 1:
        new = Change(ANOTHER_GROUP, f"add a group like {group} with {' and '.join(of_nodes)}")
    return (new, *rest)


def asks_far_too_much(refusal: Refusal) -> bool:
    """Return whether the pod fits only if it requests less than a quarter of some resource."""
    return any(short.free * _LEAST_SHARE < short.requested for short in refusal.numbers)


def larger_machine(refusal: Refusal, node: Node, group: str) -> tuple[Node, Change] | None:
    """Return a node with as much as the pod lacks, and describe such a group; None if pod slots are short.

    ``node`` is the template of the group.
    """
    amounts: dict[str, str] = {}
    for short in refusal.numbers:
        if short.resource == "pods":
            return None
        amounts[short.resource] = amount_text(
            short.resource, short.allocatable - short.free + short.requested
        )
    if not amounts:
        return None
    status = node.status
    larger = replace(
        node,
        status=replace(
            status,
            capacity={**(status.capacity or {}), **amounts},
            allocatable={**(status.allocatable or {}), **amounts},
        ),
    )
    kind = "a larger" if amounts.keys() <= _SIZES else "another"
    said = " and ".join(f"{amount} {resource}" for resource, amount in amounts.items())
    machine = f"{kind} machine type: {said} allocatable or more"
    return larger, Change(ANOTHER_GROUP, f"add a group like {group} with {machine}", nodes=machine)
