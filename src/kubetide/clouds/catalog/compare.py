"""A catalogue beside what the cloud says of the same machines, and what nodes of them have shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kubetide.clouds.catalog.apply import ways_of
from kubetide.clouds.catalog.rows import Catalog
from kubetide.clouds.common.template import INSTANCE_TYPE
from kubetide.objects.base import ApiStruct, Quantities
from kubetide.objects.node import Node
from kubetide.ports.cloud import NVIDIA_GPU, NodeGroup
from kubetide.units.quantity import bytes_to_text, milli, milli_to_text, whole

SMALL: Final = 0.005
"""Relative difference below which two numbers are the same."""


class Difference(ApiStruct):
    """A number that the catalogue and the cloud, or its nodes, do not agree on; texts as people write them.

    Attributes:
        type: The instance type.
        what: ``price spot eu-west-1a``, ``capacity memory``, ``allocatable cpu`` and so on.
        catalog: What the catalogue says.
        cloud: What the cloud says; empty where it says nothing.
        nodes: What nodes of the type have, the least of them; empty where there is none.
        change: Of the catalogue against the others, in per cent; of nodes where there are any.
    """

    type: str
    what: str
    catalog: str
    cloud: str = ""
    nodes: str = ""
    change: float = 0.0


class Comparison(ApiStruct):
    """What came of it.

    Attributes:
        differences: By type, prices before shapes.
        agreed: How many numbers agree.
        unlisted: Types that groups or nodes have and the catalogue has not.
        unused: How many types of the catalogue no group and no node has.
    """

    differences: tuple[Difference, ...]
    agreed: int
    unlisted: tuple[str, ...]
    unused: int


def compare(catalog: Catalog, groups: Iterable[NodeGroup], nodes: Iterable[Node]) -> Comparison:
    """Compare a catalogue with groups as the cloud gives them (without the catalogue), and with live nodes."""
    sums = _Sums()
    groups = tuple(groups)
    seen = _least_by_type(nodes)
    offered: dict[str, dict[str, int]] = {
        way.instance_type: {} for group in groups for way in ways_of(group) if way.instance_type
    }
    for group in groups:
        _prices(group, catalog, sums)
    for group in groups:
        types = {way.instance_type for way in ways_of(group)}
        if len(types) == 1 and group.template is not None:
            status = group.template.node.status
            offered[types.pop()] = {
                **_named("capacity", status.capacity),
                **_named("allocatable", status.allocatable),
            }
    used = sorted(offered.keys() | seen.keys())
    for type_ in used:
        shape = catalog.shape(type_)
        if shape is None:
            continue
        said = {
            **{f"capacity {name}": amount for name, amount in shape.capacity().items()},
            **{f"allocatable {name}": amount for name, amount in shape.allocatable().items()},
        }
        for what, amount in said.items():
            sums.compared(
                type_, what, amount, offered.get(type_, {}).get(what), seen.get(type_, {}).get(what)
            )
    return Comparison(
        differences=tuple(
            sorted(sums.differences, key=lambda one: (one.type, not one.what.startswith("price")))
        ),
        agreed=sums.agreed,
        unlisted=tuple(one for one in used if one not in catalog.types),
        unused=len(set(catalog.types) - set(used)),
    )


class _Sums:
    def __init__(self) -> None:
        self.differences: list[Difference] = []
        self.agreed = 0
        self._done: set[tuple[str, str, float | None]] = set()

    def compared(
        self, type_: str, what: str, catalog: float, cloud: float | None, nodes: float | None
    ) -> None:
        """Take in one number of the catalogue, and what the others say of it."""
        if (type_, what, cloud) in self._done or (cloud is None and nodes is None):
            return
        self._done.add((type_, what, cloud))
        others = [one for one in (nodes, cloud) if one is not None]
        changes = [_change(catalog, one) for one in others]
        if all(abs(one) <= SMALL for one in changes):
            self.agreed += 1
            return
        text = _text_of(what)
        self.differences.append(
            Difference(
                type=type_,
                what=what,
                catalog=text(catalog),
                cloud="" if cloud is None else text(cloud),
                nodes="" if nodes is None else text(nodes),
                change=round(100 * next(one for one in changes if abs(one) > SMALL), 1),
            )
        )


def _prices(group: NodeGroup, catalog: Catalog, sums: _Sums) -> None:
    for way in ways_of(group):
        price = catalog.price(way.instance_type, way.zone, way.market)
        if price is not None and way.price_per_hour is not None:
            what = " ".join(one for one in ("price", way.market, way.zone) if one)
            sums.compared(way.instance_type, what, price, way.price_per_hour, None)


def _change(catalog: float, other: float) -> float:
    if catalog == other:
        return 0.0
    return (catalog - other) / other if other else float("inf")


def _text_of(what: str) -> Callable[[float], str]:
    if what.startswith("price"):
        return lambda value: f"{value:.6g}"
    resource = what.split(" ")[1]
    if resource == "cpu":
        return lambda value: milli_to_text(int(value))
    return (
        (lambda value: bytes_to_text(int(value))) if resource == "memory" else (lambda value: str(int(value)))
    )


def _least_by_type(nodes: Iterable[Node]) -> Mapping[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for node in nodes:
        type_ = (node.metadata.labels or {}).get(INSTANCE_TYPE, "")
        if not type_:
            continue
        said = {
            **_named("capacity", node.status.capacity),
            **_named("allocatable", node.status.allocatable),
        }
        least = found.setdefault(type_, said)
        for name, amount in said.items():
            least[name] = min(least.get(name, amount), amount)
    return found


def _named(kind: str, quantities: Quantities | None) -> dict[str, int]:
    return {
        f"{kind} {name}": milli(value) if name == "cpu" else whole(value)
        for name, value in (quantities or {}).items()
        if name in {"cpu", "memory", "pods", NVIDIA_GPU}
    }
