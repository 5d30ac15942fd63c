"""Similar groups, and how an increase is spread between them.

Source: ``--balance-similar-node-groups``, the generic comparison of templates: capacity equal but for
memory (within a ratio of the larger), allocatable and free within a ratio, labels equal but for those
that name the place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubetide.nodes.node_facts import HOSTNAME_LABEL, TEMPLATE_LABEL
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates import Template
from kubetide.objects.base import Quantities
from kubetide.ports.cloud import NodeGroup
from kubetide.units.quantity import Quantity

_PLACE_LABELS: Final = (
    HOSTNAME_LABEL,
    TEMPLATE_LABEL,
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "beta.kubernetes.io/fluentd-ds-ready",
    "kops.k8s.io/instancegroup",
)


def are_similar(one: Template, other: Template, settings: Settings) -> bool:
    """Whether nodes of the two groups may stand in for one another."""
    first, second = one.node.status, other.node.status
    capacity, other_capacity = first.capacity or {}, second.capacity or {}
    if capacity.keys() != other_capacity.keys():
        return False
    for name in capacity:
        ratio = settings.memory_difference_ratio if name == "memory" else 0.0
        if not _within(_milli(capacity, name), _milli(other_capacity, name), ratio):
            return False
    allocatable, other_allocatable = _all_milli(first.allocatable), _all_milli(second.allocatable)
    ratio = settings.max_allocatable_difference_ratio
    if not _all_within(allocatable, other_allocatable, ratio):
        return False
    if not _all_within(_free(one), _free(other), settings.max_free_difference_ratio):
        return False
    ignored = {*_PLACE_LABELS, *settings.balancing_ignore_label}
    return _labels(one, ignored) == _labels(other, ignored)


def balance(groups: Sequence[NodeGroup], new_nodes: int) -> list[tuple[NodeGroup, int]]:
    """Spreads new nodes: always to the smallest group that is not full; gives (group, new size) of those that grow.

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


def _labels(template: Template, ignored: set[str]) -> dict[str, str]:
    return {key: value for key, value in (template.node.metadata.labels or {}).items() if key not in ignored}


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
