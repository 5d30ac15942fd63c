"""A catalogue over a cloud's groups: prices and commitments of their offerings, shapes of their templates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from kubetide.clouds.catalog.rows import Catalog, Row
from kubetide.clouds.common.template import INSTANCE_TYPE, ZONE, least_quantities
from kubetide.objects.base import Quantities
from kubetide.ports.cloud import NodeGroup, NodeTemplate, Offering, market_of
from kubetide.units.quantity import bytes_to_text, milli, milli_to_text, whole


def with_catalog_applied(groups: Sequence[NodeGroup], catalog: Catalog) -> list[NodeGroup]:
    """Return the groups as the catalogue has them; what it does not say stays as the cloud says it."""
    left = _commitments_left(groups, catalog)
    return [_applied(group, catalog, left) for group in groups]


def ways_of(group: NodeGroup) -> tuple[Offering, ...]:
    """Return the offerings of a group; without any, the one that its template's labels name."""
    if group.offerings:
        return group.offerings
    labels = {} if group.template is None else group.template.node.metadata.labels or {}
    type_ = labels.get(INSTANCE_TYPE, "")
    if not type_:
        return ()
    zone, market = labels.get(ZONE, ""), market_of(labels)
    return (Offering(instance_type=type_, zone=zone, market=market, price_per_hour=group.price_per_hour),)


def _applied(group: NodeGroup, catalog: Catalog, left: Mapping[str, int]) -> NodeGroup:
    ways = ways_of(group)
    priced = [_priced(way, catalog) for way in ways]
    committed = _committed(ways, catalog, left)
    changed = group
    if committed or any(one is not way for one, way in zip(priced, ways, strict=True)):
        offered = (*committed, *priced)
        changed = replace(group, offerings=offered, price_per_hour=_price(offered))
    types = list(dict.fromkeys(way.instance_type for way in ways))
    if changed.template is not None and types:
        changed = replace(changed, template=_shaped(changed.template, types, catalog))
    return changed


def _priced(way: Offering, catalog: Catalog) -> Offering:
    price = catalog.price(way.instance_type, way.zone, way.market)
    return way if price is None else replace(way, price_per_hour=price)


def _price(ways: Iterable[Offering]) -> float | None:
    """Return the price of the next node: by a commitment that has machines left, else the highest price it may have."""
    known = [way for way in ways if way.price_per_hour is not None and way.share != 0]
    reserved = [way.price_per_hour for way in known if way.market == "reserved" and way.count]
    others = [way.price_per_hour for way in known if way.market != "reserved"]
    prices = [price for price in reserved[:1] or others if price is not None]
    return max(prices, default=None)


def _committed(ways: Sequence[Offering], catalog: Catalog, left: Mapping[str, int]) -> tuple[Offering, ...]:
    """Return an offering for each commitment that a machine on demand of this group would be covered by."""
    found: dict[str, Offering] = {}
    for way in ways:
        if way.market != "on-demand" or way.share == 0:
            continue
        for row in catalog.commitments(way.instance_type):
            if row.zone in {"", way.zone} and row.place not in found:
                found[row.place] = Offering(
                    instance_type=way.instance_type,
                    zone=row.zone,
                    market="reserved",
                    price_per_hour=row.price_per_hour or 0.0,
                    count=left[row.place],
                )
    return tuple(found.values())


def _commitments_left(groups: Iterable[NodeGroup], catalog: Catalog) -> dict[str, int]:
    """Return how many machines of each commitment, by its row's place, are not in use yet.

    A group's machines are taken to be of its first type, and in its zone where it has one; with several zones they
    count for a commitment of any of them, so that none is counted on twice.
    """
    used: Counter[str] = Counter()
    rows = {row.place: row for type_ in catalog.types for row in catalog.commitments(type_)}
    for group in groups:
        ways = [way for way in ways_of(group) if way.market == "on-demand"]
        if not ways or not group.target_size:
            continue
        type_ = ways[0].instance_type
        zones = {way.zone for way in ways}
        need = group.target_size
        # A commitment of the zone is used up before one of any zone.
        for row in sorted(catalog.commitments(type_), key=lambda row: not row.zone):
            if row.zone in zones or not row.zone:
                taken = min(need, max(_count(row) - used[row.place], 0))
                used[row.place] += taken
                need -= taken
    return {place: _count(row) - used[place] for place, row in rows.items()}


def _count(row: Row) -> int:
    return row.count or 0


def _shaped(template: NodeTemplate, types: Sequence[str], catalog: Catalog) -> NodeTemplate:
    """Return the template with the shape that all types have at least; as it is where one of them has none."""
    shapes = [shape for type_ in types if (shape := catalog.shape(type_)) is not None]
    if len(shapes) < len(types):
        return template
    capacity = least_quantities(shape.capacity() for shape in shapes)
    allocatable = least_quantities(shape.allocatable() for shape in shapes)
    if not capacity and not allocatable:
        return template
    status = template.node.status
    old_capacity, old_allocatable = status.capacity or {}, status.allocatable or {}
    for name, amount in capacity.items():
        if name not in allocatable:
            reserved = _amount(name, old_capacity.get(name, 0)) - _amount(name, old_allocatable.get(name, 0))
            allocatable[name] = max(amount - max(reserved, 0), 0)
    shaped = replace(
        status,
        capacity={**old_capacity, **_texts(capacity)},
        allocatable={**old_allocatable, **_texts(allocatable)},
    )
    return replace(
        template,
        node=replace(template.node, status=shaped),
        source=f"catalogue {catalog.name} for {', '.join(types)}; the rest: {template.source}",
    )


def _amount(name: str, quantity: str | float) -> int:
    return milli(quantity) if name == "cpu" else whole(quantity)


def _texts(amounts: Mapping[str, int]) -> Quantities:
    return {name: _text(name, amount) for name, amount in amounts.items()}


def _text(name: str, amount: int) -> str:
    if name == "cpu":
        return milli_to_text(amount)
    return bytes_to_text(amount) if name == "memory" else str(amount)
