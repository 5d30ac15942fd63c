"""Amounts that machines of an instance type really had, and cloud templates corrected by them.

The least value that was seen is the promise. There is an entry for each image where labels distinguish images:
what a node can give away depends on its image and on the settings of its kubelet too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from kubetide.nodes.facts.machine_amounts import amount_error
from kubetide.nodes.memory import GroupLearned, Learned, Memory, SeenAmounts
from kubetide.nodes.registry.arrivals import recent_times
from kubetide.objects.base import Quantities
from kubetide.objects.node import Node
from kubetide.units.quantity import Quantity, quantity_error
from kubetide.units.time import Instant

IMAGE_LABELS: Final = (
    "cloud.google.com/gke-os-distribution",
    "eks.amazonaws.com/nodegroup-image",
    "karpenter.k8s.aws/instance-ami-id",
    "kubernetes.azure.com/node-image-version",
    "kubernetes.azure.com/os-sku",
    "kubernetes.io/os",
    "node.kubernetes.io/windows-build",
)
"""Labels that distinguish images of a machine."""
INSTANCE_TYPE_LABELS: Final = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")

MOST_TYPES: Final = 512
"""So many instance types are remembered, and as many groups as there are."""
MOST_IMAGES: Final = 4
"""So many images of one type."""
MACHINE_AMOUNTS: Final = ("cpu", "memory")
"""What the machine alone decides: an amount that was seen stands in place of a larger or a smaller one."""
_ADDED: Final = ("cpu", "ephemeral-storage", "memory", "pods")
"""What every node has: added where a template lacks it."""


def instance_type(node: Node) -> str:
    """Return the node's instance type by its labels; empty if it has none."""
    labels = node.metadata.labels or {}
    return next((labels[key] for key in INSTANCE_TYPE_LABELS if labels.get(key)), "")


def seen_on(node: Node, group: str, now: Instant) -> SeenAmounts:
    """Return the amounts of one node that can be read."""
    labels = node.metadata.labels or {}
    return SeenAmounts(
        instance_type=instance_type(node),
        image={key: labels[key] for key in IMAGE_LABELS if key in labels},
        capacity=_shown(node.status.capacity),
        allocatable=_shown(node.status.allocatable),
        from_node=node.metadata.name,
        from_group=group,
        seen_at=now,
    )


def lowered(before: SeenAmounts, seen: SeenAmounts) -> SeenAmounts:
    """Return the minimum of both; ``before`` itself if ``seen`` has nothing lower and nothing new."""
    capacity = _least(before.capacity, seen.capacity)
    allocatable = _least(before.allocatable, seen.allocatable)
    if capacity == before.capacity and allocatable == before.allocatable:
        return before
    return replace(seen, image=before.image, capacity=capacity, allocatable=allocatable)


def with_amounts(
    known: Sequence[SeenAmounts], seen: SeenAmounts, most: int
) -> tuple[SeenAmounts, ...] | None:
    """Return the entries with the seen amounts, in order of type and image; None if nothing changes.

    An entry too many is left out: who is there first stays, so that looking again changes nothing.
    """
    for at, entry in enumerate(known):
        if (entry.instance_type, entry.image) == (seen.instance_type, seen.image):
            less = lowered(entry, seen)
            return None if less is entry else (*known[:at], less, *known[at + 1 :])
    if len(known) >= most:
        return None
    return tuple(sorted((*known, seen), key=_order))


def merged(own: Learned, earlier: Learned) -> Learned:
    """Return the learned facts of this process and an earlier one: the least amounts, and this process's joins first."""
    types = dict(own.types)
    for name in sorted(earlier.types):
        types[name] = _united(types.get(name, ()), earlier.types[name], MOST_IMAGES)
    groups = dict(own.groups)
    for name in sorted(earlier.groups):
        other, mine = earlier.groups[name], groups.get(name, GroupLearned())
        groups[name] = GroupLearned(
            amounts=_united(mine.amounts, other.amounts, MOST_IMAGES),
            startup_taints=tuple(sorted({*mine.startup_taints, *other.startup_taints})),
            joins=mine.joins + other.joins,
            starts=recent_times((*other.starts, *mine.starts)),
            last_join=mine.last_join or other.last_join,
        )
    return Learned(types=types, groups=groups)


def take_over(memory: Memory, earlier: Learned) -> None:
    """Add the learned facts of an earlier process; if this one knows more, all are due for storing."""
    own = memory.learned
    memory.learned = merged(own, earlier)
    if own != Learned():
        memory.learned_changed, memory.learned_written = True, None


def of_image(entries: Iterable[SeenAmounts], labels: Mapping[str, str]) -> SeenAmounts | None:
    """Return the least of the entries whose image does not contradict the labels; None without any."""
    found: SeenAmounts | None = None
    for entry in entries:
        if all(labels.get(key, value) == value for key, value in entry.image.items()):
            found = entry if found is None else lowered(found, entry)
    return found


def without_amounts(seen: SeenAmounts, names: Collection[str]) -> SeenAmounts:
    """Return what was seen without these amounts."""
    if not names:
        return seen
    capacity, allocatable = (
        {name: value for name, value in amounts.items() if name not in names}
        for amounts in (seen.capacity, seen.allocatable)
    )
    return replace(seen, capacity=capacity, allocatable=allocatable)


def corrected(node: Node, seen: SeenAmounts, *, own: bool = False) -> Node:
    """Return the node of a cloud template with the seen amounts.

    CPU and memory are those of the machine. Of what a group's own settings decide (pods, disks, extended
    resources) the less of both holds; what the cloud does not name of it counts where the group's ``own`` nodes
    had it. What the cloud says that the group's kubelet reserves stays reserved.
    """
    said = _readable(node.status.capacity)
    offered = _readable(node.status.allocatable) or said
    shown = seen.allocatable or seen.capacity
    capacity = _corrected(said, seen.capacity, seen.capacity if own else _ADDED)
    allocatable = _corrected(offered, shown, shown if own else _ADDED)
    for name in MACHINE_AMOUNTS:
        if name in said and name in offered and name in seen.capacity:
            reserved = Quantity.parse(said[name]) - Quantity.parse(offered[name])
            left = Quantity.parse(seen.capacity[name]) - reserved
            if reserved.sign() > 0 and left.sign() >= 0 and left < Quantity.parse(allocatable[name]):
                allocatable[name] = str(left)
    return replace(node, status=replace(node.status, capacity=capacity, allocatable=allocatable))


def least_of(node: Node, others: Iterable[Node]) -> Node:
    """Return the node with the minimum over all nodes of each amount, without what one of them lacks."""
    capacity, allocatable = node.status.capacity or {}, node.status.allocatable or {}
    for other in others:
        capacity = _common(capacity, other.status.capacity or {})
        allocatable = _common(allocatable, other.status.allocatable or {})
    return replace(node, status=replace(node.status, capacity=capacity, allocatable=allocatable))


def _united(mine: Sequence[SeenAmounts], others: Iterable[SeenAmounts], most: int) -> tuple[SeenAmounts, ...]:
    found = tuple(mine)
    for one in others:
        found = with_amounts(found, one, most) or found
    return found


def _order(one: SeenAmounts) -> tuple[str, list[tuple[str, str]]]:
    return one.instance_type, sorted(one.image.items())


def _readable(amounts: Quantities | None) -> Quantities:
    return {name: value for name, value in (amounts or {}).items() if quantity_error(value) is None}


def _shown(amounts: Quantities | None) -> Quantities:
    """Return the amounts that a machine may have, without extended resources of which there is none (yet)."""
    return {
        name: value
        for name, value in (amounts or {}).items()
        if not amount_error(name, value) and ("/" not in name or Quantity.parse(value).sign())
    }


def _pick(
    one: Quantities, other: Quantities, names: Iterable[str], choose: Callable[[str], bool]
) -> Quantities:
    return {name: (other if choose(name) else one)[name] for name in names}


def _is_less(one: Quantities, other: Quantities, name: str) -> bool:
    return one[name] != other[name] and Quantity.parse(one[name]) < Quantity.parse(other[name])


def _least(one: Quantities, other: Quantities) -> Quantities:
    """Return the less of both; what only one of them has, as it has it: a machine may lack what no driver serves yet."""
    return _pick(
        one,
        other,
        sorted({*one, *other}),
        lambda name: name in other and (name not in one or _is_less(other, one, name)),
    )


def _common(one: Quantities, other: Quantities) -> Quantities:
    names = [name for name in one if name in other]
    return _pick(one, other, names, lambda name: _is_less(other, one, name))


def _corrected(said: Quantities, seen: Quantities, added: Iterable[str]) -> Quantities:
    names = [*said, *(name for name in added if name in seen and name not in said)]
    return _pick(
        said,
        seen,
        names,
        lambda name: (
            name in seen and (name not in said or name in MACHINE_AMOUNTS or _is_less(seen, said, name))
        ),
    )
