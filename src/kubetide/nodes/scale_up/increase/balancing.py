"""Similar groups, and the split of an increase between them.

Source: ``--balance-similar-node-groups``, the generic comparison of templates: capacity equal but for
memory (within a ratio of the larger), allocatable and free within a ratio, labels equal but for those
that name the place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from kubetide.nodes.facts.nodes import HOSTNAME_LABEL
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.template import Template
from kubetide.objects.base import Quantities
from kubetide.ports.cloud import NodeGroup
from kubetide.scheduling import classify_unbound, node_allocatable
from kubetide.scheduling.estimator.unstable_sort import descending_order
from kubetide.units.quantity import Quantity

_PLACE_LABELS: Final = (
    HOSTNAME_LABEL,
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "beta.kubernetes.io/fluentd-ds-ready",
    "kops.k8s.io/instancegroup",
    "kubetide.dev/node-group",  # of the embedded cloud
)

_PLACE_LABELS_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "aws": (
        "alpha.eksctl.io/instance-id",
        "alpha.eksctl.io/nodegroup-name",
        "eks.amazonaws.com/nodegroup",
        "k8s.amazonaws.com/eniConfig",
        "lifecycle",
        "topology.ebs.csi.aws.com/zone",
        "topology.k8s.aws/zone-id",
    ),
    "gce": ("topology.gke.io/zone",),
    "azure": (
        "agentpool",
        "kubernetes.azure.com/agentpool",
        "topology.disk.csi.azure.com/zone",
        "aksEngineVersion",
        "creationSource",
        "poolName",
        "resourceNameSuffix",
        "kubernetes.azure.com/node-image-version",
        "kubernetes.azure.com/consolidated-additional-properties",
    ),
}
_AZURE_POOL_LABELS: Final = ("agentpool", "kubernetes.azure.com/agentpool")

_SCALARS: Final = ("hugepages-", "attachable-volumes-")


class _Rules(msgspec.Struct, frozen=True):
    """How far apart similar groups may be, as shares of the larger value, and which labels may differ."""

    memory: float = 0.015
    allocatable: float = 0.05
    free: float = 0.05
    ignored: tuple[str, ...] = _PLACE_LABELS


def _rules(settings: Settings) -> _Rules:
    """Return the rules in force: the flags act only where the provider has a comparison of its own."""
    own = _PLACE_LABELS_OF.get(settings.provider)
    if own is None:
        return _Rules()
    return _Rules(
        memory=settings.memory_difference_ratio,
        allocatable=settings.max_allocatable_difference_ratio,
        free=settings.max_free_difference_ratio,
        ignored=(*_PLACE_LABELS, *own, *settings.balancing_ignore_label),
    )


class Difference(NamedTuple):
    """What makes two groups dissimilar: the amount or label, and its value in each."""

    what: str
    name: str
    here: object
    there: object

    def __str__(self) -> str:
        """Return it in words."""
        here, there = ("none" if value is None else value for value in (self.here, self.there))
        return f"{self.what} {self.name} is {here} here and {there} there"


def are_similar(one: Template, other: Template, settings: Settings) -> bool:
    """Return whether the two groups are similar, so that an increase may be split between them."""
    return difference(one, other, settings) is None


def difference(one: Template, other: Template, settings: Settings) -> Difference | None:
    """Return the first difference that makes the two groups dissimilar; None for similar groups."""
    if settings.provider == "azure" and _same_pool(one, other):
        return None
    rules = _rules(settings)
    first, second = one.node.status, other.node.status
    capacity, other_capacity = first.capacity or {}, second.capacity or {}
    return (
        _amounts_differ("capacity", capacity, other_capacity, rules.memory, only_memory=True)
        or _amounts_differ("allocatable", first.allocatable, second.allocatable, rules.allocatable)
        or _free_differs(_free(one), _free(other), rules.free)
        or _labels_differ(_labels(one, rules.ignored), _labels(other, rules.ignored))
    )


def _amounts_differ(
    what: str,
    one: Quantities | None,
    other: Quantities | None,
    ratio: float,
    *,
    only_memory: bool = False,
) -> Difference | None:
    """Compare amounts; ``only_memory``: nothing but memory may differ at all."""
    here, there = one or {}, other or {}
    if here.keys() != there.keys():
        name = min(here.keys() ^ there.keys())
        return Difference(what, name, here.get(name), there.get(name))
    for name in here:
        allowed = ratio if name == "memory" or not only_memory else 0.0
        if not _within(_milli(here, name), _milli(there, name), allowed):
            return Difference(what, name, here[name], there[name])
    return None


def _free_differs(one: Mapping[str, int], other: Mapping[str, int], ratio: float) -> Difference | None:
    if one.keys() != other.keys():
        name = min(one.keys() ^ other.keys())
        return Difference("what is free of", name, one.get(name), other.get(name))
    for name, amount in one.items():
        if not _within(amount, other[name], ratio):
            return Difference("what is free of", name, amount, other[name])
    return None


def _labels_differ(one: Mapping[str, str], other: Mapping[str, str]) -> Difference | None:
    if one == other:
        return None
    name = min(name for name in {**one, **other} if one.get(name) != other.get(name))
    return Difference("label", name, one.get(name), other.get(name))


def families(templates: Mapping[str, Template | None], settings: Settings) -> dict[str, str]:
    """Return for each group the first one, by id, that it is similar to: groups with the same result are a family."""
    found: dict[str, str] = {}
    heads: list[tuple[str, Template]] = []
    for group_id in sorted(templates):
        template = templates[group_id]
        if template is None:
            found[group_id] = group_id
            continue
        head = next((name for name, one in heads if are_similar(one, template, settings)), None)
        if head is None:
            heads.append((group_id, template))
        found[group_id] = head or group_id
    return found


def balance(groups: Sequence[NodeGroup], new_nodes: int) -> list[tuple[NodeGroup, int]]:
    """Return (group, new size) of the groups that grow: each new node goes to the smallest group that is not full.

    Nodes beyond the maxima of all groups are dropped. Groups that were found full come first: in this order the groups
    are raised. Source: BalanceScaleUpBetweenGroups.
    """
    growing = [group for group in groups if group.target_size < group.max_size]
    # Upstream's sort is not stable: of more than twelve groups equals change places.
    open_groups = [growing[at] for at in descending_order([-group.target_size for group in growing])]
    line = [(group, group.target_size) for group in open_groups]
    left = min(new_nodes, sum(group.max_size - group.target_size for group in open_groups))
    full = at = 0
    while left > 0:
        group, size = line[at]
        if size < group.max_size:
            line[at] = group, size + 1
            left -= 1
        else:
            # It changes places with the first that is not known to be full; those in between are of one size.
            line[full], line[at] = line[at], line[full]
            full += 1
        is_ahead = at + 1 < len(line) and line[at][1] > line[at + 1][1]
        at = at + 1 if is_ahead else full
    return [(group, size) for group, size in line if size > group.target_size]


def _labels(template: Template, ignored: tuple[str, ...]) -> dict[str, str]:
    return {key: value for key, value in (template.node.metadata.labels or {}).items() if key not in ignored}


def _same_pool(one: Template, other: Template) -> bool:
    labels, others = one.node.metadata.labels or {}, other.node.metadata.labels or {}
    return any(labels.get(name) and labels.get(name) == others.get(name) for name in _AZURE_POOL_LABELS)


def _milli(quantities: Quantities, name: str) -> int:
    return Quantity.parse(quantities[name]).milli_value()


def _free(template: Template) -> dict[str, int]:
    """Return what is free, in thousandths: of the common resources, and of others that pods on the template request.

    Upstream takes no pods off their number.
    """
    free = template.fresh.free
    asked = {name for pod in template.pods for name in classify_unbound(pod).requests}
    others = (name for name in asked if "/" in name or name.startswith(_SCALARS))
    found = {
        name: int(free[name][0]) if name in free else 0 for name in ("memory", "ephemeral-storage", *others)
    }
    pods = node_allocatable(template.node).get("pods", 0)
    amounts = {name: amount * 1000 for name, amount in {**found, "pods": pods}.items()}
    return {"cpu": int(free["cpu"][0]) if "cpu" in free else 0, **amounts}


def _within(one: int, other: int, ratio: float) -> bool:
    larger, smaller = float(max(one, other)), float(min(one, other))
    return larger - smaller <= larger * ratio
