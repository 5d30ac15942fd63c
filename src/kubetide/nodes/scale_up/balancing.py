"""Similar groups, and how an increase is spread between them.

Source: ``--balance-similar-node-groups``, the generic comparison of templates: capacity equal but for
memory (within a ratio of the larger), allocatable and free within a ratio, labels equal but for those
that name the place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kubetide.nodes.facts.nodes import HOSTNAME_LABEL
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.template import Template
from kubetide.objects.base import Quantities
from kubetide.ports.cloud import NodeGroup
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


@dataclass(frozen=True, slots=True)
class _Rules:
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


def are_similar(one: Template, other: Template, settings: Settings) -> bool:
    """Return whether nodes of the two groups may stand in for one another."""
    if settings.provider == "azure" and _same_pool(one, other):
        return True
    rules = _rules(settings)
    first, second = one.node.status, other.node.status
    capacity, other_capacity = first.capacity or {}, second.capacity or {}
    if capacity.keys() != other_capacity.keys():
        return False
    for name in capacity:
        ratio = rules.memory if name == "memory" else 0.0
        if not _within(_milli(capacity, name), _milli(other_capacity, name), ratio):
            return False
    if not _all_within(_all_milli(first.allocatable), _all_milli(second.allocatable), rules.allocatable):
        return False
    if not _all_within(_free(one), _free(other), rules.free):
        return False
    return _labels(one, rules.ignored) == _labels(other, rules.ignored)


def balance(groups: Sequence[NodeGroup], new_nodes: int) -> list[tuple[NodeGroup, int]]:
    """Spread new nodes: always to the smallest group that is not full; return (group, new size) of those that grow.

    What no group has room for is dropped. Source: BalanceScaleUpBetweenGroups.
    """
    open_groups = [group for group in groups if group.target_size < group.max_size]
    open_groups.sort(key=lambda group: group.target_size)
    sizes = [group.target_size for group in open_groups]
    left = min(new_nodes, sum(group.max_size - group.target_size for group in open_groups))
    while left > 0:
        smallest = min(
            (at for at, group in enumerate(open_groups) if sizes[at] < group.max_size), key=sizes.__getitem__
        )
        sizes[smallest] += 1
        left -= 1
    return [(group, size) for group, size in zip(open_groups, sizes, strict=True) if size > group.target_size]


def _labels(template: Template, ignored: tuple[str, ...]) -> dict[str, str]:
    return {key: value for key, value in (template.node.metadata.labels or {}).items() if key not in ignored}


def _same_pool(one: Template, other: Template) -> bool:
    labels, others = one.node.metadata.labels or {}, other.node.metadata.labels or {}
    return any(labels.get(name) and labels.get(name) == others.get(name) for name in _AZURE_POOL_LABELS)


def _milli(quantities: Quantities, name: str) -> int:
    return Quantity.parse(quantities[name]).milli_value()


def _all_milli(quantities: Quantities | None) -> dict[str, int]:
    return {name: _milli(quantities, name) for name in quantities} if quantities else {}


def _free(template: Template) -> dict[str, int]:
    return {name: int(column[0]) for name, column in template.fresh.free.items()}


def _all_within(one: Mapping[str, int], other: Mapping[str, int], ratio: float) -> bool:
    return one.keys() == other.keys() and all(_within(one[name], other[name], ratio) for name in one)


def _within(one: int, other: int, ratio: float) -> bool:
    larger, smaller = float(max(one, other)), float(min(one, other))
    return larger - smaller <= larger * ratio
